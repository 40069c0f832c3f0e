"""Where a conversation is in a flow, and what is likely to come next."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..corpora.own.reading import read_own
from ..encoders.specs import find_encoder, fingerprint
from ..errors import InputError, unknown_name
from ..runs.files import check_writable, write_text_atomically
from .clustering import unit
from .flow import Cluster, Flow, Utterances, read_utterances
from .graph import END, START, State, TransitionModel
from .pipeline import CACHE
from .report import short
from .run import encoded
from .stored_flow import StoredFlow, read_flow


@dataclass(frozen=True)
class NextAction:
    """What may come next."""

    state: State  # or `END`
    name: str  # what a person calls it
    probability: float  # in (0, 1]


def next_actions(flow: Flow, history: Sequence[State], top: int = 5) -> list[NextAction]:
    """Finds the states, at most ``top``, that are likeliest to come next, the likeliest first; `END` may be among them.

    The history is the states of a conversation so far, the latest last; empty for how one begins. What follows the last
    two decides, as far as that was seen (see `hf_dialemb.flow.graph.TransitionModel`). Probabilities of all have
    sum 1. An InputError says that a state is not of the flow, or ``top`` is below 1.
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
    names = {END: "end"} | {state: cluster.name for state, cluster in flow.by_state.items()}
    found = [NextAction(state, names[state], model.probability(latest, state)) for state in model.outcomes]
    return sorted(found, key=lambda one: (-one.probability, one.state))[:top]


def describe_next(
    folder: Path, source: str, top: int, output: Path | None, columns: str | None, roles: str | None
) -> Iterator[str]:
    """Says in lines where dialogues stand in a flow, and what is likely to come next.

    ``source`` has the dialogues so far, in one of the forms of `hf_dialemb.corpora.own.reading.read_own`. Where there
    is an ``output``, it gets a line of JSON for each dialogue: its id, the states so far, and the next ones.
    """
    stored = read_flow(folder)
    if output is not None:
        check_writable(output, source)
    said = read_utterances(read_own(source, columns=columns, roles=roles))
    states = [stored.flow.clusters[label].state for label in assigned(stored, folder, said)]
    records = []
    for place, name in enumerate(said.dialogues):
        history = [states[row] for row in said.rows_of(place)]
        actions = next_actions(stored.flow, history, top)
        now = stored.flow.by_state[history[-1]]
        yield f"{short(name)}: at {now.id}, {short(now.name)}"
        yield from (f"  {action.probability:6.1%}  {action.state[1]}  {short(action.name)}" for action in actions)
        likely = [{"state": each.state[1], "name": each.name, "probability": each.probability} for each in actions]
        records.append({"id": name, "states": [state[1] for state in history], "next": likely})
    if output is not None:
        write_text_atomically(output, "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))
        yield f"Wrote {output}"


def assigned(stored: StoredFlow, folder: Path, said: Utterances) -> NDArray[np.int32]:
    """Brings N utterances to the states of a flow by the encoder that made it; returns their clusters, ``(N,)``.

    An InputError says that the encoder is not known, has no vectors of new texts, or is not what it was.
    """
    model = stored.flow.settings.get("model")
    if not model:
        raise InputError(f"flow '{folder}': got one of ready vectors, expected one with an encoder; make it by --model")
    found = find_encoder(model)
    if found.fitted_on_input:
        raise InputError(
            f"flow '{folder}': its model '{model}' has no vectors of new texts; make the flow by an encoder"
        )
    if fingerprint(model) != stored.flow.settings.get("vectors"):
        raise InputError(
            f"flow '{folder}': its model '{model}' is not what the flow was made by; run dialemb flow again"
        )
    return assign(encoded(model, said.texts, folder / CACHE), said.roles, stored.centroids, stored.flow.clusters)


def assign(
    vectors: NDArray[Any], roles: Sequence[str], centroids: NDArray[Any], clusters: Sequence[Cluster]
) -> NDArray[np.int32]:
    """Finds the cluster of each utterance, ``(N,)``: of those of its role the one whose centroid is nearest, by cosine.

    Of equally near ones it is the first. A vector of zeros gets the direction of the first axis. An InputError says
    that no cluster is of a role that speaks.
    """
    utterances, means = unit(np.array(vectors, np.float64)), unit(np.array(centroids, np.float64))
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
