"""Place new dialogues in a flow: where they stand, and what comes next."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data import load_dialogues
from ...encoders import load_encoder
from ...errors import InputError
from ...metrics.vectors import unit_vectors
from .extract import utterance_vectors
from .flow import Cluster, Flow, Utterances, read_utterances
from .flow_folder import CACHE, read_flow
from .graph import END, START, State, TransitionModel


@dataclass(frozen=True)
class NextAction:
    """A state that may come next."""

    state: State  # or `END`
    name: str
    probability: float  # in (0, 1]


def next_actions(flow: Flow, history: Sequence[State], top: int = 5) -> list[NextAction]:
    """Return the ``top`` states that are most likely to come next, the likeliest first.

    `END` may be among them.

    The history is the states of a conversation so far, the latest last. The last two decide, as far
    as they occurred (see `hf_dialemb.apps.flow.graph.TransitionModel`). An InputError refuses a
    ``top`` below 1.
    """
    if top < 1:
        raise InputError(f"field top: got {top}, expected at least 1")
    model = TransitionModel([*flow.graph.states, END])
    for trajectory in flow.trajectories:
        states = (START, *trajectory, END)
        for place in range(1, len(states)):
            model.add(states[max(0, place - 2) : place], states[place])
    latest = (START, *history)[-2:]
    names = {END: "end"} | {state: cluster.name for state, cluster in flow.by_state.items()}
    actions = [
        NextAction(state, names[state], model.probability(latest, state))
        for state in model.outcomes
    ]
    return sorted(actions, key=lambda action: (-action.probability, action.state))[:top]


def next_in_dialogues(
    folder: Path, dialogues: Any, top: int = 5
) -> Iterator[tuple[str, list[Cluster], list[NextAction]]]:
    """Yield the id of each unfinished dialogue, its clusters so far, and what is likely next.

    ``folder`` is the output of ``dialemb flow``; ``dialogues`` are what `load_dialogues` takes.
    """
    flow = read_flow(folder)
    utterances = read_utterances(load_dialogues(dialogues))
    labels = assign(
        new_vectors(flow, folder, utterances), utterances.roles, flow.centroids, flow.clusters
    )
    for place, name in enumerate(utterances.dialogues):
        clusters = [flow.clusters[labels[row]] for row in utterances.rows_of(place)]
        history = [cluster.state for cluster in clusters]
        yield name, clusters, next_actions(flow, history, top)


def new_vectors(flow: Flow, folder: Path, utterances: Utterances) -> NDArray[np.float32]:
    """Embed N utterances by the encoder that made a flow, ``(N, D)``.

    An InputError says that the encoder is unknown or has changed.
    """
    model = flow.settings.get("model")
    if not model:
        raise InputError(
            f"flow '{folder}': got one of ready vectors, expected one that an encoder made"
        )
    encoder = load_encoder(model)
    if encoder.fingerprint != flow.settings.get("vectors"):
        raise InputError(
            f"flow '{folder}': its model '{model}' has changed; run dialemb flow again"
        )
    return utterance_vectors(encoder, utterances.texts, folder / CACHE)


def assign(
    vectors: NDArray[Any],
    roles: Sequence[str],
    centroids: NDArray[Any],
    clusters: Sequence[Cluster],
) -> NDArray[np.int32]:
    """Return for each utterance the cluster of its role with the nearest centroid, ``(N,)``.

    The cosine decides; of equally near ones it is the first. An InputError reports a role without
    clusters.
    """
    utterances = unit_vectors(vectors)
    means = unit_vectors(centroids)
    speakers = np.array(roles, dtype=object)
    labels = np.zeros(len(roles), dtype=np.int32)
    for role in dict.fromkeys(roles):
        own = [place for place, cluster in enumerate(clusters) if cluster.role == role]
        if not own:
            known = ", ".join(sorted({cluster.role for cluster in clusters}))
            raise InputError(
                f"field role: got {role!r}, expected one of {known}, who speak in the flow; rename "
                "the speaker"
            )
        rows = np.flatnonzero(speakers == role)
        labels[rows] = np.array(own)[(utterances[rows] @ means[own].T).argmax(axis=1)]
    return labels
