"""How good a flow is, where it is known what utterances do: its clusters, its transitions, and what it foretells.

All measures take the same four things of N annotated utterances: who speaks, what is done, the cluster, and the
dialogue, in order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import log2

import numpy as np

from ..models.errors import InputError
from .flow import Flow
from .graph import (
    END,
    FlowGraph,
    State,
    edge_f1,
    official_size,
    renamed,
    transition_graph,
    transition_shares,
    without_noise,
)
from .smoothing import TransitionModel

FOLDS = 5
"""Into so many parts dialogues are split, to foretell those of each from the others."""


def measured(flow: Flow) -> dict[str, float]:
    """Measures a flow against what its utterances are annotated to do; those without an annotation are passed over.

    Args:
        flow: The flow.

    Returns:
        See `compared_with_actions`, and ``size_difference``, as `hf_dialemb.metrics.graph_size_difference` has it.

    Raises:
        InputError: No utterance has a known action.
    """
    from ..metrics.graph_size_difference.functional import graph_size_difference

    said = flow.utterances
    clusters: dict[int, list[State]] = defaultdict(list)
    actions: dict[int, list[State]] = defaultdict(list)
    for place, role, label, action in zip(said.places, said.roles, flow.labels, said.actions, strict=True):
        if action:
            clusters[place].append((role, flow.clusters[label].id))
            actions[place].append((role, action))
    if not actions:
        raise InputError(
            "got no utterance with dialogue acts or slots, expected some; annotate turns to measure a flow"
        )
    found = compared_with_actions(list(clusters.values()), list(actions.values()))
    sizes = graph_size_difference([found["nodes"]], [found["reference_nodes"]])
    return {"size_difference": sizes["size_difference"], **found}


def compared_with_actions(clusters: Sequence[Sequence[State]], actions: Sequence[Sequence[State]]) -> dict[str, float]:
    """Compares what dialogues do by clusters with what they do by annotations.

    Args:
        clusters: The trajectories of dialogues over clusters, each a role and a name.
        actions: The trajectories of the same utterances over actions, each a role and what it does.

    Returns:
        ``nodes`` and ``reference_nodes``: the states of the graphs of clusters and actions that are no noise (see
        `hf_dialemb.flow.graph.without_noise`); ``official_nodes`` and ``official_reference_nodes`` as the program
        counts them (see `hf_dialemb.flow.graph.official_size`); ``v_measure`` and ``adjusted_rand`` of clusters and
        actions, means over roles; ``edge_f1`` of what is left of the graphs without noise, and
        ``transition_divergence`` of the whole ones, each cluster named for the action that it is matched with: one to
        one within a role, so that most utterances agree; ``next_action_perplexity``, and
        ``reference_next_action_perplexity`` with actions for clusters.

    Raises:
        ValueError: The trajectories are not of the same utterances, or there is none.
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
    """Compares what follows each state, start included, in two graphs.

    Args:
        predicted: A graph with a transition at least, with names as in the reference.
        reference: The graph that it should be, with a transition at least.

    Returns:
        The Jensen-Shannon divergence of what follows a state, in bits, averaged over states by how often they occur:
        the mean of their shares of both graphs. A state that one of the graphs lacks counts 1. In ``[0, 1]``: 0 where
        the same follows every state, 1 where nothing is the same.
    """
    following = _following(predicted), _following(reference)
    weights = _occurrences(predicted), _occurrences(reference)
    total = 0.0
    for state in dict.fromkeys([*following[0], *following[1]]):
        here, there = (found.get(state) for found in following)
        weight = (weights[0].get(state, 0.0) + weights[1].get(state, 0.0)) / 2
        total += weight * (_jensen_shannon(here, there) if here and there else 1.0)
    return min(1.0, total)


def next_action_perplexity(states: Sequence[Sequence[State]], actions: Sequence[Sequence[State]]) -> float:
    """Measures how well the state that a dialogue is in foretells the annotated action that comes next.

    Actions, not clusters, are foretold, so that figures of different clusters can be compared: fewer clusters make
    nothing easier, and one cluster for all knows no more than how often each action occurs. Dialogues are split into
    `FOLDS` parts, and those of each are foretold from the others (see `hf_dialemb.flow.smoothing.TransitionModel`).

    Args:
        states: The states of each dialogue, such as clusters.
        actions: The actions of the same utterances.

    Returns:
        2 to the mean of -log2 of the probability of what followed each utterance, the end included; from 1, where all
        is certain, on. A model that knows nothing has the number of actions, the end included. Lower is better.

    Raises:
        ValueError: The trajectories are not of the same utterances, or there is none.
    """
    _check(states, actions)
    outcomes = [*dict.fromkeys(action for trajectory in actions for action in trajectory), END]
    steps = [
        list(zip(found, [*true[1:], END], strict=True)) for found, true in zip(states, actions, strict=True) if found
    ]
    folds = np.random.default_rng(0).permutation(len(steps)) % FOLDS
    bits = [
        -log2(model.probability((state,), action))
        for fold in range(FOLDS)
        for model in [_fitted(outcomes, [one for one, part in zip(steps, folds, strict=True) if part != fold])]
        for one, part in zip(steps, folds, strict=True)
        if part == fold
        for state, action in one
    ]
    return float(2 ** np.mean(bits))


def _fitted(outcomes: Sequence[State], dialogues: Iterable[Iterable[tuple[State, State]]]) -> TransitionModel:
    model = TransitionModel(outcomes)
    for steps in dialogues:
        for state, action in steps:
            model.add((state,), action)
    return model


def _check(states: Sequence[Sequence[State]], actions: Sequence[Sequence[State]]) -> None:
    if list(map(len, states)) != list(map(len, actions)) or not any(map(len, states)):
        raise ValueError(
            f"states and actions: got {sum(map(len, states))} in {len(states)} dialogues and "
            f"{sum(map(len, actions))} in {len(actions)}, expected one of each for each utterance, and an utterance"
        )


def _pairs_by_role(
    clusters: Sequence[Sequence[State]], actions: Sequence[Sequence[State]]
) -> dict[str, tuple[list[str], list[str]]]:
    _check(clusters, actions)
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
    rows, columns = list(dict.fromkeys(clusters)), sorted(set(actions))
    shared = np.zeros((len(rows), len(columns)), dtype=np.intp)
    places = {name: place for place, name in enumerate(rows)}, {name: place for place, name in enumerate(columns)}
    for cluster, action in zip(clusters, actions, strict=True):
        shared[places[0][cluster], places[1][action]] += 1
    return {rows[row]: columns[column] for row, column in zip(*linear_sum_assignment(-shared), strict=True)}


def _following(graph: FlowGraph) -> dict[State, dict[State, float]]:
    following: dict[State, dict[State, float]] = defaultdict(dict)
    for (source, target), share in transition_shares(graph).items():
        following[source][target] = share
    return following


def _occurrences(graph: FlowGraph) -> dict[State, float]:
    counts: Counter[State] = Counter()
    for (source, _), count in graph.edges.items():
        counts[source] += count
    return {state: count / counts.total() for state, count in counts.items()}


def _jensen_shannon(one: Mapping[State, float], other: Mapping[State, float]) -> float:
    return sum(_bits(one, other, state) + _bits(other, one, state) for state in {**one, **other}) / 2


def _bits(one: Mapping[State, float], other: Mapping[State, float], state: State) -> float:
    share = one.get(state, 0.0)
    return share * log2(2 * share / (share + other.get(state, 0.0))) if share else 0.0
