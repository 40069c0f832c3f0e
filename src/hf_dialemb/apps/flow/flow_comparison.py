"""Compare two sets of dialogues by the states of a flow.

What is new, how they end, and how they go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, count
from math import floor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data import load_dialogues
from ...errors import InputError
from ...metrics.vectors import unit
from ...storage.files import write_text_atomically
from ..pages.page import Comparison, TransitionDifference, write_page
from .exports import as_cell, table_of
from .extract import short
from .flow import Flow, Utterances, read_utterances, restricted_to
from .flow_clustering import cluster
from .flow_folder import PAGE, StoredFlow, read_flow
from .graph import END, START, FlowGraph, State, readable, transition_graph
from .new_dialogues import assign, new_vectors
from .paths import ends
from .step_names import centroids, named

TRANSITIONS = "transitions.csv"
SIGNIFICANT = 0.05  # a difference with a higher corrected p may be chance
_LISTED = 10  # differences that are printed
_FAR = (
    0.01  # the share of the flow's own utterances that lie as far from their states as what is new
)
_FEWEST = 5  # dialogues with a new state
_ONE = 0.5  # the mean cosine distance below which new utterances are one state


@dataclass(frozen=True)
class ShareDifference:
    """How many dialogues of two sets have something."""

    name: str
    counts: tuple[int, int]
    sizes: tuple[int, int]  # of the sets
    # of Fisher's exact test, two-sided, corrected by Holm's rule for all that were tested together
    p: float

    @property
    def sure(self) -> bool:
        """Whether it is more than chance explains."""
        return self.p <= SIGNIFICANT

    def __str__(self) -> str:
        before, after = (
            _percent(count, size) for count, size in zip(self.counts, self.sizes, strict=True)
        )
        return f"{before} to {after}"


@dataclass(frozen=True, eq=False)
class FlowChanges:
    """How a second set of dialogues differs from those of a flow."""

    flow: Flow  # with both, and with states that are new in the second
    comparison: Comparison
    new: tuple[ShareDifference, ...]  # dialogues with a new state
    ends: tuple[ShareDifference, ...]  # dialogues that end in a way

    def lines(self) -> Iterator[str]:
        """Say what differs: new states, then ends, then transitions, the surest of these first."""
        (first, second), sizes = self.comparison.names, self.comparison.dialogues
        yield f"{first}: {sizes[0]:,} dialogues; {second}: {sizes[1]:,}"
        yield from self.findings()
        yield from _listed(self.flow, self.comparison.differences)

    def findings(self) -> list[str]:
        """Say which states are new, and which ends differ."""
        new = [
            f"New in {self.comparison.names[1]}: {change.name}, {change} of dialogues"
            for change in self.new
        ]
        return new + [f"Conversations that are {end.name}: {end}" for end in self.ends if end.sure]


def tested_shares(
    tables: Sequence[tuple[str, tuple[int, int], tuple[int, int]]],
) -> list[ShareDifference]:
    """Test shares of two sets, each a name, counts and sizes, by Fisher's test, corrected together
    by Holm's rule.
    """
    p = [
        exact_p(*counts, sizes[0] - counts[0], sizes[1] - counts[1]) for _, counts, sizes in tables
    ]
    return [
        ShareDifference(*table, corrected) for table, corrected in zip(tables, holm(p), strict=True)
    ]


def holm(p: Sequence[float]) -> list[float]:
    """Correct p values for their number by Holm's rule (1979)."""
    largest, corrected = 0.0, [1.0] * len(p)
    for place, row in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        largest = max(largest, min(1.0, p[row] * (len(p) - place)))
        corrected[row] = largest
    return corrected


@lru_cache(maxsize=100_000)  # most transitions are rare, so that many have the same counts
def exact_p(*counts: int) -> float:
    """Return the p value of Fisher's exact test of a table of two by two counts, two-sided."""
    from scipy.stats import fisher_exact

    return float(fisher_exact([counts[:2], counts[2:]]).pvalue)


def compare_with(folder: Path, dialogues: Any, output: Path, title: str) -> Iterator[str]:
    """Compare dialogues with those of a flow in a folder; yield lines on what differs.

    See `compare_flow`. Writes a page and ``transitions.csv``.
    """
    changes = compare_flow(folder, dialogues, title)
    flow, comparison = changes.flow, changes.comparison
    write_page(flow, output / PAGE, readable(flow.graph), comparison=comparison)
    write_text_atomically(
        output / TRANSITIONS, _table(flow, comparison.names, comparison.differences)
    )
    yield from changes.lines()
    yield f"Wrote {output / TRANSITIONS} and {output / PAGE}"


def compare_flow(folder: Path, dialogues: Any, title: str) -> FlowChanges:
    """Compare dialogues with those of a flow in a folder.

    Dialogues that are part of the flow are compared with the rest of it. Others are assigned to its
    states by the nearest centroid, and then those of the flow are as well; what they say that is
    far from every state is a new one.
    """
    stored = read_flow(folder)
    flow, second = _both(stored, folder, read_utterances(load_dialogues(dialogues)), title)
    first = set(flow.utterances.dialogues) - second
    if not first:
        raise InputError(
            f"{title}: got all dialogues of the flow, expected some of them, or others; choose some"
        )
    differences = compared(graph_of(flow, first), graph_of(flow, second))
    whole = second.isdisjoint(stored.flow.utterances.dialogues)
    names, sizes = (flow.title if whole else "the rest", title), (len(first), len(second))
    kinds: dict[str, tuple[int, int]] = {}
    for end in ends(flow):
        in_second = sum(name in second for name in end.dialogues)
        before = kinds.get(end.kind, (0, 0))
        kinds[end.kind] = before[0] + len(end.dialogues) - in_second, before[1] + in_second
    new = _new_states(flow, second, len(stored.flow.clusters))
    tables = [(kind, counts, sizes) for kind, counts in kinds.items()]
    changes = FlowChanges(
        flow, Comparison(names, sizes, differences, second), new, tuple(tested_shares(tables))
    )
    comparison = replace(changes.comparison, findings=changes.findings())
    return replace(changes, comparison=comparison)


def _new_states(flow: Flow, second: Collection[str], known: int) -> tuple[ShareDifference, ...]:
    """Count the dialogues with each state from the place ``known`` on."""
    sizes = len(flow.utterances.dialogues) - len(second), len(second)
    tables = []
    for number, state in enumerate(flow.clusters[known:], known):
        places = np.unique(flow.utterances.places[flow.labels == number])
        in_second = sum(flow.utterances.dialogues[place] in second for place in places)
        name = f'the {state.role} says "{short(state.name, 60)}"'
        tables.append((name, (len(places) - in_second, in_second), sizes))
    return tuple(change for change in tested_shares(tables) if change.sure)


def _both(
    stored: StoredFlow, folder: Path, utterances: Utterances, title: str
) -> tuple[Flow, set[str]]:
    """Find dialogues in a flow and add the others to it.

    Return the flow, and the ids of all of them in it.
    """
    flow, known = stored.flow, _contents(stored.flow.utterances)
    ids: dict[str, str] = {}
    for name, content in _contents(utterances).items():
        # A folder that is part of the flow's input has ids without the folder's name.
        same = next(
            (known_id for known_id in (name, f"{title}/{name}") if known.get(known_id) == content),
            None,
        )
        free = chain([f"{title}/{name}"], (f"{title}/{name} ({number})" for number in count(2)))
        ids[name] = same or next(new_id for new_id in free if new_id not in known)
    new = [place for place, name in enumerate(utterances.dialogues) if ids[name] not in known]
    if not new:
        return flow, set(ids.values())
    parts = (
        flow.utterances,
        restricted_to(utterances, np.flatnonzero(np.isin(utterances.places, new))),
    )
    roles, texts, actions = (
        sum((getattr(part, name) for part in parts), ()) for name in ("roles", "texts", "actions")
    )
    names = [part.names or ("",) * len(part) for part in parts]
    both = Utterances(
        parts[0].dialogues + tuple(ids[name] for name in parts[1].dialogues),
        np.concatenate([parts[0].places, parts[1].places + np.int32(len(known))]),
        roles,
        texts,
        actions,
        names[0] + names[1] if parts[0].names or parts[1].names else (),
    )
    # Both sides follow one rule: nearest centroids beside the flow's own clusters would show
    # differences of their own.
    vectors, means = new_vectors(stored, folder, both), stored.centroids
    labels = assign(vectors, both.roles, means, flow.clusters)
    flow = replace(flow, utterances=both, labels=labels)
    is_new = np.arange(len(both)) >= len(stored.flow.utterances)
    return with_new_states(flow, vectors, means, is_new), set(ids.values())


def with_new_states(
    flow: Flow, vectors: NDArray[np.float32], means: NDArray[np.float32], is_new: NDArray[np.bool_]
) -> Flow:
    """Make states of new utterances that are far from every state, where several are alike, and
    assign all again.

    Far is what lies farther than all but `_FAR` of the flow's own. Vectors are ``(N, D)``.
    """
    units, utterances, clusters = unit(vectors), flow.utterances, list(flow.clusters)
    near = np.einsum("nd,nd->n", units, unit(means)[flow.labels])
    for role, rows in utterances.rows_by_role().items():
        bound = np.quantile(near[rows[~is_new[rows]]], _FAR) if (~is_new[rows]).any() else 0.0
        far = rows[is_new[rows] & (near[rows] < bound)]
        if len(far) < _FEWEST:
            continue
        labels = cluster(vectors[far], threshold=_ONE).labels
        large = [
            label
            for label in np.unique(labels)
            if len(np.unique(utterances.places[far[labels == label]])) >= _FEWEST
        ]
        if not large:
            continue
        kept = np.isin(labels, large)
        part = named(
            "", restricted_to(utterances, far[kept]), vectors[far[kept]], {role: labels[kept]}
        )
        means = np.concatenate([means, centroids(vectors[far[kept]], part.labels)])
        clusters += [
            replace(state, id=f"{role}-new-{number}")
            for number, state in enumerate(part.clusters, 1)
        ]
    return replace(
        flow, clusters=tuple(clusters), labels=assign(vectors, utterances.roles, means, clusters)
    )


def _contents(utterances: Utterances) -> dict[str, list[tuple[str, str]]]:
    turns = list(zip(utterances.roles, utterances.texts, strict=True))
    rows = map(utterances.rows_of, range(len(utterances.dialogues)))
    return {
        name: turns[own.start : own.stop]
        for name, own in zip(utterances.dialogues, rows, strict=True)
    }


def graph_of(flow: Flow, dialogues: Collection[str]) -> FlowGraph:
    """Return the graph of some dialogues of a flow, by their ids."""
    pairs = zip(flow.utterances.dialogues, flow.trajectories, strict=True)
    return transition_graph(trajectory for name, trajectory in pairs if name in dialogues)


def compared(first: FlowGraph, second: FlowGraph) -> list[TransitionDifference]:
    """Compare all transitions of two sets of dialogues over the same states, with p corrected by
    Holm's rule.

    Significant differences come first, by falling size; last come transitions whose source a set
    never reaches. The test treats transitions as independent, which those of one dialogue are not
    quite.
    """
    tested, untested = list[TransitionDifference](), list[TransitionDifference]()
    for source, target in sorted({*first.edges, *second.edges}):
        before, after = (graph.edges.get((source, target), 0) for graph in (first, second))
        sizes = [graph.following.get(source, Counter()).total() for graph in (first, second)]
        shares = before / sizes[0] if sizes[0] else None, after / sizes[1] if sizes[1] else None
        ends, counts = (source, target), (before, after)
        if shares[0] is None or shares[1] is None:
            untested.append(TransitionDifference(*ends, counts, shares, None, 1.0, 1.0))
        else:
            p = exact_p(*counts, sizes[0] - before, sizes[1] - after)
            tested.append(TransitionDifference(*ends, counts, shares, shares[1] - shares[0], p, p))
    pairs = zip(tested, holm([difference.p for difference in tested]), strict=True)
    corrected = [replace(difference, corrected_p=value) for difference, value in pairs]

    def order(change: TransitionDifference) -> tuple[bool, float, State, State]:
        return (
            change.corrected_p > SIGNIFICANT,
            -abs(change.difference or 0.0),
            change.source,
            change.target,
        )

    return sorted(corrected, key=order) + untested


def _listed(flow: Flow, differences: Sequence[TransitionDifference]) -> Iterator[str]:
    both = sum(difference.difference is not None for difference in differences)
    sure = [difference for difference in differences if difference.corrected_p <= SIGNIFICANT]
    if not sure:
        yield f"None of {both:,} transitions from states that both have differs more than chance explains"
        return
    yield f"{len(sure):,} of {both:,} transitions differ (p at most {SIGNIFICANT} after Holm's correction):"
    for difference in sure[:_LISTED]:
        shares = " to ".join(
            "—" if share is None else f"{share:.0%}" for share in difference.shares
        )
        ends = difference.source, difference.target
        yield f"  {shares}  {' > '.join(f'{end[1]} {short(_name(flow, end), 40)}'.strip() for end in ends)}"


def _table(flow: Flow, names: tuple[str, str], differences: Sequence[TransitionDifference]) -> str:
    heads = [f"{kind} in {name}" for kind in ("times", "share") for name in names]
    rows = []
    for difference in differences:
        ends = difference.source, difference.target
        figures = [
            *difference.counts,
            *difference.shares,
            difference.difference,
            difference.p,
            difference.corrected_p,
        ]
        rows.append(
            [*(end[1] for end in ends), *(as_cell(_name(flow, end)) for end in ends), *figures]
        )
    return table_of(
        ["from", "to", "from name", "to name", *heads, "difference", "p", "corrected p"], rows
    )


def _name(flow: Flow, state: State) -> str:
    return "" if state in (START, END) else flow.by_state[state].name


def _percent(count: int, size: int) -> str:
    """Write a share in percent, halves rounded up as on pages."""
    share = 100 * count / size
    return f"{share:.1f}%" if 0 < share < 1 else f"{floor(share + 0.5)}%"
