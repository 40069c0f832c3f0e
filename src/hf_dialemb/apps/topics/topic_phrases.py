"""Tell what dialogues say apart: set phrases, and phrases that distinguish topics."""

from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from ...dialogue import ROLES, Dialogue
from ..flow.step_names import clauses, words_of

NEAR_COPIES = "near copies: "  # begins the name of a topic of such dialogues
_FEWEST = 3  # dialogues that hold a set phrase
_COPIED = 0.8
_NEARLY_ALL = 0.9
_FEWEST_COPIES = 10
"""The share of words that copies have in common, of the dialogues of a topic that are copies, and
the least number of these."""

_COMMON = 0.5  # the share of the topics from which on what is said in them is a set phrase


def customer(dialogue: Dialogue) -> str:
    """Return the role whose requests name a topic: the user, or every role where no user speaks."""
    return ROLES[0] if ROLES[0] in dialogue.roles else ""


def set_phrases(dialogues: Sequence[Dialogue], labels: NDArray[np.int32]) -> frozenset[str]:
    """Return the clauses of at least three dialogues and half of the topics, labels ``(N,)``.

    Greetings and agents' phrases are such. Of a single topic, they are the clauses with which half
    of its dialogues begin or end.
    """
    topics = int(labels.max()) + 1
    counts = Counter[str]()
    spread = Counter[str]()
    seen = set[tuple[str, int]]()
    for dialogue, label in zip(dialogues, labels.tolist(), strict=True):
        turns = dialogue.turns if topics > 1 else (dialogue.turns[0], dialogue.turns[-1])
        own = {clause for turn in turns for clause in clauses(turn.content)}
        counts.update(own)
        spread.update(clause for clause in own if (clause, label) not in seen)
        seen.update((clause, label) for clause in own)
    if topics == 1:
        spread = counts
        topics = len(dialogues)
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


def are_near_copies(dialogues: Sequence[Dialogue]) -> bool:
    """Return whether nearly all dialogues say what the first of them says, with few other words."""
    words = [
        {word for turn in own.turns for word in words_of(turn.content.lower())} for own in dialogues
    ]
    shared = [2 * len(own & words[0]) / max(1, len(own) + len(words[0])) for own in words]
    alike = sum(share >= _COPIED for share in shared)
    return len(dialogues) >= _FEWEST_COPIES and alike >= _NEARLY_ALL * len(dialogues)
