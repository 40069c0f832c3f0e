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

    The parts of ``a`` are ``a/1`` and ``a/2``, and whole ones stay as they are. Those without an id
    are named by their number, as ``#12``.
    """
    parts = []
    for name, dialogue in zip(ids_of(dialogues), dialogues, strict=True):
        begins = [0, *boundaries(dialogue, encoder)]
        if len(begins) == 1:
            parts.append(replace(dialogue, id=name))
            continue
        ends = [*begins[1:], len(dialogue.turns)]
        for number, (begin, end) in enumerate(zip(begins, ends, strict=True), 1):
            turns = dialogue.turns[begin:end]
            parts.append(replace(dialogue, turns=turns, id=f"{name}/{number}"))
    return parts


def boundaries(dialogue: Dialogue, encoder: Encoder, change: float = CHANGE) -> list[int]:
    """Find the turns with which a dialogue goes on to something else.

    These are the customer's where one speaks. The vectors of `WINDOW` turns before and from a turn
    are compared. The topic changes where their cosine is a valley (Hearst, 1997): it lies below the
    highest cosine on either side by more than ``change`` in all, in ``[0, 4]``.
    """
    turns = dialogue.turns
    if len(turns) < 2 * WINDOW:
        return []
    candidates = range(2, len(turns) - 1)
    windows = [Dialogue(turns[max(0, place - WINDOW) : place]) for place in candidates]
    windows += [Dialogue(turns[place : place + WINDOW]) for place in candidates]
    before, after = np.split(unit(np.asarray(encoder.encode(windows))), 2)
    cosines: NDArray[np.float32] = np.einsum("nd,nd->n", before, after)
    highest_before = np.maximum.accumulate(cosines)
    highest_after = np.maximum.accumulate(cosines[::-1])[::-1]
    depths = highest_before + highest_after - 2 * cosines
    has_customer = ROLES[0] in dialogue.roles
    places: list[int] = []
    for row in np.argsort(cosines, kind="stable"):
        place = candidates[row]
        is_near = any(abs(place - other) < WINDOW for other in places)
        is_begun_by_other = has_customer and turns[place].role != ROLES[0]
        if depths[row] > change and not is_near and not is_begun_by_other:
            places.append(place)
    return sorted(places)
