"""From trajectories to the graph of a dialogue flow (Dialog2Flow, section 7), and what noise is cut off it.

A state is a role and what it does, an action or a cluster; a trajectory is the states of one dialogue in order. Nothing
here is changed in place.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

State = tuple[str, str]

START: State = ("", "[start]")
"""Where every trajectory begins; it is in edges, and no state of its own."""

END: State = ("", "[end]")
"""Where every trajectory ends; as `START`."""

NOISE = 0.02
"""A state is noise if it occurs at most so often, as a share of what the most frequent state does: the paper's ε."""

OFFICIAL_NODES = 0.023
"""What the program's weights of nodes must reach; the paper's sizes of reference graphs are those of this threshold."""

OFFICIAL_EDGES = 0.02
"""What the program's weights of edges must reach, in the paper's runs."""


@dataclass(frozen=True)
class FlowGraph:
    """A weighted graph of what follows what.

    Attributes:
        states: How often each state occurs; `START` and `END` are left out.
        edges: How often each pair of states occurs in a row, with `START` before the first and `END` after the last.
    """

    states: Mapping[State, int]
    edges: Mapping[tuple[State, State], int]


def transition_graph(trajectories: Iterable[Sequence[State]]) -> FlowGraph:
    """Combines trajectories to one graph.

    Args:
        trajectories: The states of each dialogue, in order; empty ones do not count.

    Returns:
        The graph of all states and transitions.
    """
    states: Counter[State] = Counter()
    edges: Counter[tuple[State, State]] = Counter()
    for trajectory in trajectories:
        if trajectory:
            states.update(trajectory)
            edges.update(zip((START, *trajectory), (*trajectory, END), strict=True))
    return FlowGraph(dict(states), dict(edges))


def without_noise(graph: FlowGraph, noise: float = NOISE) -> FlowGraph:
    """Takes rare states out, and the edges at them.

    The paper calls the weight of a state its "normalised frequency"; that its program divides by the count of the most
    frequent one is what makes the paper's thresholds and sizes fit together.

    Args:
        graph: The graph.
        noise: States of at most this weight are taken out, in ``[0, 1)``.

    Returns:
        The graph of what is left: of any graph, the most frequent state at least.
    """
    most = max(graph.states.values(), default=1)
    return restricted(graph, {state for state, count in graph.states.items() if count / most > noise})


def official_size(graph: FlowGraph, nodes: float = OFFICIAL_NODES, edges: float = OFFICIAL_EDGES) -> int:
    """Counts the nodes as the paper's program does.

    An edge's weight is its count as a share of the largest count of an edge out of the same node, self-loops included.
    Self-loops go, then nodes that weigh less than the threshold, then edges that do; each time also the nodes through
    which no path leads from start to end. The program stops with an error where no such path is left; here start and
    end alone then remain.

    Args:
        graph: The graph.
        nodes: The least weight of a node.
        edges: The least weight of an edge.

    Returns:
        The number of nodes that are left, start and end included.
    """
    most = max(graph.states.values(), default=1)
    largest: dict[State, int] = defaultdict(int)
    for (source, _), count in graph.edges.items():
        largest[source] = max(largest[source], count)
    weights = {edge: count / largest[edge[0]] for edge, count in graph.edges.items() if edge[0] != edge[1]}
    kept = {state for state, count in graph.states.items() if count / most >= nodes}
    for threshold in (0.0, edges):
        remaining = [edge for edge, weight in weights.items() if weight >= threshold and _within(edge, kept)]
        kept &= reached(START, remaining) & reached(END, [(target, source) for source, target in remaining])
    return len(kept) + 2


def restricted(graph: FlowGraph, states: set[State]) -> FlowGraph:
    """Keeps some states, and the edges between them, from the start and to the end."""
    return FlowGraph(
        {state: count for state, count in graph.states.items() if state in states},
        {edge: count for edge, count in graph.edges.items() if _within(edge, states)},
    )


def renamed(graph: FlowGraph, names: Mapping[State, State]) -> FlowGraph:
    """Gives states other names; states that get the same name become one.

    Args:
        graph: The graph.
        names: From old name to new; states that it lacks keep theirs.

    Returns:
        The same graph under new names.
    """
    states: Counter[State] = Counter()
    edges: Counter[tuple[State, State]] = Counter()
    for state, count in graph.states.items():
        states[names.get(state, state)] += count
    for (source, target), count in graph.edges.items():
        edges[names.get(source, source), names.get(target, target)] += count
    return FlowGraph(dict(states), dict(edges))


def edge_f1(predicted: FlowGraph, reference: FlowGraph) -> float:
    """Computes the F1 of transitions, each of them as often as it occurs.

    Args:
        predicted: A graph, with names as in the reference.
        reference: The graph that it should be.

    Returns:
        Twice the transitions that both have, by the sum of those that either has, in ``[0, 1]``; 1 if neither has any.
    """
    shared = sum(min(count, reference.edges.get(edge, 0)) for edge, count in predicted.edges.items())
    every = sum(predicted.edges.values()) + sum(reference.edges.values())
    return 2 * shared / every if every else 1.0


def transition_shares(graph: FlowGraph) -> dict[tuple[State, State], float]:
    """Computes how often each transition is taken, as a share of all from the same state, in ``(0, 1]``."""
    leaving: Counter[State] = Counter()
    for (source, _), count in graph.edges.items():
        leaving[source] += count
    return {(source, target): count / leaving[source] for (source, target), count in graph.edges.items()}


def reached(first: State, edges: Iterable[tuple[State, State]]) -> set[State]:
    """Finds the states that a state leads to, over any number of edges, with itself."""
    following = defaultdict(list)
    for source, target in edges:
        following[source].append(target)
    found, waiting = {first}, deque([first])
    while waiting:
        for state in following[waiting.popleft()]:
            if state not in found:
                found.add(state)
                waiting.append(state)
    return found


def _within(edge: tuple[State, State], states: set[State]) -> bool:
    return all(state in states or state in (START, END) for state in edge)
