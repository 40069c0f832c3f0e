"""Vectors of turns that know their conversation.

Each turn alone, and read with what stands around it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..dialogue import Dialogue
from ..display import data_frame
from ..methods.sessions import BESIDE
from ..metrics.vectors import unit


@dataclass(frozen=True, eq=False, repr=False)
class TurnTable:
    """N turns as columns."""

    vectors: NDArray[np.float32]  # a vector of length 1 for each, (N, D) float32
    dialogue: list[str]  # the id of its dialogue, or ``#12`` for the twelfth if it has none
    turn: NDArray[np.int64]  # its place in its dialogue, from 0 on, (N,) int64
    role: list[str]  # who speaks
    speaker: list[str]  # the speaker's name, or empty
    time: list[str]  # when it was said, in ISO 8601, or empty
    content: list[str]  # what was said

    def __len__(self) -> int:
        return len(self.content)

    def __repr__(self) -> str:
        return f"TurnTable({len(self):,} turns)"

    def frame(self) -> Any:
        """Return a DataFrame with a row for each turn; its vector is in the last column."""
        columns = {field.name: list(getattr(self, field.name)) for field in fields(self)[1:]}
        return data_frame(
            [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        ).assign(vector=list(self.vectors))

    @classmethod
    def of(cls, dialogues: Sequence[Dialogue], vectors: NDArray[np.float32]) -> Self:
        """Make the table of all turns of some dialogues, in their order."""
        rows = [
            (dialogue.id or f"#{number}", place, turn.role, turn.name, turn.time, turn.content)
            for number, dialogue in enumerate(dialogues, 1)
            for place, turn in enumerate(dialogue.turns)
        ]
        names, places, *others = map(list, zip(*rows, strict=True))
        return cls(vectors, names, np.array(places, dtype=np.int64), *others)


def with_neighbours(
    vectors: NDArray[np.float32], lengths: Sequence[int], beside: Mapping[int, float] = BESIDE
) -> NDArray[np.float32]:
    """Add to the unit vectors of turns (N, D) those beside them in their session.

    ``lengths`` are the numbers of turns of the sessions; ``beside`` has the weights of the turns so
    far before, or after.
    """
    units = unit(vectors)
    mixed = units.copy()
    owner = np.repeat(np.arange(len(lengths)), lengths)
    for distance, weight in beside.items():
        far = abs(distance)
        same = weight * (owner[far:] == owner[:-far])[:, None].astype(np.float32)
        if distance > 0:
            mixed[far:] += same * units[:-far]
        else:
            mixed[:-far] += same * units[far:]
    return unit(mixed)
