"""Where a conversation is in a flow, and what is likely to come next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..models.errors import InputError, unknown_name
from .flow import Cluster, Flow
from .graph import END, START, State
from .smoothing import TransitionModel


@dataclass(frozen=True)
class NextAction:
    """What may come next.

    Attributes:
        state: The state, or `END`.
        name: What a person calls it.
        probability: How likely it is, in ``(0, 1]``.
    """

    state: State
    name: str
    probability: float


def assign(
    vectors: NDArray[Any], roles: Sequence[str], centroids: NDArray[Any], clusters: Sequence[Cluster]
) -> NDArray[np.int32]:
    """Finds the cluster of each utterance: of those of its role the one whose centroid is nearest, by cosine.

    Args:
        vectors: Those of N utterances, ``(N, D)``. A vector of zeros gets the direction of the first axis.
        roles: Who says each, N of them.
        centroids: The mean vector of each cluster, ``(C, D)``.
        clusters: The clusters, C of them.

    Returns:
        The number of each one's cluster, ``(N,)``, in ``[0, C)``; of equally near ones the first.

    Raises:
        InputError: No cluster is of a role that speaks.
        ValueError: The shapes do not fit, or a number is not finite.
    """
    utterances, means = _directions("vectors", vectors), _directions("centroids", centroids)
    if len(utterances) != len(roles) or len(means) != len(clusters) or utterances.shape[1] != means.shape[1]:
        raise ValueError(
            f"vectors and centroids: got shapes {utterances.shape} and {means.shape}, expected ({len(roles)}, D) and "
            f"({len(clusters)}, D): one for each role and each cluster"
        )
    speakers = np.array(roles, dtype=object)
    labels = np.zeros(len(roles), dtype=np.int32)
    for role in dict.fromkeys(roles):
        own = [place for place, cluster in enumerate(clusters) if cluster.role == role]
        if not own:
            raise InputError(
                f"field role: got {role!r}, expected one of {', '.join(sorted({one.role for one in clusters}))}, who "
                "speak in the flow; rename the speaker, or extract a flow in which it speaks"
            )
        rows = np.flatnonzero(speakers == role)
        labels[rows] = np.array(own)[(utterances[rows] @ means[own].T).argmax(axis=1)]
    return labels


def next_actions(flow: Flow, history: Sequence[State], top: int = 5) -> list[NextAction]:
    """Finds what is likely to come next.

    Args:
        flow: The flow.
        history: The states of a conversation so far, the latest last; empty for how one begins. What follows the last
            two decides, as far as that was seen (see `hf_dialemb.flow.smoothing.TransitionModel`).
        top: How many to return at most, at least 1.

    Returns:
        The likeliest states, the likeliest first; `END` may be among them. Probabilities of all have sum 1.

    Raises:
        InputError: A state is not of the flow, or ``top`` is below 1.
    """
    if top < 1:
        raise InputError(f"field top: got {top}, expected at least 1; say how many answers to print")
    for state in history:
        if state not in flow.by_state:
            raise unknown_name("state", state[1], [cluster.id for cluster in flow.clusters])
    model = TransitionModel([*flow.graph.states, END])
    for trajectory in flow.trajectories:
        states = (START, *trajectory, END)
        for place in range(1, len(states)):
            model.add(states[max(0, place - 2) : place], states[place])
    latest = (START, *history)[-2:]
    found = [NextAction(state, _name(flow, state), model.probability(latest, state)) for state in model.outcomes]
    return sorted(found, key=lambda one: (-one.probability, one.state))[:top]


def _name(flow: Flow, state: State) -> str:
    return "end" if state == END else flow.by_state[state].name


def _directions(name: str, vectors: NDArray[Any]) -> NDArray[np.float64]:
    directions = np.array(vectors, dtype=np.float64)
    if directions.ndim != 2:
        raise ValueError(f"{name}: got shape {directions.shape}, expected two dimensions: a vector in each row")
    if not np.isfinite(directions).all():
        raise ValueError(f"{name}: got NaN or infinity, expected finite numbers; look at the encoder")
    directions[~directions.any(axis=1), 0] = 1
    return np.asarray(directions / np.linalg.norm(directions, axis=1, keepdims=True))
