"""How likely each state is to come next, from counts of what came next: Witten-Bell smoothing, without a parameter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from .graph import State


class TransitionModel:
    """Probabilities of what follows a history, the latest state last, smoothed to those after ever shorter histories.

    After a history that was seen n times, with t different outcomes, an outcome that was seen c times has probability
    ``(c + t p) / (n + t)``, with p its probability after the history without its first state; after no history, p is
    one by the number of outcomes. A history that was never seen changes nothing.
    """

    def __init__(self, outcomes: Collection[State]) -> None:
        self.outcomes = tuple(outcomes)
        self._counts: dict[tuple[State, ...], Counter[State]] = {}

    def add(self, history: Sequence[State], outcome: State, times: int = 1) -> None:
        """Counts an outcome after a history and each end of it; below 0 times takes back what was counted before."""
        for first in range(len(history) + 1):
            counts = self._counts.setdefault(tuple(history[first:]), Counter())
            counts[outcome] += times
            if not counts[outcome]:
                del counts[outcome]  # else it would count as a different outcome that was seen

    def count(self, steps: Iterable[tuple[State, State]], times: int = 1) -> None:
        """Counts what followed each of some states; see `add`."""
        for state, outcome in steps:
            self.add((state,), outcome, times)

    def probability(self, history: Sequence[State], outcome: State) -> float:
        """Computes how likely an outcome is, in ``(0, 1]``; those of all outcomes have sum 1."""
        estimate = 1 / len(self.outcomes)
        for first in range(len(history), -1, -1):
            if counts := self._counts.get(tuple(history[first:])):
                estimate = (counts[outcome] + len(counts) * estimate) / (counts.total() + len(counts))
        return estimate
