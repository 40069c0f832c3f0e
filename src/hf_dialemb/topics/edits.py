"""Group dialogues into topics, and change the groups as a person asks: a small file that every run replays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..metrics.vectors import unit

NOWHERE = -1  # the label of a dialogue that fits no topic
_STRAY = 0.05  # the share of a topic's own dialogues that lie below its least similarity


@dataclass(frozen=True, eq=False)
class Groups:
    """N dialogues in T topics, by their unit vectors."""

    ids: tuple[str, ...]  # T different ones
    names: tuple[str, ...]  # empty where a topic is still to be named
    stability: tuple[str, ...]  # of each, or empty where it is not known yet
    means: NDArray[np.float32]  # of the vectors of each topic, shorter the more these differ, (T, D)
    least: NDArray[np.float32]  # the similarity from which on a new dialogue is on a topic, (T,)
    labels: NDArray[np.int32]  # the topic of each dialogue, (N,), in [0, T), or `NOWHERE`
    numbered: int  # the highest number that a topic has had

    def nearness(self, units: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the cosine of vectors ``(M, D)`` with the mean of each topic, ``(M, T)``."""
        cosines: NDArray[np.float32] = units @ unit(self.means).T
        return cosines

    def assigned(self, units: NDArray[np.float32]) -> NDArray[np.int32]:
        """Return the nearest topic of vectors ``(M, D)``, ``(M,)``, or `NOWHERE` if it is not near enough."""
        near = self.nearness(units)
        labels = near.argmax(axis=1)
        fits = near[np.arange(len(near)), labels] >= self.least[labels]
        return np.where(fits, labels, NOWHERE).astype(np.int32)

    def with_more(self, units: NDArray[np.float32], labels: NDArray[np.int32]) -> Groups:
        """Add topics that are still to be named: those of dialogues ``(N,)`` whose label is not `NOWHERE`."""
        count, total = int(labels.max(initial=NOWHERE)) + 1, len(self.ids)
        means, least = [*self.means], [*self.least]
        for number in range(count):
            own = units[labels == number]
            means.append(own.mean(axis=0))
            least.append(np.quantile(own @ unit(means[-1:])[0], _STRAY))
        return Groups(
            (*self.ids, *(f"topic-{self.numbered + number + 1}" for number in range(count))),
            (*self.names, *("",) * count),
            (*self.stability, *("",) * count),
            np.array(means, dtype=np.float32).reshape(-1, units.shape[1]),
            np.array(least, dtype=np.float32),
            np.where(labels == NOWHERE, self.labels, labels + total).astype(np.int32),
            self.numbered + count,
        )


def no_groups(units: NDArray[np.float32]) -> Groups:
    """Return the groups of vectors ``(N, D)`` that are on no topic yet."""
    labels = np.full(len(units), NOWHERE, dtype=np.int32)
    return Groups((), (), (), units[:0], np.zeros(0, dtype=np.float32), labels, 0)
