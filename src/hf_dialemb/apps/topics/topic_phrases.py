"""Tell what dialogues say apart: set phrases, and phrases that distinguish topics."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...dialogue import ROLES, Dialogue
from ..flow.step_names import best_phrases, clauses

_FEWEST = 3  # dialogues that hold a set phrase
_COMMON = 0.5  # the share of the topics from which on what is said in them is a set phrase
_MOST_CONTRAST = 2.0  # of a phrase


def customer(dialogue: Dialogue) -> str:
    """Return the role whose requests name a topic: the user, or every role where no user speaks."""
    return ROLES[0] if ROLES[0] in dialogue.roles else ""


def set_phrases(dialogues: Sequence[Dialogue], labels: NDArray[np.int32]) -> frozenset[str]:
    """Return the clauses of at least three dialogues and half of the topics, labels ``(N,)``.

    Greetings and agents' phrases are such. Of a single topic, they are the clauses with which half
    of its dialogues begin or end.
    """
    topics = int(labels.max()) + 1
    counts, spread = Counter[str](), Counter[str]()
    seen = set[tuple[str, int]]()
    for dialogue, label in zip(dialogues, labels.tolist(), strict=True):
        turns = dialogue.turns if topics > 1 else (dialogue.turns[0], dialogue.turns[-1])
        own = {clause for turn in turns for clause in clauses(turn.content)}
        counts.update(own)
        spread.update(clause for clause in own if (clause, label) not in seen)
        seen.update((clause, label) for clause in own)
    if topics == 1:
        spread, topics = counts, len(dialogues)
    least = max(2, topics * _COMMON)
    return frozenset(
        clause for clause, count in counts.items() if count >= _FEWEST and spread[clause] >= least
    )


def without_set_phrases(dialogue: Dialogue, left_out: Collection[str], role: str = "") -> list[str]:
    """Return the turns of a dialogue, or of a role, without set phrases; empty turns go."""
    texts = []
    for turn in dialogue.turns:
        if not role or turn.role == role:
            kept = [clause for clause in clauses(turn.content) if clause not in left_out]
            texts.append(" | ".join(kept))
    return list(filter(None, texts))


def telling_phrases(groups: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Return the `best_phrases` that distinguish each of G groups of long texts from the others.

    A phrase in a share p of the group's texts, and q of the others, is worth ``log(p / q)``, at
    most `_MOST_CONTRAST`. Phrases that are no more frequent than elsewhere, hold a number or are a
    letter are left out. A single group has its frequent phrases.
    """

    def worth(phrases: NDArray[Any], counts: Any) -> NDArray[Any]:
        is_worded: NDArray[Any] = np.array(
            [len(text) > 1 and bool(re.fullmatch(r"\D*[^\W\d_]\D*", text)) for text in phrases],
            dtype=bool,
        )[counts.indices]
        if len(groups) == 1:
            return 1.0 * is_worded
        sizes = np.array([len(group) for group in groups], dtype=np.float64)
        size = np.repeat(sizes, np.diff(counts.indptr))
        totals = np.asarray(counts.sum(axis=0)).ravel()[counts.indices]
        elsewhere = (totals - counts.data + 0.5) / (sizes.sum() - size + 1)
        contrast = np.log(counts.data / size / elsewhere)
        worths: NDArray[Any] = np.where(is_worded, np.minimum(contrast, _MOST_CONTRAST), 0.0)
        return worths

    return best_phrases(groups, worth)
