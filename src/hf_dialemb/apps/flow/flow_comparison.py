"""Compare two sets of dialogues by the states of a flow.

What is new, how they end, and how they go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data import load_dialogues
from ...errors import InputError
from ...metrics.vectors import unit
from ..pages.page import Comparison, write_page
from .differences import SIGNIFICANT, Difference, largest_first, parts_of, score_differences, with_p
from .exports import write_table
from .extract import short
from .flow import Flow, Utterances, read_utterances, restricted_to
from .flow_clustering import cluster
from .flow_folder import PAGE, read_flow
from .graph import END, START, FlowGraph, State, readable, transition_graph
from .new_dialogues import assign, new_vectors
from .paths import ends
from .step_names import centroids, named

TRANSITIONS = "transitions.csv"
NEW = "-new-"  # between the role and the number of a state that a flow has not had
_LISTED = 10  # differences of a kind that are printed
# the share of the flow's own utterances that lie as far from their states as what is new
_FAR = 0.01
_FEWEST = 5  # dialogues with a new state
_ONE = 0.5  # the mean cosine distance below which new utterances are one state


def compare_with(
    folder: Path, dialogues: Any, output: Path, title: str, by: str | None = None
) -> Iterator[str]:
    """Compare dialogues with those of a flow in a folder; yield lines on what differs.

    Dialogues that are part of the flow are compared with the rest of it. Others are assigned to its
    states by the nearest centroid, and then those of the flow are as well; what they say that is
    far from every state is a new one. ``by`` compares the dialogues with each other instead, by
    ``month`` or a name of their metadata, see `parts_of`. Ends come first, then the number of
    turns, then states that more or fewer dialogues come through, then transitions. Writes a page
    and ``transitions.csv``, ``by`` a value into a folder of its number.
    """
    stored = read_flow(folder)
    corpus = load_dialogues(dialogues)
    parts = parts_of(corpus, by) if by else []
    flow, names = _both(stored, folder, read_utterances(corpus), title)
    for number, ((first, before), (second, after)) in enumerate(parts, 1):
        place = output / f"{number}" if len(parts) > 1 else output
        sets = (first, {names[row] for row in before}), (second, {names[row] for row in after})
        yield from _compared_sets(flow, sets, place, len(parts))
    if by:
        return
    second_set = set(names)
    rest = set(flow.utterances.dialogues) - second_set
    if not rest:
        raise InputError(
            f"{title}: got all dialogues of the flow, expected some of them, or others; choose some"
        )
    whole = second_set.isdisjoint(stored.utterances.dialogues)
    sets = (flow.title if whole else "the rest", rest), (title, second_set)
    yield from _compared_sets(flow, sets, output, 1)


Named = tuple[str, set[str]]
"""A set of dialogues: its name, and their ids."""


def _compared_sets(
    flow: Flow, sets: tuple[Named, Named], output: Path, times: int
) -> Iterator[str]:
    (first, before), (second, after) = sets
    sizes = len(before), len(after)
    differences = compared(graph_of(flow, before), graph_of(flow, after))
    findings = _findings(flow, sets, times)
    comparison = Comparison((first, second), sizes, differences, after, findings)
    write_page(flow, output / PAGE, readable(flow.graph), comparison=comparison)
    write_table(output / TRANSITIONS, _rows(flow, comparison))
    yield f"{first}: {sizes[0]:,} dialogues; {second}: {sizes[1]:,}"
    yield from findings
    yield from _listed(flow, differences)
    yield f"Wrote {output / TRANSITIONS} and {output / PAGE}"


def _findings(flow: Flow, sets: tuple[Named, Named], times: int) -> list[str]:
    """Say which ends differ, the number of turns, and which states are new, gained or lost."""
    (_, before), (second, after) = sets
    kinds: dict[Any, set[str]] = {}
    for end in ends(flow):
        kinds.setdefault(end.kind, set()).update(end.dialogues)
    through: dict[Any, set[str]] = {cluster.state: set() for cluster in flow.clusters}
    names = flow.utterances.dialogues
    for name, trajectory in zip(names, flow.trajectories, strict=True):
        for state in trajectory:
            through[state].add(name)

    def sure(dialogues: Mapping[Any, set[str]]) -> list[Difference]:
        differences = [
            Difference(what, (len(names & before), len(names & after)), (len(before), len(after)))
            for what, names in dialogues.items()
        ]
        return [own for own in largest_first(with_p(differences, times)) if own.sure][:_LISTED]

    lines = [f"Conversations that are {own.what}: {own}" for own in sure(kinds)]
    lengths = {name: len(states) for name, states in zip(names, flow.trajectories, strict=True)}
    turns = [lengths[name] for name in before], [lengths[name] for name in after]
    lines += [
        f"{own.what}: {own}" for own in score_differences({"turns": turns}, times) if own.sure
    ]
    new: list[str] = []
    for own in sure(through):
        step = flow.by_state[own.what]
        line = f'the {step.role} says "{short(step.name, 60)}", {own} of dialogues'
        if NEW in step.id:
            new.append(f"New in {second}: {line}")
        else:
            lines.append(f"Step: {line}")
    return new + lines


def _both(flow: Flow, folder: Path, utterances: Utterances, title: str) -> tuple[Flow, list[str]]:
    """Find dialogues in a flow and add the others to it.

    Return the flow, and the ids of all of them in it, in order.
    """
    known, ids = _contents(flow.utterances), dict[str, str]()
    for name, content in _contents(utterances).items():
        # A folder that is part of the flow's input has ids without the folder's name.
        longer = f"{title}/{name}"
        same = [own for own in (name, longer) if known.get(own) == content]
        other = f"{longer} (new)" if longer in known else longer
        ids[name] = same[0] if same else other
    added = [place for place, name in enumerate(utterances.dialogues) if ids[name] not in known]
    if not added:
        return flow, list(ids.values())
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
    vectors = new_vectors(flow, folder, both)
    labels = assign(vectors, both.roles, flow.centroids, flow.clusters)
    flow = replace(flow, utterances=both, labels=labels)
    is_new = np.arange(len(both)) >= len(old)
    return with_new_states(flow, vectors, flow.centroids, is_new), list(ids.values())


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
            clusters.append(replace(state, id=f"{role}{NEW}{number}"))
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


def compared(first: FlowGraph, second: FlowGraph) -> list[Difference]:
    """Compare all transitions of two sets of dialogues over the same states.

    Holm's rule corrects p. Significant differences come first, by falling size; last come
    transitions whose source a set never reaches. The test treats transitions as independent, which
    those of one dialogue are not quite.
    """
    changes = [
        Difference(
            edge,
            (first.edges.get(edge, 0), second.edges.get(edge, 0)),
            (_leaving(first, edge[0]), _leaving(second, edge[0])),
        )
        for edge in sorted({*first.edges, *second.edges})
    ]
    differences = largest_first(with_p(changes))
    return sorted(differences, key=lambda own: 0 in own.sizes)


def _leaving(graph: FlowGraph, source: State) -> int:
    """Count all transitions from a state."""
    return graph.following.get(source, Counter()).total()


def _listed(flow: Flow, differences: Sequence[Difference]) -> Iterator[str]:
    both = sum(0 not in own.sizes for own in differences)
    sure = [own for own in differences if own.sure]
    if not sure:
        yield f"None of {both:,} transitions from states that both have differs more than by chance"
        return
    yield f"{len(sure):,} of {both:,} transitions differ (p at most {SIGNIFICANT} after Holm):"
    for own in sure[:_LISTED]:
        source, target = (f"{end[1]} {short(_name(flow, end), 40)}".strip() for end in own.what)
        yield f"  {own}  {source} > {target}"


def _rows(flow: Flow, comparison: Comparison) -> list[dict[str, object]]:
    """Return a row of a table for each transition."""
    first, second = comparison.names
    return [
        {
            "from": own.what[0][1],
            "to": own.what[1][1],
            "from name": _name(flow, own.what[0]),
            "to name": _name(flow, own.what[1]),
            f"times in {first}": own.counts[0],
            f"times in {second}": own.counts[1],
            f"share in {first}": own.shares[0],
            f"share in {second}": own.shares[1],
            "difference": own.gain,
            "p": own.p,
        }
        for own in comparison.differences
    ]


def _name(flow: Flow, state: State) -> str:
    return "" if state in (START, END) else flow.by_state[state].name
