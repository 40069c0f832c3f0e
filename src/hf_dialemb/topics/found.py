"""What topics are made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..dialogue import Dialogue
from ..runs.frames import counted


@dataclass(frozen=True)
class Topic:
    """Dialogues that are about the same."""

    id: str  # topic-1 is the largest
    name: str
    size: int
    phrases: tuple[str, ...]  # what tells it from the others, the most telling first
    said: dict[str, tuple[str, ...]]  # the same of each role alone
    examples: tuple[int, ...]  # the places of its most typical dialogues
    periods: tuple[int, ...]  # how many dialogues it has in each period


@dataclass(frozen=True, eq=False, repr=False)
class Clustered:
    """N dialogues and their topics."""

    title: str
    found: tuple[Topic, ...]
    corpus: tuple[Dialogue, ...]
    labels: NDArray[np.int32]  # the topic of each dialogue, (N,)
    similarity: NDArray[np.float32]  # the cosine of each with the mean of its topic, (N,)
    tree: NDArray[np.float64]  # joins of topics that are alike, (T - 1, 4); see `hf_dialemb.flow.average_linkage`
    places: NDArray[np.float32]  # on the map, (N, 2) in [0, 1]
    periods: tuple[str, ...]  # the beginnings of the periods that dialogues are counted in; empty without times
    unit: str  # hour, day, week, month or year

    @property
    def counts(self) -> str:
        """How many dialogues and topics there are, in words."""
        return f"{counted(len(self.corpus), 'dialogue')}, {counted(len(self.found), 'topic')}"

    def names_of_dialogues(self) -> list[str]:
        """The ids of the dialogues, or their numbers as ``#12``."""
        return [dialogue.id or f"#{number}" for number, dialogue in enumerate(self.corpus, 1)]
