"""Two sets of dialogues over the same states, such as those of two months: which transitions differ, and how surely."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import lru_cache

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
        shares: ``counts`` as shares of all transitions from the source; None in a set that never comes there.
        difference: The second share less the first, in ``[-1, 1]``; None where a set never comes to the source.
        p: How likely a table at most as likely as this one is if both are alike: Fisher's exact test, two-sided. 1
            where a set never comes to the source.
        corrected_p: ``p`` after Holm's correction for the number of transitions whose sources both sets come to; 1
            for the others.
    """

    source: State
    target: State
    counts: tuple[int, int]
    shares: tuple[float | None, float | None]
    difference: float | None
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

    The test takes transitions for independent, which those of one dialogue are not quite.

    Args:
        first: The counts of the first set.
        second: Those of the second, over the same states.

    Returns:
        All transitions that either has: first those whose corrected p is at most `SIGNIFICANT`, each by falling size of
        the difference; last those whose source one set never comes to.
    """
    totals = _leaving(first), _leaving(second)
    found = []
    for source, target in dict.fromkeys([*first.edges, *second.edges]):
        counts = first.edges.get((source, target), 0), second.edges.get((source, target), 0)
        sizes = totals[0][source], totals[1][source]
        one, other = (count / size if size else None for count, size in zip(counts, sizes, strict=True))
        difference = None if one is None or other is None else other - one
        p = 1.0 if difference is None else _exact_p(counts, sizes)
        found.append(TransitionDifference(source, target, counts, (one, other), difference, p, p))
    return sorted(_corrected(found), key=_place)


def _leaving(graph: FlowGraph) -> Counter[State]:
    leaving: Counter[State] = Counter()
    for (source, _), count in graph.edges.items():
        leaving[source] += count
    return leaving


@lru_cache(maxsize=100_000)  # most transitions are rare, so that many have the same counts
def _exact_p(counts: tuple[int, int], sizes: tuple[int, int]) -> float:
    """Computes p of Fisher's exact test, two-sided."""
    from scipy.stats import fisher_exact

    others = [size - count for count, size in zip(counts, sizes, strict=True)]
    return float(fisher_exact([counts, others]).pvalue)


def _corrected(differences: list[TransitionDifference]) -> list[TransitionDifference]:
    result = [one for one in differences if one.difference is None]
    tested = sorted((one for one in differences if one.difference is not None), key=lambda one: one.p)
    largest = 0.0
    for place, one in enumerate(tested):
        largest = max(largest, min(1.0, one.p * (len(tested) - place)))
        result.append(replace(one, corrected_p=largest))
    return result


def _place(one: TransitionDifference) -> tuple[bool, bool, float, State, State]:
    size = abs(one.difference or 0.0)
    return one.difference is None, one.corrected_p > SIGNIFICANT, -size, one.source, one.target
