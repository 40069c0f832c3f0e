"""Compare two sets of dialogues by the states of a flow.

What is new, how they end, and how they go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
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

    def lines(self) -> Iterator[str]:
        """Say what differs: new states, then ends, then transitions, the surest of these first."""
        (first, second), sizes = self.comparison.names, self.comparison.dialogues
        yield f"{first}: {sizes[0]:,} dialogues; {second}: {sizes[1]:,}"
        yield from self.comparison.findings
        yield from _listed(self.flow, self.comparison.differences)


def tested_shares(
    tables: Sequence[tuple[str, tuple[int, int], tuple[int, int]]],
) -> list[ShareDifference]:
    """Test shares of two sets, each a name, counts and sizes, by Fisher's exact test.

    Holm's rule corrects all of them together.
    """
    p = [
        exact_p(*counts, sizes[0] - counts[0], sizes[1] - counts[1]) for _, counts, sizes in tables
    ]
    pairs = zip(tables, holm(p), strict=True)
    return [ShareDifference(*table, corrected) for table, corrected in pairs]


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
    write_text_atomically(output / TRANSITIONS, _table(flow, comparison))
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
    new = _new_states(flow, second, len(stored.flow.clusters))
    findings = [f"New in {title}: {change.name}, {change} of dialogues" for change in new]
    kinds = [
        (kind, (len(members - second), len(members & second)), sizes)
        for kind, members in _by_kind(flow).items()
    ]
    findings += [
        f"Conversations that are {end.name}: {end}" for end in tested_shares(kinds) if end.sure
    ]
    return FlowChanges(flow, Comparison(names, sizes, differences, second, findings), new)


def _by_kind(flow: Flow) -> dict[str, set[str]]:
    """Return the ids of the dialogues of each kind of end."""
    kinds: dict[str, set[str]] = {}
    for end in ends(flow):
        kinds.setdefault(end.kind, set()).update(end.dialogues)
    return kinds


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
    ids = {
        name: _id_in_flow(name, content, known, title)
        for name, content in _contents(utterances).items()
    }
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


def _id_in_flow(
    name: str,
    content: Sequence[tuple[str, str]],
    known: Mapping[str, Sequence[tuple[str, str]]],
    title: str,
) -> str:
    """Return the id of a dialogue in a flow that has it, or else another id than all ``known``.

    A folder that is part of the flow's input has ids without the folder's name.
    """
    longer = f"{title}/{name}"
    for same in (name, longer):
        if known.get(same) == content:
            return same
    while longer in known:
        longer += " (new)"
    return longer


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
    tested, untested = list[TransitionDifference](), list[TransitionDifference]()
    for source, target in sorted({*first.edges, *second.edges}):
        counts = first.edges.get((source, target), 0), second.edges.get((source, target), 0)
        sizes = _leaving(first, source), _leaving(second, source)
        shares = (
            counts[0] / sizes[0] if sizes[0] else None,
            counts[1] / sizes[1] if sizes[1] else None,
        )
        change = TransitionDifference(source, target, counts, shares, None, 1.0, 1.0)
        if 0 in sizes:
            untested.append(change)
        else:
            difference = counts[1] / sizes[1] - counts[0] / sizes[0]
            p = exact_p(*counts, sizes[0] - counts[0], sizes[1] - counts[1])
            tested.append(replace(change, difference=difference, p=p))
    pairs = zip(tested, holm([change.p for change in tested]), strict=True)
    corrected = [replace(change, corrected_p=value) for change, value in pairs]

    def order(change: TransitionDifference) -> tuple[bool, float, State, State]:
        chance = change.corrected_p > SIGNIFICANT
        return chance, -abs(change.difference or 0.0), change.source, change.target

    return sorted(corrected, key=order) + untested


def _leaving(graph: FlowGraph, source: State) -> int:
    """Count all transitions from a state."""
    return graph.following.get(source, Counter()).total()


def _listed(flow: Flow, differences: Sequence[TransitionDifference]) -> Iterator[str]:
    both = sum(difference.difference is not None for difference in differences)
    sure = [difference for difference in differences if difference.corrected_p <= SIGNIFICANT]
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
    rows = []
    for change in comparison.differences:
        ends = change.source, change.target
        states = [*(end[1] for end in ends), *(as_cell(_name(flow, end)) for end in ends)]
        chance = change.difference, change.p, change.corrected_p
        rows.append([*states, *change.counts, *change.shares, *chance])
    states = ["from", "to", "from name", "to name"]
    return table_of([*states, *heads, "difference", "p", "corrected p"], rows)


def _name(flow: Flow, state: State) -> str:
    return "" if state in (START, END) else flow.by_state[state].name


def _percent(count: int, size: int) -> str:
    """Write a share in percent, halves rounded up as on pages."""
    share = 100 * count / size
    return f"{share:.1f}%" if 0 < share < 1 else f"{floor(share + 0.5)}%"
