"""Hold groups of dialogues by their unit vectors, and assign dialogues to them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...metrics.vectors import unit

NOWHERE = -1  # the label of a dialogue that fits no topic
LEAST = 0.75
NEW = 0.8
"""Least similarity of a dialogue on a topic, and the one below which it may be of a new topic.

Both are shares of the length of the topic's mean, chosen on the development split of SGD.
"""


class Group(NamedTuple):
    """The facts of a topic that later runs keep."""

    id: str
    name: str = ""  # empty until it is named


@dataclass(frozen=True, eq=False)
class Groups:
    """N dialogues in T topics, by their unit vectors."""

    topics: tuple[Group, ...]  # T with different ids
    means: NDArray[np.float32]  # of the vectors of each topic, (T, D)
    labels: NDArray[np.int32]  # the topic of each dialogue, (N,), in [0, T), or `NOWHERE`
    numbered: int  # the highest number that a topic has had

    @property
    def ids(self) -> list[str]:
        """The ids of the topics."""
        return [topic.id for topic in self.topics]

    @property
    def names(self) -> list[str]:
        """The names of the topics."""
        return [topic.name for topic in self.topics]

    def nearness(self, units: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the cosine of vectors ``(M, D)`` with the mean of each topic, ``(M, T)``."""
        cosines: NDArray[np.float32] = units @ unit(self.means).T
        return cosines

    def assigned(self, units: NDArray[np.float32], stricter: float = 1.0) -> NDArray[np.int32]:
        """Return the nearest topic of vectors ``(M, D)``, or `NOWHERE` if none is near, ``(M,)``.

        A topic is near from its least similarity on, times the factor ``stricter``.
        """
        near = self.nearness(units)
        labels = near.argmax(axis=1)
        least = LEAST * stricter * np.linalg.norm(self.means, axis=1)
        fits = near.max(axis=1) >= least[labels]
        return np.where(fits, labels, NOWHERE).astype(np.int32)

    def at(self, places: Sequence[int]) -> "Groups":
        """Return some of the topics, in this order; dialogues of the others fit nowhere."""
        numbers = np.full(len(self.topics) + 1, NOWHERE, dtype=np.int32)  # the last for `NOWHERE`
        numbers[list(places)] = np.arange(len(places))
        topics = tuple(self.topics[place] for place in places)
        return replace(
            self, topics=topics, means=self.means[list(places)], labels=numbers[self.labels]
        )

    def with_topic(self, place: int, topic: Group) -> "Groups":
        """Replace the facts of a topic."""
        topics = list(self.topics)
        topics[place] = topic
        return replace(self, topics=tuple(topics))

    def with_more(self, units: NDArray[np.float32], labels: NDArray[np.int32]) -> "Groups":
        """Add topics without names, those of dialogues ``(N,)`` whose label is not `NOWHERE`."""
        count = int(labels.max(initial=NOWHERE)) + 1
        means = [*self.means, *(units[labels == number].mean(axis=0) for number in range(count))]
        first = self.numbered + 1
        more = tuple(Group(f"topic-{number}") for number in range(first, first + count))
        moved = np.where(labels == NOWHERE, self.labels, labels + len(self.topics))
        return Groups(
            (*self.topics, *more),
            np.array(means, dtype=np.float32).reshape(-1, units.shape[1]),
            moved.astype(np.int32),
            self.numbered + count,
        )


def no_groups(units: NDArray[np.float32]) -> Groups:
    """Return the groups of vectors ``(N, D)`` that are on no topic yet."""
    return Groups((), units[:0], np.full(len(units), NOWHERE, dtype=np.int32), 0)
