"""Two sets of dialogues by the states of one flow: what do the others do otherwise?"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, count
from pathlib import Path

import numpy as np

from ..errors import InputError
from ..runs.files import check_writable, write_text_atomically
from .comparison import SIGNIFICANT, Comparison, TransitionDifference, compared, graph_of
from .exports import as_cell
from .flow import Flow, Utterances, read_utterances, restricted_to
from .graph import END, START, State
from .next import assigned
from .page.page import write_page
from .pruning import readable
from .report import PAGE, short
from .run import Selection
from .stored_flow import StoredFlow, read_flow

TRANSITIONS = "transitions.csv"
_LISTED = 10  # so many differences are printed


def compare_with(folder: Path, selection: Selection, output: Path) -> Iterator[str]:
    """Compares dialogues with those of a flow in a folder; says in lines which transitions differ, the surest first.

    Dialogues that are of the flow themselves are compared with the rest of it; others are brought to its states by the
    nearest centre, and then those of the flow are as well. Writes a page and ``transitions.csv``.
    """
    stored = read_flow(folder)
    said = read_utterances(selection.dialogues)
    for name in (PAGE, TRANSITIONS):
        check_writable(output / name, folder / PAGE, selection.corpus)
    title = selection.name
    flow, second = _both(stored, folder, said, title)
    chosen = frozenset(second)
    first = [name for name in flow.utterances.dialogues if name not in chosen]
    if not first:
        raise InputError(
            f"--input {selection.corpus}: got all dialogues of the flow, expected some of them, or others; choose some"
        )
    differences = compared(graph_of(flow, first), graph_of(flow, second))
    whole = len(first) == len(stored.flow.utterances.dialogues)
    names = flow.title if whole else "the rest", title
    sizes = len(first), len(second)
    shown = readable(flow.graph, nodes=None, edges=None, weights=None)
    write_page(flow, output / PAGE, shown, comparison=Comparison(names, sizes, differences, chosen))
    write_text_atomically(output / TRANSITIONS, _table(flow, names, differences))
    yield f"{names[0]}: {sizes[0]:,} dialogues; {names[1]}: {sizes[1]:,}"
    yield from _listed(flow, differences)
    yield f"Wrote {output / TRANSITIONS} and {output / PAGE}"


def _both(stored: StoredFlow, folder: Path, said: Utterances, title: str) -> tuple[Flow, list[str]]:
    """Finds dialogues in a flow and adds the others to it; returns the flow, and the ids of all of them in it."""
    flow, known, found = stored.flow, _contents(stored.flow.utterances), _contents(said)
    ids: dict[str, str] = {}
    for name, content in found.items():
        # A folder of the flow, given by itself, has ids without the folder's name.
        same = next((each for each in (name, f"{title}/{name}") if known.get(each) == content), None)
        free = chain([f"{title}/{name}"], (f"{title}/{name} ({number})" for number in count(2)))
        ids[name] = same or next(each for each in free if each not in known)
    new = [place for place, name in enumerate(said.dialogues) if ids[name] not in known]
    if not new:
        return flow, list(ids.values())
    others = restricted_to(said, np.flatnonzero(np.isin(said.places, new)))
    names = [each.names or ("",) * len(each) for each in (flow.utterances, others)]
    both = Utterances(
        flow.utterances.dialogues + tuple(ids[name] for name in others.dialogues),
        np.concatenate([flow.utterances.places, others.places + np.int32(len(known))]),
        flow.utterances.roles + others.roles,
        flow.utterances.texts + others.texts,
        flow.utterances.actions + others.actions,
        names[0] + names[1] if flow.utterances.names or others.names else (),
    )
    # By one rule for both sides: beside the flow's own clusters, nearest centres would show differences of their own.
    return replace(flow, utterances=both, labels=assigned(stored, folder, both)), list(ids.values())


def _contents(said: Utterances) -> dict[str, tuple[tuple[str, str], ...]]:
    return {
        name: tuple(zip(said.roles[rows.start : rows.stop], said.texts[rows.start : rows.stop], strict=True))
        for name, rows in zip(said.dialogues, map(said.rows_of, range(len(said.dialogues))), strict=True)
    }


def _listed(flow: Flow, differences: Sequence[TransitionDifference]) -> Iterator[str]:
    both = sum(one.difference is not None for one in differences)
    sure = [one for one in differences if one.corrected_p <= SIGNIFICANT]
    if not sure:
        yield f"None of {both:,} transitions from states that both have differs more than chance explains"
        return
    yield f"{len(sure):,} of {both:,} transitions differ (p at most {SIGNIFICANT} after Holm's correction):"
    for one in sure[:_LISTED]:
        shares = " to ".join("—" if share is None else f"{share:.0%}" for share in one.shares)
        steps = " > ".join(f"{end[1]} {short(_name(flow, end), 40)}".strip() for end in (one.source, one.target))
        yield f"  {shares}  {steps}"


def _table(flow: Flow, names: tuple[str, str], differences: Sequence[TransitionDifference]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream)
    heads = [f"{kind} in {name}" for kind in ("times", "share") for name in names]
    writer.writerow(["from", "to", "from name", "to name", *heads, "difference", "p", "corrected p"])
    for one in differences:
        figures = [*one.counts, *one.shares, one.difference, one.p, one.corrected_p]
        ends = one.source, one.target
        writer.writerow([*(end[1] for end in ends), *(as_cell(_name(flow, end)) for end in ends), *figures])
    return stream.getvalue()


def _name(flow: Flow, state: State) -> str:
    return "" if state in (START, END) else flow.by_state[state].name
