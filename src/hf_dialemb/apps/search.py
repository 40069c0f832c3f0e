"""The dialogues nearest to one of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..corpora.show import find_dialogue, visible
from ..models.dialogue import Dialogue


def nearest(vectors: NDArray[np.float32], index: int, top: int) -> list[tuple[int, float]]:
    """Ranks all other dialogues by cosine.

    Args:
        vectors: Embeddings, (N, D).
        index: The dialogue to start from.
        top: How many to return, at most N - 1.

    Returns:
        Pairs of a row and its cosine, best first.
    """
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-12)
    scores = units @ units[index]
    order = [row for row in np.argsort(-scores, kind="stable").tolist() if row != index]
    return [(row, float(scores[row])) for row in order[:top]]


def describe_nearest(
    dialogues: Sequence[Dialogue], vectors: NDArray[np.float32], identifier: str, top: int
) -> list[str]:
    """Lists the nearest dialogues as readable lines: cosine, id, domains and the first words.

    Args:
        dialogues: N dialogues.
        vectors: Their embeddings, (N, D).
        identifier: The dialogue to start from: its id, or its position as ``#12``.
        top: How many to list.

    Returns:
        The dialogue's own line first, then one line per neighbour.

    Raises:
        InputError: No dialogue has this id.
    """
    found = find_dialogue(dialogues, identifier)
    start = next(row for row, dialogue in enumerate(dialogues) if dialogue is found)
    lines = [f"       {_summary(found, start)}"]
    return lines + [f"{score:6.3f} {_summary(dialogues[row], row)}" for row, score in nearest(vectors, start, top)]


def _summary(dialogue: Dialogue, row: int) -> str:
    text = " / ".join(" ".join(turn.content.split()) for turn in dialogue.turns)
    name = dialogue.id or f"#{row + 1}"
    return visible(f"{name} [{', '.join(dialogue.domains)}] {text if len(text) <= 100 else text[:99] + '…'}")
