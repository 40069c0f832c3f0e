"""What of a flow is shown: weights of states and transitions, and the thresholds under which they are left out.

This is what the program of Dialog2Flow does to its graphs, but for self-loops: it takes them out, here they stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal, get_args

from ..errors import InputError, unknown_name
from .graph import END, NOISE, START, FlowGraph, State, on_a_way, within

Weights = Literal["max", "max-out", "prob-out"]
"""How transitions are weighed; see `Pruning`."""


@dataclass(frozen=True)
class Pruning:
    """Which states and transitions are too rare to be shown; an InputError says what is out of range or unknown.

    A state goes if its weight, its count as a share of that of the most frequent state, is at most ``nodes``, in
    ``[0, 1)``, the paper's ε. A transition goes if its weight is less than ``edges``, in ``[0, 1]``: its count as a
    share, by ``"max"``, of the most frequent transition's; by ``"max-out"``, of the most frequent one's from the same
    state; by ``"prob-out"``, of all from the same state.
    """

    nodes: float = NOISE
    edges: float = 0.1
    weights: Weights = "max-out"

    def __post_init__(self) -> None:
        if not 0 <= self.nodes < 1:
            raise InputError(
                f"field nodes: got {self.nodes}, expected a share from 0 to less than 1, of what the most frequent "
                "state has; 0 keeps all states"
            )
        if not 0 <= self.edges <= 1:
            raise InputError(f"field edges: got {self.edges}, expected a share from 0 to 1; 0 keeps all transitions")
        if self.weights not in get_args(Weights):
            raise unknown_name("rule of weights", self.weights, get_args(Weights))


STATES, TRANSITIONS = 30, 2  # so many states, and so many transitions for each, are a picture that a person still reads
_LOW = (0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0002, 0.0001)  # tried where no other leaves a path
_KEPT = 0.9  # of what is said in states, at least, when transitions are left out
_MANY_MORE = 1.5  # times the transitions, which are too many even so
_NOT_MANY_MORE = 1.25  # times the fewest states, which a higher threshold is not worth


@dataclass(frozen=True)
class WeightedGraph:
    """What is shown of a flow, with weights in ``(0, 1]``."""

    nodes: dict[State, float]  # `START` and `END` are there always and weigh 1
    edges: dict[tuple[State, State], float]

    @property
    def states(self) -> tuple[State, ...]:
        """The states, without `START` and `END`."""
        return tuple(state for state in self.nodes if state not in (START, END))


def readable(graph: FlowGraph, *, nodes: float | None, edges: float | None, weights: Weights | None) -> Pruning:
    """Chooses thresholds at which a person sees the main ways; those that are given stay.

    Nodes: the paper's, or the lowest twentieth at which at most `STATES` are shown. Edges: the lowest tenth at which
    there are at most `TRANSITIONS` for each state that is shown. A lower one is taken where frequent states would go,
    such as talk goes to and fro between, unless there are half as many transitions again. Where none leads to so few,
    it is the lowest that leads to the fewest transitions, and to hardly more than the fewest states; where all of these
    leave nothing, such as in one long dialogue, which ends but once, the highest of some lower ones that does not; and
    where nothing is left at all, 0.
    """
    given = Pruning(nodes or 0.0, edges or 0.0, weights or Pruning.weights)

    tenths = [number / 10 for number in range(1, 10)]

    def telling(pruning: Pruning) -> Pruning | None:
        """Chooses transitions that leave hardly any frequent state out, if so many can be read."""
        most = _said(graph, replace(pruning, edges=0.0))
        kept = (one for one in (replace(pruning, edges=each) for each in tenths) if _said(graph, one) >= _KEPT * most)
        found = _lowest(graph, kept, _transitions, 1.0)
        shown = None if found is None else pruned(graph, found)
        return found if shown and _transitions(shown) <= _MANY_MORE and _states(shown) <= 1 else None

    def with_edges(pruning: Pruning) -> Pruning:
        if edges is not None:
            return pruning
        lower = [replace(pruning, edges=one) for one in _LOW]
        tried = [replace(pruning, edges=one) for one in tenths]
        return _lowest(graph, tried, _transitions, 1.0) or _first(graph, lower) or pruning

    tried = (NOISE, *(part / 20 for part in range(1, 11))) if nodes is None else (nodes,)
    if edges is None and (best := next(filter(None, (telling(replace(given, nodes=one)) for one in tried)), None)):
        return best
    found = _lowest(graph, (with_edges(replace(given, nodes=one)) for one in tried), _states, _NOT_MANY_MORE)
    if found is None and nodes is None:
        found = _first(graph, (with_edges(replace(given, nodes=one)) for one in _LOW if one < NOISE))
    return found or given


def _lowest(
    graph: FlowGraph, ascending: Iterable[Pruning], size: Callable[[WeightedGraph], float], more: float
) -> Pruning | None:
    """Finds the first thresholds that show few enough (a size of at most 1), or else ``more`` times the least at most.

    None where the lowest thresholds leave nothing.
    """
    found = []
    for pruning in ascending:
        shown = pruned(graph, pruning)
        if not shown.states:
            break  # higher ones leave nothing either
        found.append((pruning, size(shown)))
        if found[-1][1] <= 1:
            break
    bound = max(1.0, more * min((many for _, many in found), default=1.0))
    return next((pruning for pruning, many in found if many <= bound), None)


def _first(graph: FlowGraph, descending: Iterable[Pruning]) -> Pruning | None:
    return next((one for one in descending if pruned(graph, one).states), None)


def _said(graph: FlowGraph, pruning: Pruning) -> int:
    return sum(graph.states[state] for state in pruned(graph, pruning).states)


def _states(shown: WeightedGraph) -> float:
    return len(shown.states) / STATES


def _transitions(shown: WeightedGraph) -> float:
    return len(shown.edges) / (TRANSITIONS * len(shown.nodes))


def pruned(graph: FlowGraph, pruning: Pruning) -> WeightedGraph:
    """Leaves out what is rare, and what then lies on no way from the start to the end.

    Transitions are weighed among all; then rare states go, then rare transitions, and each time the states that the
    start does not lead to, or that do not lead to the end. The weights of what is left are shares of what is left. A
    self-loop counts as any transition in all of this, but makes no way. The paper's program takes self-loops out once
    all are weighed, so that what is left weighs more there.

    States and transitions come in the order of the graph; start and end are alone where nothing is left.
    """
    most = max(graph.states.values(), default=1)
    shares = {state: count / most for state, count in graph.states.items()}
    weights = _weights(graph, pruning.weights)
    kept = {state for state, share in shares.items() if share > pruning.nodes}
    for threshold in (0.0, pruning.edges):
        frequent = [edge for edge, weight in weights.items() if weight >= threshold]
        kept &= on_a_way(edge for edge in frequent if edge[0] != edge[1] and within(edge, kept))
    left = FlowGraph({}, {edge: graph.edges[edge] for edge in frequent if within(edge, kept)})
    nodes = {START: 1.0, **{state: share for state, share in shares.items() if state in kept}, END: 1.0}
    return WeightedGraph(nodes, _weights(left, pruning.weights))


def _weights(graph: FlowGraph, rule: Weights) -> dict[tuple[State, State], float]:
    if rule == "prob-out":
        return graph.shares
    most = max(graph.edges.values(), default=1)
    wholes = {source: most if rule == "max" else max(targets.values()) for source, targets in graph.following.items()}
    return {edge: count / wholes[edge[0]] for edge, count in graph.edges.items()}
