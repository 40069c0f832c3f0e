"""Two sets of dialogues over the same states, such as those of two months: which transitions differ, and how surely."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from math import erfc, sqrt

from ..models.errors import InputError
from .flow import Flow
from .graph import FlowGraph, State, transition_graph

SIGNIFICANT = 0.05
"""Up to this corrected p, a difference is listed before those that may be chance."""


@dataclass(frozen=True)
class TransitionDifference:
    """How often a transition is taken, in two sets of dialogues.

    Attributes:
        source: Where it leads from; may be `START`.
        target: Where it leads to; may be `END`.
        counts: How often it is taken in the first set and in the second.
        shares: ``counts`` as shares of all transitions from the source; 0 in a set that never comes there.
        difference: The second share less the first, in ``[-1, 1]``.
        p: How likely at least such a difference is if both are alike; two-sided, of two proportions. 1 where a set
            never comes to the source.
        corrected_p: ``p`` after Holm's correction for the number of transitions that are compared.
    """

    source: State
    target: State
    counts: tuple[int, int]
    shares: tuple[float, float]
    difference: float
    p: float
    corrected_p: float


def graph_of(flow: Flow, dialogues: Collection[str]) -> FlowGraph:
    """Counts what some dialogues of a flow do.

    Args:
        flow: The flow.
        dialogues: Their ids.

    Returns:
        Their graph.

    Raises:
        InputError: An id is not of the flow.
    """
    wanted = set(dialogues)
    if unknown := wanted - set(flow.utterances.dialogues):
        raise InputError(
            f"dialogue '{min(unknown)}': got an id that is not of the flow, expected one that is; look it up"
        )
    pairs = zip(flow.utterances.dialogues, flow.trajectories, strict=True)
    return transition_graph(trajectory for name, trajectory in pairs if name in wanted)


def compared(first: FlowGraph, second: FlowGraph) -> list[TransitionDifference]:
    """Compares the transitions of two sets of dialogues.

    The test takes transitions for independent, which those of one dialogue are not quite; it is rough where counts are
    below five.

    Args:
        first: The counts of the first set.
        second: Those of the second, over the same states.

    Returns:
        All transitions that either has: first those whose corrected p is at most `SIGNIFICANT`, each by falling size of
        the difference.
    """
    totals = _leaving(first), _leaving(second)
    found = []
    for source, target in dict.fromkeys([*first.edges, *second.edges]):
        counts = first.edges.get((source, target), 0), second.edges.get((source, target), 0)
        sizes = totals[0][source], totals[1][source]
        shares = counts[0] / max(sizes[0], 1), counts[1] / max(sizes[1], 1)
        p = _two_sided_p(counts, sizes)
        found.append(TransitionDifference(source, target, counts, shares, shares[1] - shares[0], p, p))
    return sorted(_corrected(found), key=_place)


def _leaving(graph: FlowGraph) -> Counter[State]:
    leaving: Counter[State] = Counter()
    for (source, _), count in graph.edges.items():
        leaving[source] += count
    return leaving


def _two_sided_p(counts: tuple[int, int], sizes: tuple[int, int]) -> float:
    """Computes p of the z test of two proportions, its variance pooled."""
    if not all(sizes):
        return 1.0
    pooled = sum(counts) / sum(sizes)
    variance = pooled * (1 - pooled) * (1 / sizes[0] + 1 / sizes[1])
    if not variance:
        return 1.0  # all of both take it
    return erfc(abs(counts[0] / sizes[0] - counts[1] / sizes[1]) / sqrt(2 * variance))


def _corrected(differences: list[TransitionDifference]) -> list[TransitionDifference]:
    largest, result = 0.0, []
    for place, one in enumerate(sorted(differences, key=lambda one: one.p)):
        largest = max(largest, min(1.0, one.p * (len(differences) - place)))
        result.append(replace(one, corrected_p=largest))
    return result


def _place(one: TransitionDifference) -> tuple[bool, float, State, State]:
    return one.corrected_p > SIGNIFICANT, -abs(one.difference), one.source, one.target
