"""From trajectories to the graph of a dialogue flow (Dialog2Flow, section 7), and what noise is cut off it.

A state is a role and what it does, an action or a cluster; a trajectory is the states of one dialogue in order. Nothing
here is changed in place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

State = tuple[str, str]
Edge = tuple[State, State]

START: State = ("", "[start]")  # where every trajectory begins; it is in edges, and no state of its own
END: State = ("", "[end]")  # where every trajectory ends; as `START`
NOISE = 0.02
"""A state is noise if it occurs at most so often, as a share of what the most frequent state does: the paper's ε."""

OFFICIAL_NODES = 0.023
"""What the program's weights of nodes must reach; the paper's sizes of reference graphs are those of this threshold."""

OFFICIAL_EDGES = 0.02  # what the program's weights of edges must reach, in the paper's runs


@dataclass(frozen=True)
class FlowGraph:
    """A weighted graph of what follows what."""

    states: Mapping[State, int]  # how often each occurs, without start and end
    edges: Mapping[Edge, int]  # how often a pair occurs in a row, from `START` to the first, last to `END`

    @cached_property
    def following(self) -> dict[State, Counter[State]]:
        """How often each state follows each other one."""
        following: dict[State, Counter[State]] = {}
        for (source, target), count in self.edges.items():
            following.setdefault(source, Counter())[target] = count
        return following

    @cached_property
    def shares(self) -> dict[Edge, float]:
        """How often each transition is taken, as a share of all from the same state, in ``(0, 1]``."""
        totals = {source: targets.total() for source, targets in self.following.items()}
        return {(source, target): count / totals[source] for (source, target), count in self.edges.items()}


def steps_of(trajectory: Sequence[State]) -> list[Edge]:
    """Lists the transitions of a dialogue, from `START` to `END`."""
    return list(zip((START, *trajectory), (*trajectory, END), strict=True))


def transition_graph(trajectories: Iterable[Sequence[State]]) -> FlowGraph:
    """Combines the trajectories of dialogues to one graph; empty ones do not count."""
    states: Counter[State] = Counter()
    edges: Counter[Edge] = Counter()
    for trajectory in trajectories:
        if trajectory:
            states.update(trajectory)
            edges.update(steps_of(trajectory))
    return FlowGraph(dict(states), dict(edges))


def without_noise(graph: FlowGraph, noise: float = NOISE) -> FlowGraph:
    """Takes states of at most some weight in ``[0, 1)`` out, and the edges at them; the most frequent state stays.

    The paper calls the weight of a state its "normalised frequency"; that its program divides by the count of the most
    frequent one is what makes the paper's thresholds and sizes fit together.
    """
    most = max(graph.states.values(), default=1)
    kept = {state: count for state, count in graph.states.items() if count / most > noise}
    return FlowGraph(kept, {edge: count for edge, count in graph.edges.items() if within(edge, kept)})


def official_size(graph: FlowGraph, nodes: float = OFFICIAL_NODES, edges: float = OFFICIAL_EDGES) -> int:
    """Counts the nodes as the paper's program does, start and end included; with the least weights of both.

    An edge's weight is its count as a share of the largest count of an edge out of the same node, self-loops included.
    Self-loops go, then nodes that weigh less than the threshold, then edges that do; each time also the nodes through
    which no path leads from start to end. The program stops with an error where no such path is left; here start and
    end alone then remain.
    """
    most = max(graph.states.values(), default=1)
    largest = {source: max(targets.values()) for source, targets in graph.following.items()}
    weights = {edge: count / largest[edge[0]] for edge, count in graph.edges.items() if edge[0] != edge[1]}
    kept = {state for state, count in graph.states.items() if count / most >= nodes}
    for threshold in (0.0, edges):
        kept &= on_a_way(edge for edge, weight in weights.items() if weight >= threshold and within(edge, kept))
    return len(kept) + 2


def renamed(graph: FlowGraph, names: Mapping[State, State]) -> FlowGraph:
    """Gives states other names, where there are some; states that get the same name become one."""
    states: Counter[State] = Counter()
    edges: Counter[Edge] = Counter()
    for state, count in graph.states.items():
        states[names.get(state, state)] += count
    for (source, target), count in graph.edges.items():
        edges[names.get(source, source), names.get(target, target)] += count
    return FlowGraph(dict(states), dict(edges))


def edge_f1(predicted: FlowGraph, reference: FlowGraph) -> float:
    """Computes the F1 of transitions, each of them as often as it occurs, of two graphs with the same names.

    Twice the transitions that both have, by the sum of those that either has, in ``[0, 1]``; 1 if neither has any.
    """
    shared = sum(min(count, reference.edges.get(edge, 0)) for edge, count in predicted.edges.items())
    every = sum(predicted.edges.values()) + sum(reference.edges.values())
    return 2 * shared / every if every else 1.0


def on_a_way(edges: Iterable[Edge]) -> set[State]:
    """Finds the nodes on any way from start to end, with both of them; none where there is no way."""
    import networkx

    graph = networkx.DiGraph(edges)
    graph.add_nodes_from((START, END))
    found: set[State] = ({START} | networkx.descendants(graph, START)) & ({END} | networkx.ancestors(graph, END))
    return found


def within(edge: Edge, states: Iterable[State]) -> bool:
    """Says whether an edge is between some states, or from the start or to the end."""
    return all(state in states or state in (START, END) for state in edge)
