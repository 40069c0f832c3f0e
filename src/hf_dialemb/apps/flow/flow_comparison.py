"""Compare two sets of dialogues by the states of a flow.

What is new, how they end, and how they go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
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
# the share of the flow's own utterances that lie as far from their states as what is new
_FAR = 0.01
_FEWEST = 5  # dialogues with a new state
_ONE = 0.5  # the mean cosine distance below which new utterances are one state


Pair = tuple[int, int]
"""A number of each of the two sets."""


@dataclass(frozen=True)
class ShareDifference:
    """How many dialogues of two sets have something."""

    name: str
    counts: Pair
    sizes: Pair  # of the sets
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


def tested_shares(tables: Sequence[tuple[str, Pair, Pair]]) -> list[ShareDifference]:
    """Test shares of two sets, each a name, counts and sizes; see `corrected_p`."""
    p = corrected_p([(counts, sizes) for _, counts, sizes in tables])
    return [ShareDifference(*table, value) for table, value in zip(tables, p, strict=True)]


def corrected_p(tables: Sequence[tuple[Pair, Pair]]) -> list[float]:
    """Test counts of two sizes by Fisher's exact test, and correct all p values together."""
    return holm(
        [exact_p(*counts, sizes[0] - counts[0], sizes[1] - counts[1]) for counts, sizes in tables]
    )


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

    Dialogues that are part of the flow are compared with the rest of it. Others are assigned to its
    states by the nearest centroid, and then those of the flow are as well; what they say that is
    far from every state is a new one. New states come first, then ends, then transitions, the
    surest of these first. Writes a page and ``transitions.csv``.
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
    findings = _findings(flow, second, sizes, len(stored.flow.clusters), title)
    comparison = Comparison(names, sizes, differences, second, findings)
    write_page(flow, output / PAGE, readable(flow.graph), comparison=comparison)
    write_text_atomically(output / TRANSITIONS, _table(flow, comparison))
    yield f"{names[0]}: {sizes[0]:,} dialogues; {title}: {sizes[1]:,}"
    yield from findings
    yield from _listed(flow, differences)
    yield f"Wrote {output / TRANSITIONS} and {output / PAGE}"


def _findings(flow: Flow, second: set[str], sizes: Pair, known: int, title: str) -> list[str]:
    """Say which states from the place ``known`` on are new, and which ends differ."""
    utterances = flow.utterances

    def table(name: str, dialogues: set[str]) -> tuple[str, Pair, Pair]:
        return name, (len(dialogues - second), len(dialogues & second)), sizes

    states = []
    for number, state in enumerate(flow.clusters[known:], known):
        places = utterances.places[flow.labels == number]
        name = f'the {state.role} says "{short(state.name, 60)}"'
        states.append(table(name, {utterances.dialogues[place] for place in places}))
    kinds: dict[str, set[str]] = {}
    for end in ends(flow):
        kinds.setdefault(end.kind, set()).update(end.dialogues)
    new = tested_shares(states)
    ended = tested_shares([table(kind, names) for kind, names in kinds.items()])
    return [
        *(f"New in {title}: {own.name}, {own} of dialogues" for own in new if own.sure),
        *(f"Conversations that are {own.name}: {own}" for own in ended if own.sure),
    ]


def _both(
    stored: StoredFlow, folder: Path, utterances: Utterances, title: str
) -> tuple[Flow, set[str]]:
    """Find dialogues in a flow and add the others to it.

    Return the flow, and the ids of all of them in it.
    """
    flow, known, ids = stored.flow, _contents(stored.flow.utterances), dict[str, str]()
    for name, content in _contents(utterances).items():
        # A folder that is part of the flow's input has ids without the folder's name.
        longer = f"{title}/{name}"
        same = [own for own in (name, longer) if known.get(own) == content]
        other = f"{longer} (new)" if longer in known else longer
        ids[name] = same[0] if same else other
    added = [place for place, name in enumerate(utterances.dialogues) if ids[name] not in known]
    if not added:
        return flow, set(ids.values())
    new = restricted_to(utterances, np.flatnonzero(np.isin(utterances.places, added)))
    old = flow.utterances
    both = Utterances(
        old.dialogues + tuple(ids[name] for name in new.dialogues),
        np.concatenate([old.places, new.places + np.int32(len(known))]),
        old.roles + new.roles,
        old.texts + new.texts,
        old.actions + new.actions,
        old.names + new.names,
    )
    # Both sides follow one rule: nearest centroids beside the flow's own clusters would show
    # differences of their own.
    vectors = new_vectors(stored, folder, both)
    labels = assign(vectors, both.roles, stored.centroids, flow.clusters)
    flow = replace(flow, utterances=both, labels=labels)
    is_new = np.arange(len(both)) >= len(old)
    return with_new_states(flow, vectors, stored.centroids, is_new), set(ids.values())


def with_new_states(
    flow: Flow, vectors: NDArray[np.float32], means: NDArray[np.float32], is_new: NDArray[np.bool_]
) -> Flow:
    """Make states of new utterances that are far from every state, where several are alike.

    Then assign all utterances again. Far is what lies farther than all but `_FAR` of the flow's
    own. Vectors are ``(N, D)``, means of states ``(C, D)``.
    """
    utterances, clusters = flow.utterances, list(flow.clusters)
    near = np.einsum("nd,nd->n", unit(vectors), unit(means)[flow.labels])
    for role, rows in utterances.rows_by_role().items():
        own = near[rows[~is_new[rows]]]
        bound = np.quantile(own, _FAR) if len(own) else 0.0
        far = rows[is_new[rows] & (near[rows] < bound)]
        if len(far) < _FEWEST:
            continue
        labels = cluster(vectors[far], threshold=_ONE).labels
        places = [utterances.places[far[labels == label]] for label in range(labels.max() + 1)]
        large = [label for label, where in enumerate(places) if len(set(where)) >= _FEWEST]
        kept = np.isin(labels, large)
        if not kept.any():
            continue
        far = far[kept]
        part = named("", restricted_to(utterances, far), vectors[far], {role: labels[kept]})
        means = np.concatenate([means, centroids(vectors[far], part.labels)])
        for number, state in enumerate(part.clusters, 1):
            clusters.append(replace(state, id=f"{role}-new-{number}"))
    labels = assign(vectors, utterances.roles, means, clusters)
    return replace(flow, clusters=tuple(clusters), labels=labels)


def _contents(utterances: Utterances) -> dict[str, list[tuple[str, str]]]:
    """Return the roles and texts of each dialogue, by its id."""
    turns = list(zip(utterances.roles, utterances.texts, strict=True))
    contents = {}
    for place, name in enumerate(utterances.dialogues):
        rows = utterances.rows_of(place)
        contents[name] = turns[rows.start : rows.stop]
    return contents


def graph_of(flow: Flow, dialogues: Collection[str]) -> FlowGraph:
    """Return the graph of some dialogues of a flow, by their ids."""
    pairs = zip(flow.utterances.dialogues, flow.trajectories, strict=True)
    return transition_graph(trajectory for name, trajectory in pairs if name in dialogues)


def compared(first: FlowGraph, second: FlowGraph) -> list[TransitionDifference]:
    """Compare all transitions of two sets of dialogues over the same states.

    Holm's rule corrects p. Significant differences come first, by falling size; last come
    transitions whose source a set never reaches. The test treats transitions as independent, which
    those of one dialogue are not quite.
    """
    changes = [
        TransitionDifference(
            source,
            target,
            (first.edges.get((source, target), 0), second.edges.get((source, target), 0)),
            (_leaving(first, source), _leaving(second, source)),
        )
        for source, target in sorted({*first.edges, *second.edges})
    ]
    tested = [change for change in changes if 0 not in change.sizes]
    p = corrected_p([(change.counts, change.sizes) for change in tested])
    tested = [replace(change, p=value) for change, value in zip(tested, p, strict=True)]
    tested.sort(key=lambda change: (change.p > SIGNIFICANT, -abs(change.difference or 0.0)))
    return tested + [change for change in changes if 0 in change.sizes]


def _leaving(graph: FlowGraph, source: State) -> int:
    """Count all transitions from a state."""
    return graph.following.get(source, Counter()).total()


def _listed(flow: Flow, differences: Sequence[TransitionDifference]) -> Iterator[str]:
    both = sum(difference.difference is not None for difference in differences)
    sure = [difference for difference in differences if difference.p <= SIGNIFICANT]
    if not sure:
        yield f"None of {both:,} transitions from states that both have differs more than by chance"
        return
    yield f"{len(sure):,} of {both:,} transitions differ (p at most {SIGNIFICANT} after Holm):"
    for change in sure[:_LISTED]:
        before, after = (f"{share or 0:.0%}" for share in change.shares)
        source, target = (
            f"{end[1]} {short(_name(flow, end), 40)}".strip()
            for end in (change.source, change.target)
        )
        yield f"  {before} to {after}  {source} > {target}"


def _table(flow: Flow, comparison: Comparison) -> str:
    heads = [f"{kind} in {name}" for kind in ("times", "share") for name in comparison.names]
    rows = [
        [
            change.source[1],
            change.target[1],
            as_cell(_name(flow, change.source)),
            as_cell(_name(flow, change.target)),
            *change.counts,
            *change.shares,
            change.difference,
            change.p,
        ]
        for change in comparison.differences
    ]
    return table_of(["from", "to", "from name", "to name", *heads, "difference", "p"], rows)


def _name(flow: Flow, state: State) -> str:
    return "" if state in (START, END) else flow.by_state[state].name


def _percent(count: int, size: int) -> str:
    """Write a share in percent, halves rounded up as on pages."""
    share = 100 * count / size
    return f"{share:.1f}%" if 0 < share < 1 else f"{floor(share + 0.5)}%"
