"""Split conversations about several things where their topic changes."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...dialogue import ROLES, Dialogue
from ...encoders import Encoder
from ...metrics.vectors import unit
from .topics import ids_of

ENCODER = "dialogue-static"  # as good as larger ones at this, and many times faster
WINDOW = 4  # turns that are compared before and after a place
CHANGE = 0.8  # the depth from which on the topic changes


def segments(dialogues: Sequence[Dialogue], encoder: Encoder) -> list[Dialogue]:
    """Split dialogues at changes of topic.

    The parts of ``a`` are ``a/1`` and ``a/2``, and whole ones stay as they are.

    Those without an id are named by their number, as ``#12``.
    """
    parts = []
    for name, dialogue, places in zip(
        ids_of(dialogues), dialogues, boundaries(dialogues, encoder), strict=True
    ):
        if not places:
            parts.append(dialogue)
            continue
        ends = [*places, len(dialogue.turns)]
        for part, (begin, end) in enumerate(zip([0, *places], ends, strict=True), 1):
            parts.append(replace(dialogue, turns=dialogue.turns[begin:end], id=f"{name}/{part}"))
    return parts


def boundaries(
    dialogues: Sequence[Dialogue], encoder: Encoder, change: float = CHANGE
) -> list[list[int]]:
    """Find the turns with which each dialogue goes on to something else, those of a customer alone
    where one speaks.

    The vectors of `WINDOW` turns before and from a turn are compared. The topic changes where their
    cosine is a valley (Hearst, 1997): it lies below the highest cosine on either side by more than
    ``change`` in all, in ``[0, 4]``.
    """
    windows = [_windows(dialogue) for dialogue in dialogues]
    flat = [window for own in windows for window in own]
    vectors = unit(np.asarray(encoder.encode(flat))) if flat else np.zeros((0, 1), dtype=np.float32)
    result, begin = [], 0
    for dialogue, own in zip(dialogues, windows, strict=True):
        result.append(_valleys(dialogue, vectors[begin : begin + len(own)], change))
        begin += len(own)
    return result


def _windows(dialogue: Dialogue) -> list[Dialogue]:
    """Return the turns before and from each place between turns.

    None of a dialogue that is too short to split.
    """
    count = len(dialogue.turns)
    if count < 2 * WINDOW:
        return []
    spans = [(max(0, place - WINDOW), place) for place in range(2, count - 1)]
    spans += [(place, place + WINDOW) for place in range(2, count - 1)]
    return [Dialogue(dialogue.turns[begin:end]) for begin, end in spans]


def _valleys(dialogue: Dialogue, vectors: NDArray[np.float32], change: float) -> list[int]:
    if not len(vectors):
        return []
    before, after = np.split(vectors, 2)
    cosines = np.einsum("nd,nd->n", before, after)
    alone = ROLES[0] if ROLES[0] in dialogue.roles else ""
    places: list[int] = []
    for row in np.argsort(cosines, kind="stable").tolist():
        place = row + 2
        depth = cosines[: row + 1].max() + cosines[row:].max() - 2 * cosines[row]
        near = any(abs(place - other) < WINDOW for other in places)
        if depth > change and not near and alone in ("", dialogue.turns[place].role):
            places.append(place)
    return sorted(places)
