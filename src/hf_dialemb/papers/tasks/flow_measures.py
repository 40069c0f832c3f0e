"""Measure a flow where it is known what utterances do: its clusters, its transitions, and what it predicts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain
from math import log, log2

import numpy as np

from ...flow.graph import END, NOISE, FlowGraph, State, TransitionModel, on_a_way, transition_graph, within

FOLDS = 5  # parts of the dialogues; each part is predicted from the others
# The least weights of nodes and edges in the official program. The paper's reference graphs have these thresholds.
OFFICIAL_NODES, OFFICIAL_EDGES = 0.023, 0.02


def compared_with_actions(clusters: Sequence[Sequence[State]], actions: Sequence[Sequence[State]]) -> dict[str, float]:
    """Compare the trajectories of dialogues by clusters with those by annotated actions.

    Returns:
        ``nodes`` and ``reference_nodes``: states of both graphs `without_noise`. ``official_nodes`` and
        ``official_reference_nodes``: see `official_size`. ``v_measure`` and ``adjusted_rand`` of clusters and actions:
        means over roles. ``edge_f1`` of the graphs without noise and ``transition_divergence`` of the whole ones, after
        clusters are matched one to one with actions of their role. ``next_action_perplexity``, and
        ``reference_next_action_perplexity`` with actions for clusters.
    """
    from sklearn.metrics import adjusted_rand_score, v_measure_score

    pairs = _pairs_by_role(clusters, actions)
    reference, induced = transition_graph(actions), transition_graph(clusters)
    matched = {
        (role, name): (role, action) for role, names in pairs.items() for name, action in _matching(*names).items()
    }
    small, expected = without_noise(induced), without_noise(reference)
    return {
        "nodes": len(small.states),
        "reference_nodes": len(expected.states),
        "official_nodes": official_size(induced),
        "official_reference_nodes": official_size(reference),
        "v_measure": float(np.mean([v_measure_score(true, predicted) for predicted, true in pairs.values()])),
        "adjusted_rand": float(np.mean([adjusted_rand_score(true, predicted) for predicted, true in pairs.values()])),
        "edge_f1": edge_f1(renamed(small, matched), expected),
        "transition_divergence": transition_divergence(renamed(induced, matched), reference),
        "next_action_perplexity": next_action_perplexity(clusters, actions),
        "reference_next_action_perplexity": next_action_perplexity(actions, actions),
    }


def without_noise(graph: FlowGraph, noise: float = NOISE) -> FlowGraph:
    """Remove the states whose weight is at most ``noise``, and their edges.

    The weight is the state's count divided by that of the most frequent state, as in the official program. The paper
    calls it the "normalised frequency".
    """
    most = max(graph.states.values(), default=1)
    kept = {state: count for state, count in graph.states.items() if count / most > noise}
    return FlowGraph(kept, {edge: count for edge, count in graph.edges.items() if within(edge, kept)})


def official_size(graph: FlowGraph, nodes: float = OFFICIAL_NODES, edges: float = OFFICIAL_EDGES) -> int:
    """Count the nodes as the official program does, start and end included.

    An edge weighs its count divided by the largest count of an edge from the same node, self-loops included. The
    program removes self-loops, then nodes below their threshold, then edges below theirs; each time also the nodes on
    no path from start to end. It fails where no such path is left; here start and end then remain.
    """
    most = max(graph.states.values(), default=1)
    largest = {source: max(targets.values()) for source, targets in graph.following.items()}
    weights = {edge: count / largest[edge[0]] for edge, count in graph.edges.items() if edge[0] != edge[1]}
    kept = {state for state, count in graph.states.items() if count / most >= nodes}
    for threshold in (0.0, edges):
        kept &= on_a_way(edge for edge, weight in weights.items() if weight >= threshold and within(edge, kept))
    return len(kept) + 2


def renamed(graph: FlowGraph, names: Mapping[State, State]) -> FlowGraph:
    """Rename states; those that get the same name are merged."""
    states: Counter[State] = Counter()
    edges: Counter[tuple[State, State]] = Counter()
    for state, count in graph.states.items():
        states[names.get(state, state)] += count
    for (source, target), count in graph.edges.items():
        edges[names.get(source, source), names.get(target, target)] += count
    return FlowGraph(dict(states), dict(edges))


def edge_f1(predicted: FlowGraph, reference: FlowGraph) -> float:
    """Compute the F1 of transitions, in ``[0, 1]``, over graphs with the same names; 1 if neither has transitions."""
    first, second = Counter(predicted.edges), Counter(reference.edges)
    every = first.total() + second.total()
    return 2 * (first & second).total() / every if every else 1.0


def transition_divergence(predicted: FlowGraph, reference: FlowGraph) -> float:
    """Compute how differently states are followed in two graphs with the same names, in ``[0, 1]``.

    This is the Jensen-Shannon divergence of what follows a state, in bits, start included. States are weighted by the
    mean of their shares of both graphs. A state that a graph lacks counts 1.
    """
    from scipy.special import rel_entr

    graphs = predicted, reference
    totals = [sum(graph.edges.values()) for graph in graphs]
    divergence = 0.0
    for state in dict.fromkeys([*predicted.following, *reference.following]):
        following = [graph.following.get(state, Counter[State]()) for graph in graphs]
        weight = sum(counts.total() / total for counts, total in zip(following, totals, strict=True)) / 2
        if not all(following):
            divergence += weight
            continue
        targets = following[0] | following[1]
        shares = [np.array([counts[target] for target in targets]) / counts.total() for counts in following]
        middle = (shares[0] + shares[1]) / 2
        divergence += weight * sum(float(rel_entr(of_graph, middle).sum()) for of_graph in shares) / (2 * log(2))
    return min(1.0, divergence)


def next_action_perplexity(states: Sequence[Sequence[State]], actions: Sequence[Sequence[State]]) -> float:
    """Compute how well the state of a dialogue predicts the next annotated action; lower is better, 1 is perfect.

    Actions are predicted, not clusters, so that figures of different clusterings compare. Dialogues are split into
    `FOLDS` parts; each is predicted from the others by `TransitionModel`. The result is 2 to the mean of -log2 of the
    probability of what followed each utterance, the end included.
    """
    outcomes = [*dict.fromkeys(chain.from_iterable(actions)), END]
    pairs = zip(states, actions, strict=True)
    steps = [list(zip(own, [*true[1:], END], strict=True)) for own, true in pairs if own]
    folds = np.random.default_rng(0).permutation(len(steps)) % FOLDS
    model, bits = TransitionModel(outcomes), []
    model.count(chain.from_iterable(steps))
    for fold in range(FOLDS):
        held_out = [step for place in np.flatnonzero(folds == fold) for step in steps[place]]
        model.count(held_out, -1)
        bits += [-log2(model.probability((state,), action)) for state, action in held_out]
        model.count(held_out)
    return float(2 ** np.mean(bits))


def _pairs_by_role(
    clusters: Sequence[Sequence[State]], actions: Sequence[Sequence[State]]
) -> dict[str, tuple[list[str], list[str]]]:
    pairs: dict[str, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for predicted, true in zip(clusters, actions, strict=True):
        for (role, name), (_, action) in zip(predicted, true, strict=True):
            pairs[role][0].append(name)
            pairs[role][1].append(action)
    return {role: pairs[role] for role in sorted(pairs)}


def _matching(clusters: Sequence[str], actions: Sequence[str]) -> dict[str, str]:
    """Match clusters one to one with actions so that most utterances agree; some clusters may be left over."""
    from scipy.optimize import linear_sum_assignment

    # Ties are decided by where clusters first occur, so that their names do not matter.
    shared = Counter(zip(clusters, actions, strict=True))
    rows, columns = list(dict.fromkeys(clusters)), sorted(set(actions))
    table = np.array([[shared[row, column] for column in columns] for row in rows])
    return {rows[row]: columns[column] for row, column in zip(*linear_sum_assignment(-table), strict=True)}
