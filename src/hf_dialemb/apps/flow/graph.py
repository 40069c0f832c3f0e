"""The graph of a flow (Dialog2Flow, section 7).

States, transitions, what is shown of them, and what comes next.

A state is a role and what it does: an action or a cluster. A trajectory is the states of one
dialogue in order.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ...errors import InputError

State = tuple[str, str]
Edge = tuple[State, State]

START: State = ("", "[start]")  # where every trajectory begins; only edges have it
END: State = ("", "[end]")  # where every trajectory ends; only edges have it
# the paper's ε: states of at most this share of the most frequent state's count are noise
NOISE = 0.02
STATES = 30  # that a person reads
TRANSITIONS = 2.5  # of each state
# tried where all others leave no path
_LOW = (0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0002, 0.0001)


@dataclass(frozen=True)
class FlowGraph:
    """A weighted graph of states."""

    states: Mapping[State, int]  # how often each occurs, without start and end
    # how often a pair occurs in a row, from `START` to the first, last to `END`
    edges: Mapping[Edge, int]

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
        return {edge: count / totals[edge[0]] for edge, count in self.edges.items()}


@dataclass(frozen=True)
class Pruning:
    """The thresholds of a graph.

    A state is left out if its weight is at most ``nodes``, in ``[0, 1)``: its count divided by that
    of the most frequent state (the paper's ε). A transition is left out if its weight is less than
    ``edges``, in ``[0, 1]``: its count divided by that of the most frequent transition from the
    same state.

    Raises:
        InputError: A threshold is out of range.
    """

    nodes: float = NOISE
    edges: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.nodes < 1:
            raise InputError(f"field nodes: got {self.nodes}, expected a share from 0 to below 1")
        if not 0 <= self.edges <= 1:
            raise InputError(f"field edges: got {self.edges}, expected a share from 0 to 1")


@dataclass(frozen=True)
class WeightedGraph:
    """The shown part of a flow, with weights in ``(0, 1]``."""

    nodes: dict[State, float]  # `START` and `END` are always there and weigh 1
    edges: dict[Edge, float]

    @property
    def states(self) -> tuple[State, ...]:
        """The states, without `START` and `END`."""
        return tuple(state for state in self.nodes if state not in (START, END))


def steps_of(trajectory: Sequence[State]) -> list[Edge]:
    """List the transitions of a dialogue, from `START` to `END`."""
    return list(zip((START, *trajectory), (*trajectory, END), strict=True))


def transition_graph(trajectories: Iterable[Sequence[State]]) -> FlowGraph:
    """Combine the trajectories of dialogues to a graph; empty ones do not count."""
    states: Counter[State] = Counter()
    edges: Counter[Edge] = Counter()
    for trajectory in filter(None, trajectories):
        states.update(trajectory)
        edges.update(steps_of(trajectory))
    return FlowGraph(dict(states), dict(edges))


def on_a_way(edges: Iterable[Edge]) -> set[State]:
    """Return the nodes on any way from start to end, with both; empty where there is no way."""
    import networkx

    graph = networkx.DiGraph(edges)
    graph.add_nodes_from((START, END))
    nodes: set[State] = ({START} | networkx.descendants(graph, START)) & (
        {END} | networkx.ancestors(graph, END)
    )
    return nodes


def within(edge: Edge, states: Collection[State]) -> bool:
    """Return whether both ends of an edge are among the states, or start or end."""
    return all(state in states or state in (START, END) for state in edge)


def pruned(graph: FlowGraph, pruning: Pruning) -> WeightedGraph:
    """Leave out rare states, then rare transitions, and each time the states on no way to the end.

    Transitions are weighed among all; the weights of what is left are shares of what is left. A
    self-loop counts as any transition, but makes no way. The official program removes self-loops
    once all transitions are weighed.
    """
    most = max(graph.states.values(), default=1)
    shares = {state: count / most for state, count in graph.states.items()}
    weights = _weights(graph)
    kept = {state for state, share in shares.items() if share > pruning.nodes}
    for threshold in (0.0, pruning.edges):
        frequent = [edge for edge, weight in weights.items() if weight >= threshold]
        kept &= on_a_way(edge for edge in frequent if edge[0] != edge[1] and within(edge, kept))
    left = FlowGraph({}, {edge: graph.edges[edge] for edge in frequent if within(edge, kept)})
    shown = {state: share for state, share in shares.items() if state in kept}
    nodes = {START: 1.0, **shown, END: 1.0}
    return WeightedGraph(nodes, _weights(left))


def _weights(graph: FlowGraph) -> dict[Edge, float]:
    most = {source: max(targets.values()) for source, targets in graph.following.items()}
    return {edge: count / most[edge[0]] for edge, count in graph.edges.items()}


def readable(graph: FlowGraph, nodes: float | None = None, edges: float | None = None) -> Pruning:
    """Choose thresholds at which a person sees the main ways; given ones stay.

    They are those that show most utterances among all at which at most `STATES` states and
    `TRANSITIONS` transitions per state are shown, and the least crowded ones where there are none.
    Where none of these leaves anything, as in one long dialogue, much lower ones are tried.
    """
    usual = [NOISE, *(part / 20 for part in range(1, 11))], [part / 10 for part in range(1, 10)]
    for node_thresholds, edge_thresholds in (usual, (_LOW, _LOW)):
        choices = [
            (_unreadable(graph, shown), pruning)
            for node in (node_thresholds if nodes is None else [nodes])
            for edge in (edge_thresholds if edges is None else [edges])
            for pruning in [Pruning(node, edge)]
            if (shown := pruned(graph, pruning)).states
        ]
        if choices:
            return min(choices, key=lambda choice: choice[0])[1]
    return Pruning(nodes or 0.0, edges or 0.0)


def _unreadable(graph: FlowGraph, shown: WeightedGraph) -> tuple[float, int]:
    """Return how many times too crowded the shown part is, and the utterances it lacks."""
    crowd = max(
        1.0, len(shown.states) / STATES, len(shown.edges) / (TRANSITIONS * len(shown.nodes))
    )
    return crowd, -sum(map(graph.states.__getitem__, shown.states))


class TransitionModel:
    """Probabilities of what follows a history, latest state last, by Witten-Bell smoothing.

    A history was seen n times, with t different outcomes. An outcome that was seen c times then has
    probability ``(c + t p) / (n + t)``. Here p is its probability after the history without its
    first state; after no history, 1 divided by the number of outcomes. A history that was never
    seen changes nothing.
    """

    def __init__(self, outcomes: Collection[State]) -> None:
        self.outcomes = tuple(outcomes)
        self._counts: dict[tuple[State, ...], Counter[State]] = {}

    def add(self, history: Sequence[State], outcome: State, times: int = 1) -> None:
        """Count an outcome after a history and after each of its ends.

        Negative ``times`` take counts back.
        """
        for first in range(len(history) + 1):
            counts = self._counts.setdefault(tuple(history[first:]), Counter())
            counts[outcome] += times
            if not counts[outcome]:
                del counts[outcome]  # else it would count as a different outcome that was seen

    def count(self, steps: Iterable[Edge], times: int = 1) -> None:
        """Count pairs of a state and its outcome; see `add`."""
        for state, outcome in steps:
            self.add((state,), outcome, times)

    def probability(self, history: Sequence[State], outcome: State) -> float:
        """Return the probability of an outcome, in ``(0, 1]``; all outcomes sum to 1."""
        estimate = 1 / len(self.outcomes)
        for first in range(len(history), -1, -1):
            if counts := self._counts.get(tuple(history[first:])):
                estimate = (counts[outcome] + len(counts) * estimate) / (
                    counts.total() + len(counts)
                )
        return estimate
