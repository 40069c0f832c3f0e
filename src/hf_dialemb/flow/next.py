"""Where a conversation stands in a flow, and what may come next."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..corpora.own.reading import read_own
from ..encoders.baselines import BASELINES
from ..encoders.specs import find_encoder, fingerprint
from ..models.errors import InputError
from ..runs.files import check_writable, write_text_atomically
from .flow import Utterances, read_utterances
from .next_action import assign, next_actions
from .pipeline import CACHE
from .report import short
from .run import encoded
from .stored_flow import StoredFlow, read_flow


def describe_next(
    folder: Path,
    source: str,
    top: int = 5,
    output: Path | None = None,
    *,
    columns: str | None = None,
    roles: str | None = None,
) -> Iterator[str]:
    """Says where dialogues stand in a flow, and what is likely to come next.

    Args:
        folder: What ``dialemb flow`` wrote.
        source: The dialogues so far, in one of the forms of `hf_dialemb.corpora.own.reading.read_own`.
        top: How many actions to list of each, at least 1.
        output: A JSONL file to write as well: of each dialogue its id, the states so far, and the next ones.
        columns: How a table of one's own is read.
        roles: Who is who.

    Yields:
        Lines to print.

    Raises:
        InputError: The flow or the input cannot be read, or the flow's encoder is not what it was.
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
    """Brings utterances to the states of a flow, by the encoder that made it.

    Args:
        stored: The flow.
        folder: Where it lies, with what its encoder did already.
        said: The utterances, N of them.

    Returns:
        The number of each one's cluster, ``(N,)``.

    Raises:
        InputError: The encoder is not known, has no vectors of new texts, or is not what it was.
    """
    model = stored.flow.settings.get("model")
    if not model:
        raise InputError(f"flow '{folder}': got one of ready vectors, expected one with an encoder; make it by --model")
    found = find_encoder(model)
    if found.kind in BASELINES or found.whitened:
        raise InputError(
            f"flow '{folder}': its model '{model}' has no vectors of new texts; make the flow by an encoder"
        )
    if fingerprint(model) != stored.flow.settings["vectors"]:
        raise InputError(
            f"flow '{folder}': its model '{model}' is not what the flow was made by; run dialemb flow again"
        )
    return assign(encoded(model, said.texts, folder / CACHE), said.roles, stored.centroids, stored.flow.clusters)
