"""How good a flow is, where it is known what utterances do: its clusters, its transitions, and what it foretells."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import chain
from math import log, log2

import numpy as np

from .graph import END, FlowGraph, State, edge_f1, official_size, renamed, transition_graph, without_noise
from .smoothing import TransitionModel

FOLDS = 5  # into so many parts dialogues are split, to foretell those of each from the others


def compared_with_actions(clusters: Sequence[Sequence[State]], actions: Sequence[Sequence[State]]) -> dict[str, float]:
    """Compares what dialogues do by clusters with what they do by annotations, by two trajectories of each dialogue.

    ``nodes`` and ``reference_nodes`` are the states of the graphs of clusters and actions that are no noise (see
    `hf_dialemb.flow.graph.without_noise`); ``official_nodes`` and ``official_reference_nodes`` as the program counts
    them (see `hf_dialemb.flow.graph.official_size`); ``v_measure`` and ``adjusted_rand`` of clusters and actions, means
    over roles; ``edge_f1`` of what is left of the graphs without noise, and ``transition_divergence`` of the whole
    ones, each cluster named for the action that it is matched with: one to one within a role, so that most utterances
    agree; ``next_action_perplexity``, and ``reference_next_action_perplexity`` with actions for clusters.
    """
    from sklearn.metrics import adjusted_rand_score, v_measure_score

    pairs = _pairs_by_role(clusters, actions)
    reference, induced = transition_graph(actions), transition_graph(clusters)
    matched = {
        (role, name): (role, action)
        for role, (found, true) in pairs.items()
        for name, action in _matching(found, true).items()
    }
    small, expected = without_noise(induced), without_noise(reference)
    return {
        "nodes": len(small.states),
        "reference_nodes": len(expected.states),
        "official_nodes": official_size(induced),
        "official_reference_nodes": official_size(reference),
        "v_measure": float(np.mean([v_measure_score(true, found) for found, true in pairs.values()])),
        "adjusted_rand": float(np.mean([adjusted_rand_score(true, found) for found, true in pairs.values()])),
        "edge_f1": edge_f1(renamed(small, matched), expected),
        "transition_divergence": transition_divergence(renamed(induced, matched), reference),
        "next_action_perplexity": next_action_perplexity(clusters, actions),
        "reference_next_action_perplexity": next_action_perplexity(actions, actions),
    }


def transition_divergence(predicted: FlowGraph, reference: FlowGraph) -> float:
    """Compares what follows each state, start included, in two graphs with the same names and a transition at least.

    It is the Jensen-Shannon divergence of what follows a state, in bits, averaged over states by how often they occur:
    the mean of their shares of both graphs. A state that one of the graphs lacks counts 1. In ``[0, 1]``: 0 where the
    same follows every state, 1 where nothing is the same.
    """
    from scipy.special import rel_entr

    graphs = predicted, reference
    totals = [sum(graph.edges.values()) for graph in graphs]
    divergence = 0.0
    for state in dict.fromkeys([*predicted.following, *reference.following]):
        found = [graph.following.get(state, Counter[State]()) for graph in graphs]
        weight = sum(counts.total() / total for counts, total in zip(found, totals, strict=True)) / 2
        if not all(found):
            divergence += weight
            continue
        here, there = (np.array([counts[one] for one in found[0] | found[1]]) / counts.total() for counts in found)
        middle = (here + there) / 2
        divergence += weight * float((rel_entr(here, middle) + rel_entr(there, middle)).sum()) / (2 * log(2))
    return min(1.0, divergence)


def next_action_perplexity(states: Sequence[Sequence[State]], actions: Sequence[Sequence[State]]) -> float:
    """Measures how well the state that a dialogue is in foretells the annotated action that comes next.

    Actions, not clusters, are foretold, so that figures of different clusters can be compared: fewer clusters make
    nothing easier, and one cluster for all knows no more than how often each action occurs. Dialogues are split into
    `FOLDS` parts, and those of each are foretold from the others (see `hf_dialemb.flow.smoothing.TransitionModel`).
    The result is 2 to the mean of -log2 of the probability of what followed each utterance, the end included; from 1,
    where all is certain, on. A model that knows nothing has the number of actions, the end included. Lower is better.
    """
    outcomes = [*dict.fromkeys(action for trajectory in actions for action in trajectory), END]
    steps = [
        list(zip(found, [*true[1:], END], strict=True)) for found, true in zip(states, actions, strict=True) if found
    ]
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
    for found, true in zip(clusters, actions, strict=True):
        for (role, name), (_, action) in zip(found, true, strict=True):
            pairs[role][0].append(name)
            pairs[role][1].append(action)
    return {role: pairs[role] for role in sorted(pairs)}


def _matching(clusters: Sequence[str], actions: Sequence[str]) -> dict[str, str]:
    """Matches clusters one to one with actions; clusters that are left over are not in the result."""
    from scipy.optimize import linear_sum_assignment

    # Ties are decided by where clusters first occur, so that their names do not matter.
    shared = Counter(zip(clusters, actions, strict=True))
    rows, columns = list(dict.fromkeys(clusters)), sorted(set(actions))
    table = np.array([[shared[row, column] for column in columns] for row in rows])
    return {rows[row]: columns[column] for row, column in zip(*linear_sum_assignment(-table), strict=True)}
