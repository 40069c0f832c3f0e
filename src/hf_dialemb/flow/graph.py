"""Build the graph of a dialogue flow from trajectories (Dialog2Flow, section 7), and predict the next state.

A state is a role and what it does: an action or a cluster. A trajectory is the states of one dialogue in order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

State = tuple[str, str]
Edge = tuple[State, State]

START: State = ("", "[start]")  # where every trajectory begins; only edges have it
END: State = ("", "[end]")  # where every trajectory ends; only edges have it
NOISE = 0.02  # the paper's ε: states of at most this share of the most frequent state's count are noise


@dataclass(frozen=True)
class FlowGraph:
    """A weighted graph of states."""

    states: Mapping[State, int]  # how often each occurs, without start and end
    edges: Mapping[Edge, int]  # how often a pair occurs in a row, from `START` to the first, last to `END`

    @cached_property
    def following(self) -> dict[State, Counter[State]]:
        """How often each state is followed by each other."""
        following: dict[State, Counter[State]] = {}
        for (source, target), count in self.edges.items():
            following.setdefault(source, Counter())[target] = count
        return following

    @cached_property
    def shares(self) -> dict[Edge, float]:
        """The share of each transition among all from the same state, in ``(0, 1]``."""
        totals = {source: targets.total() for source, targets in self.following.items()}
        return {(source, target): count / totals[source] for (source, target), count in self.edges.items()}


def steps_of(trajectory: Sequence[State]) -> list[Edge]:
    """List the transitions of a dialogue, from `START` to `END`."""
    return list(zip((START, *trajectory), (*trajectory, END), strict=True))


def transition_graph(trajectories: Iterable[Sequence[State]]) -> FlowGraph:
    """Combine the trajectories of dialogues to a graph; empty ones do not count."""
    states: Counter[State] = Counter()
    edges: Counter[Edge] = Counter()
    for trajectory in trajectories:
        if trajectory:
            states.update(trajectory)
            edges.update(steps_of(trajectory))
    return FlowGraph(dict(states), dict(edges))


def on_a_way(edges: Iterable[Edge]) -> set[State]:
    """Return the nodes on any way from start to end, with both; empty where there is no way."""
    import networkx

    graph = networkx.DiGraph(edges)
    graph.add_nodes_from((START, END))
    nodes: set[State] = ({START} | networkx.descendants(graph, START)) & ({END} | networkx.ancestors(graph, END))
    return nodes


def within(edge: Edge, states: Collection[State]) -> bool:
    """Return whether both ends of an edge are among the states, or start or end."""
    return all(state in states or state in (START, END) for state in edge)


class TransitionModel:
    """Probabilities of what follows a history, latest state last, by Witten-Bell smoothing, which has no parameter.

    A history was seen n times, with t different outcomes. An outcome that was seen c times then has probability
    ``(c + t p) / (n + t)``. Here p is its probability after the history without its first state; after no history, 1
    divided by the number of outcomes. A history that was never seen changes nothing.
    """

    def __init__(self, outcomes: Collection[State]) -> None:
        self.outcomes = tuple(outcomes)
        self._counts: dict[tuple[State, ...], Counter[State]] = {}

    def add(self, history: Sequence[State], outcome: State, times: int = 1) -> None:
        """Count an outcome after a history and after each of its ends; a negative number takes counts back."""
        for first in range(len(history) + 1):
            counts = self._counts.setdefault(tuple(history[first:]), Counter())
            counts[outcome] += times
            if not counts[outcome]:
                del counts[outcome]  # else it would count as a different outcome that was seen

    def count(self, steps: Iterable[tuple[State, State]], times: int = 1) -> None:
        """Count pairs of a state and its outcome; see `add`."""
        for state, outcome in steps:
            self.add((state,), outcome, times)

    def probability(self, history: Sequence[State], outcome: State) -> float:
        """Return the probability of an outcome, in ``(0, 1]``; all outcomes sum to 1."""
        estimate = 1 / len(self.outcomes)
        for first in range(len(history), -1, -1):
            if counts := self._counts.get(tuple(history[first:])):
                estimate = (counts[outcome] + len(counts) * estimate) / (counts.total() + len(counts))
        return estimate
