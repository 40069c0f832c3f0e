"""Describe topics by what is said in them: names, phrases, typical requests and dialogues."""

import logging
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..dialogue import Dialogue
from .edits import Groups
from .naming import (
    customer,
    names_by_model,
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
    members = [rows[np.argsort(-np.round(similarity[rows], 6), kind="stable")] for rows in members]
    drawn = [sampled(rows) for rows in members]
    of_groups = [[corpus[row] for row in rows.tolist()] for rows in drawn]
    left_out = set_phrases(corpus, groups.labels)
    phrases = telling_phrases([_texts(group, left_out) for group in of_groups])
    requests = [without_set_phrases(own, left_out, customer(own)) for group in of_groups for own in group]
    labels = np.repeat(np.arange(len(drawn), dtype=np.int32), list(map(len, drawn)))
    given = list(groups.names)
    if unnamed := [number for number, name in enumerate(given) if not name]:
        proposed = names_of(requests, labels, groups.means, encode)
        new = [proposed[number] for number in unnamed]
        if names != PHRASES:
            shown = [(proposed[number], phrases[number], of_groups[number]) for number in unnamed]
            new, reason = names_by_model(shown, names, cache / "names" if cache else None)
            if reason:
                logger.warning("some topics are named by their phrases: %s", reason)
        kept = list(filter(None, given))
        for number, name in zip(unnamed, numbered_names([*kept, *new])[len(kept) :], strict=True):
            given[number] = name
    sentences = typical_requests(of_groups, given, left_out, encode)
    by_role = {
        role: telling_phrases([_texts(group, left_out, role) for group in of_groups]) for role in roles_of(corpus)
    }
    return tuple(
        Topic(
            groups.ids[number],
            given[number],
            len(rows),
            phrases[number],
            {role: of_role[number] for role, of_role in by_role.items()},
            tuple(rows[:EXAMPLES].tolist()),
            tuple(counts[number].tolist()),
            sentences[number],
            groups.stability[number],
            0.0 if groups.ids[number] == NO_TOPIC else float(groups.least[number]),
        )
        for number, rows in enumerate(members)
    )


def _texts(dialogues: Sequence[Dialogue], left_out: Collection[str], role: str = "") -> list[str]:
    """Return what is said in dialogues, or by a role; bars keep phrases from going across turns."""
    return [" | ".join(without_set_phrases(dialogue, left_out, role)) for dialogue in dialogues]
