"""What goes on from a flow: where a conversation stands and what may come next, and how other dialogues differ."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..corpora.own import read_own
from ..evaluation.baselines import BASELINES
from ..evaluation.encoders import find_encoder, fingerprint
from ..flow.comparison import SIGNIFICANT, TransitionDifference, compared, graph_of
from ..flow.files import as_cell
from ..flow.flow import Flow, Utterances, read_utterances
from ..flow.graph import END, START, State
from ..flow.next_action import assign, next_actions
from ..flow.page import write_page
from ..flow.page_record import Comparison
from ..flow.stored_flow import StoredFlow, read_flow
from ..models.errors import InputError
from ..models.files import check_writable, write_text_atomically
from .flow_report import PAGE, short
from .flow_run import CACHE, dialogues_of, encoded

TRANSITIONS = "transitions.csv"
_LISTED = 10  # so many differences are printed


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
        source: The dialogues so far, in one of the forms of `hf_dialemb.corpora.own.read_own`.
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
        check_writable(output)
    said = read_utterances(read_own(source, columns=columns, roles=roles))
    states = [stored.flow.clusters[label].state for label in _assigned(stored, folder, said)]
    records = []
    for place, name in enumerate(said.dialogues):
        history = [states[row] for row in said.rows_of(place)]
        actions = next_actions(stored.flow, history, top)
        now = stored.flow.by_state[history[-1]]
        yield f"{name}: at {now.id}, {short(now.name)}"
        yield from (f"  {action.probability:6.1%}  {action.state[1]}  {short(action.name)}" for action in actions)
        likely = [{"state": each.state[1], "name": each.name, "probability": each.probability} for each in actions]
        records.append({"id": name, "states": [state[1] for state in history], "next": likely})
    if output is not None:
        write_text_atomically(output, "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))
        yield f"Wrote {output}"


def compare_with(
    folder: Path,
    corpus: str,
    output: Path,
    *,
    data_dir: str | None = None,
    split: str = "all",
    domain: str | None = None,
    columns: str | None = None,
    roles: str | None = None,
) -> Iterator[str]:
    """Compares dialogues with those of a flow, transition by transition.

    Args:
        folder: What ``dialemb flow`` wrote.
        corpus: The second set; dialogues that are of the flow themselves are compared with the rest of it, others are
            brought to its states and compared with all of it.
        output: The folder to write: a page and ``transitions.csv``.
        data_dir: See `hf_dialemb.hub.flow_run.dialogues_of`, as for the others.
        split: Which part of a corpus.
        domain: Only dialogues of this domain alone.
        columns: How a table of one's own is read.
        roles: Who is who.

    Yields:
        Lines to print: the transitions that differ most, the surest first.

    Raises:
        InputError: The flow or the input cannot be read, no dialogue is left to compare with, or the flow's encoder is
            not what it was.
    """
    stored = read_flow(folder)
    check_writable(output / PAGE)
    said = read_utterances(dialogues_of(corpus, data_dir, split, domain, columns=columns, roles=roles))
    title = Path(corpus.rstrip("/")).name
    flow, second = _both(stored, folder, said, title)
    first = [name for name in flow.utterances.dialogues if name not in second]
    if not first:
        raise InputError(
            f"--input {corpus}: got all dialogues of the flow, expected some of them, or others; choose some"
        )
    differences = compared(graph_of(flow, first), graph_of(flow, second))
    names = "the rest" if flow is stored.flow else flow.title, title
    sizes = len(first), len(second)
    write_page(flow, output / PAGE, comparison=Comparison(names, sizes, differences))
    write_text_atomically(output / TRANSITIONS, _table(flow, names, differences))
    yield f"{names[0]}: {sizes[0]:,} dialogues; {names[1]}: {sizes[1]:,}"
    yield from _listed(flow, differences)
    yield f"Wrote {output / TRANSITIONS} and {output / PAGE}"


def _assigned(stored: StoredFlow, folder: Path, said: Utterances) -> NDArray[np.int32]:
    """Brings utterances to the states of a flow, by the encoder that made it."""
    model = stored.flow.settings.get("model")
    if not model:
        raise InputError(f"flow '{folder}': got one of ready vectors, expected one with an encoder; make it by --model")
    if find_encoder(model).kind in BASELINES:
        raise InputError(
            f"flow '{folder}': its model '{model}' has no vectors of new texts; make the flow by an encoder"
        )
    if fingerprint(model) != stored.flow.settings["vectors"]:
        raise InputError(
            f"flow '{folder}': its model '{model}' is not what the flow was made by; run dialemb flow again"
        )
    return assign(encoded(model, said.texts, folder / CACHE), said.roles, stored.centroids, stored.flow.clusters)


def _both(stored: StoredFlow, folder: Path, said: Utterances, title: str) -> tuple[Flow, list[str]]:
    """Finds dialogues in a flow, or adds them to it; returns the flow, and their ids in it."""
    flow, known = stored.flow, _contents(stored.flow.utterances)
    if all(known.get(name) == texts for name, texts in _contents(said).items()):
        return flow, list(said.dialogues)
    added = tuple(f"{title}/{name}" for name in said.dialogues)
    both = Utterances(
        flow.utterances.dialogues + added,
        np.concatenate([flow.utterances.places, said.places + np.int32(len(known))]),
        flow.utterances.roles + said.roles,
        flow.utterances.texts + said.texts,
        flow.utterances.actions + said.actions,
    )
    labels = np.concatenate([flow.labels, _assigned(stored, folder, said)])
    return replace(flow, utterances=both, labels=labels), list(added)


def _contents(said: Utterances) -> dict[str, tuple[str, ...]]:
    return {
        name: said.texts[rows.start : rows.stop]
        for name, rows in zip(said.dialogues, map(said.rows_of, range(len(said.dialogues))), strict=True)
    }


def _listed(flow: Flow, differences: Sequence[TransitionDifference]) -> Iterator[str]:
    sure = [one for one in differences if one.corrected_p <= SIGNIFICANT]
    if not sure:
        yield f"None of {len(differences):,} transitions differs more than chance explains"
        return
    yield f"{len(sure):,} of {len(differences):,} transitions differ (p at most {SIGNIFICANT} after Holm's correction):"
    for one in sure[:_LISTED]:
        shares = " to ".join(f"{share:.0%}" for share in one.shares)
        steps = " > ".join(
            f"{_id(state)} {short(_name(flow, state), 40)}".strip() for state in (one.source, one.target)
        )
        yield f"  {shares}  {steps}"


def _table(flow: Flow, names: tuple[str, str], differences: Sequence[TransitionDifference]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream)
    counts, shares = (f"{kind} in {{}}" for kind in ("times", "share"))
    heads = [counts.format(names[0]), counts.format(names[1]), shares.format(names[0]), shares.format(names[1])]
    writer.writerow(["from", "to", "from name", "to name", *heads, "difference", "p", "corrected p"])
    for one in differences:
        figures = [*one.counts, *one.shares, one.difference, one.p, one.corrected_p]
        names_of = [as_cell(_name(flow, state)) for state in (one.source, one.target)]
        writer.writerow([_id(one.source), _id(one.target), *names_of, *figures])
    return stream.getvalue()


def _id(state: State) -> str:
    return state[1]


def _name(flow: Flow, state: State) -> str:
    return "" if state in (START, END) else flow.by_state[state].name
