"""Two sets of dialogues over the same states, such as those of two months: which transitions differ, and how surely."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from .flow import Flow
from .graph import FlowGraph, State, transition_graph

SIGNIFICANT = 0.05  # up to this corrected p, a difference is listed before those that may be chance


@dataclass(frozen=True)
class TransitionDifference:
    """How often a transition is taken, in two sets of dialogues."""

    source: State
    target: State
    counts: tuple[int, int]  # in the first set and in the second
    shares: tuple[float | None, float | None]  # of all from the source; None in a set that never comes there
    difference: float | None  # the second share less the first; None where a set never comes to the source
    p: float  # of Fisher's exact test, two-sided; 1 where a set never comes to the source
    corrected_p: float  # after Holm's correction for all transitions whose sources both sets come to; else 1


@dataclass(frozen=True)
class Comparison:
    """How two sets of the dialogues of a flow differ."""

    names: tuple[str, str]  # what each set is called, such as two months
    dialogues: tuple[int, int]  # how many each has
    differences: Sequence[TransitionDifference]
    second: Collection[str] = frozenset()  # the ids of the second set, so that the page says of which each is


def graph_of(flow: Flow, dialogues: Collection[str]) -> FlowGraph:
    """Counts what some dialogues of a flow do, by their ids."""
    wanted, pairs = frozenset(dialogues), zip(flow.utterances.dialogues, flow.trajectories, strict=True)
    return transition_graph(trajectory for name, trajectory in pairs if name in wanted)


def compared(first: FlowGraph, second: FlowGraph) -> list[TransitionDifference]:
    """Compares the transitions of two sets of dialogues over the same states, all that either has.

    First come those whose corrected p is at most `SIGNIFICANT`, each by falling size of the difference; last those
    whose source one set never comes to. The test takes transitions for independent, which those of one dialogue are not
    quite.
    """
    graphs = first, second
    found = []
    for source, target in dict.fromkeys([*first.edges, *second.edges]):
        one, other = (graph.edges.get((source, target), 0) for graph in graphs)
        sizes = [graph.following[source].total() if source in graph.following else 0 for graph in graphs]
        first_share, second_share = (n / size if size else None for n, size in zip((one, other), sizes, strict=True))
        difference, p = None, 1.0
        if first_share is not None and second_share is not None:
            difference, p = second_share - first_share, _exact_p(one, other, sizes[0] - one, sizes[1] - other)
        shares = first_share, second_share
        found.append(TransitionDifference(source, target, (one, other), shares, difference, p, p))
    return sorted(_corrected(found), key=_place)


@lru_cache(maxsize=100_000)  # most transitions are rare, so that many have the same counts
def _exact_p(*counts: int) -> float:
    from scipy.stats import fisher_exact

    return float(fisher_exact([counts[:2], counts[2:]]).pvalue)


def _corrected(differences: list[TransitionDifference]) -> list[TransitionDifference]:
    """Corrects p by Holm's rule."""
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
