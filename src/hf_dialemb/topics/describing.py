"""Describe topics by what is said in them: names, phrases, typical requests and dialogues."""

import logging
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..dialogue import Dialogue
from .asking import Description, described_by_model
from .edits import Groups
from .naming import (
    customer,
    names_of,
    numbered_names,
    sampled,
    set_phrases,
    telling_phrases,
    typical_requests,
    without_set_phrases,
)
from .topics import NO_TOPIC, PHRASES, Topic, roles_of

EXAMPLES = 5  # typical dialogues of a topic

logger = logging.getLogger(__name__)


def described(
    corpus: Sequence[Dialogue],
    groups: Groups,
    similarity: NDArray[np.float32],
    counts: NDArray[np.int64],
    names: str,
    cache: Path | None,
    encode: Callable[[list[str]], NDArray[np.float32]] | None,
) -> tuple[Topic, ...]:
    """Describe T groups of N dialogues; those without a name get one.

    Args:
        corpus: The dialogues.
        groups: Their groups.
        similarity: The similarity of each with its group, ``(N,)``.
        counts: How many each group has in each period, ``(T, P)``.
        names: How groups are named; see `find_topics`.
        cache: A folder where answers of a language model are kept.
        encode: Encodes phrases ``(P, D)``.
    """
    members = [np.flatnonzero(groups.labels == number) for number in range(len(groups.ids))]
    read = np.concatenate(list(map(sampled, members)))
    members = [rows[np.argsort(-np.round(similarity[rows], 6), kind="stable")] for rows in members]
    of_groups = [[corpus[row] for row in sampled(rows).tolist()] for rows in members]
    drawn = [corpus[row] for row in read]
    left_out = set_phrases(drawn, groups.labels[read])
    phrases = telling_phrases([_texts(group, left_out) for group in of_groups])
    requests = [without_set_phrases(own, left_out, customer(own)) for own in drawn]
    given = [Description(*own) for own in zip(groups.names, groups.descriptions, groups.coherent, strict=True)]
    if not all(own.name for own in given):
        proposed = names_of(requests, groups.labels[read], groups.means, encode)
        given = _with_names(given, list(zip(proposed, phrases, of_groups, strict=True)), names, cache)
    sentences = typical_requests(of_groups, [own.name for own in given], left_out, encode)
    by_role = {
        role: telling_phrases([_texts(group, left_out, role) for group in of_groups]) for role in roles_of(corpus)
    }
    return tuple(
        Topic(
            groups.ids[number],
            given[number].name,
            len(rows),
            phrases[number],
            {role: of_role[number] for role, of_role in by_role.items()},
            tuple(rows[:EXAMPLES].tolist()),
            tuple(counts[number].tolist()),
            sentences[number],
            groups.stability[number],
            0.0 if groups.ids[number] == NO_TOPIC else float(groups.least[number]),
            given[number].sentence,
            given[number].coherent,
        )
        for number, rows in enumerate(members)
    )


def _with_names(
    given: Sequence[Description],
    proposed: Sequence[tuple[str, Sequence[str], Sequence[Dialogue]]],
    names: str,
    cache: Path | None,
) -> list[Description]:
    """Give topics without a name the proposed one, or that of a language model that reads phrases and dialogues."""
    unnamed = [number for number, own in enumerate(given) if not own.name]
    new = [Description(proposed[number][0]) for number in unnamed]
    if names != PHRASES:
        asked = [proposed[number] for number in unnamed]
        new, reason = described_by_model(asked, names, cache / "names" if cache else None)
        if reason:
            logger.warning("some topics are named by their phrases: %s", reason)
    kept, result = [own.name for own in given if own.name], list(given)
    different = numbered_names([*kept, *(own.name for own in new)])[len(kept) :]
    for number, own, name in zip(unnamed, new, different, strict=True):
        result[number] = own._replace(name=name)
    return result


def _texts(dialogues: Sequence[Dialogue], left_out: Collection[str], role: str = "") -> list[str]:
    """Return what is said in dialogues, or by a role; bars keep phrases from going across turns."""
    return [" | ".join(without_set_phrases(dialogue, left_out, role)) for dialogue in dialogues]
