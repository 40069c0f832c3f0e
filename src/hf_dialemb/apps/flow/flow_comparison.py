"""Compare two sets of dialogues by the states of a flow.

What is new, how they end, and how they go.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data import load_dialogues
from ...metrics.vectors import unit
from ..pages.page import Comparison, write_page
from .differences import Difference, largest_first, parts_of, score_differences, with_p
from .extract import short
from .flow import Flow, Utterances, read_utterances, restricted_to
from .flow_clustering import cluster
from .flow_folder import PAGE, read_flow
from .graph import FlowGraph, State, readable, transition_graph
from .new_dialogues import assign, new_vectors
from .paths import UNREAD, ends
from .step_names import named

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

    All are assigned to its states by the nearest centroid; what the given ones say that is far from
    every state is a new one. ``by`` compares the dialogues with each other instead, by ``month`` or
    a name of their metadata, see `parts_of`. New states come first, then ends, the number of turns,
    and states that more or fewer dialogues come through. Writes a page, on which transitions are
    compared too, ``by`` a value into a folder of its number.
    """
    stored = read_flow(folder)
    corpus = load_dialogues(dialogues)
    parts = parts_of(corpus, by) if by else []
    both = _joined(stored.utterances, read_utterances(corpus), title)
    is_new = np.arange(len(both)) >= len(stored.utterances)
    vectors = new_vectors(stored, folder, both)
    flow = with_new_states(replace(stored, utterances=both), vectors, is_new)
    names = both.dialogues[len(stored.utterances.dialogues) :]
    if not by:
        sets = (flow.title, {*stored.utterances.dialogues}), (title, {*names})
        yield from _compared_sets(flow, sets, output, 1)
    only = restricted_to(both, np.flatnonzero(is_new))
    flow = replace(flow, utterances=only, labels=flow.labels[is_new])
    for number, ((first, before), (second, after)) in enumerate(parts, 1):
        place = output / f"{number}" if len(parts) > 1 else output
        sets = (first, {names[row] for row in before}), (second, {names[row] for row in after})
        yield from _compared_sets(flow, sets, place, len(parts))


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
    yield f"{first}: {sizes[0]:,} dialogues; {second}: {sizes[1]:,}"
    yield from findings
    tested = [own.sure for own in differences if 0 not in own.sizes]
    yield f"{sum(tested):,} of {len(tested):,} transitions differ more than by chance"
    yield f"Wrote {output / PAGE}"


def _findings(flow: Flow, sets: tuple[Named, Named], times: int) -> list[str]:
    """Say which ends differ, the number of turns, and which states are new, gained or lost."""
    (_, before), (second, after) = sets
    names = flow.utterances.dialogues
    kinds = defaultdict[Any, set[str]](set)
    through = defaultdict[Any, set[str]](set)
    for end in ends(flow):
        kinds[end.kind].update(end.dialogues)
    for name, trajectory in zip(names, flow.trajectories, strict=True):
        for state in trajectory:
            through[state].add(name)

    unread = kinds.pop(UNREAD, set())

    def sure(dialogues: Mapping[Any, set[str]], but: Collection[str] = ()) -> list[Difference]:
        sizes = len(before.difference(but)), len(after.difference(but))
        differences = [
            Difference(what, (len(names & before), len(names & after)), sizes)
            for what, names in dialogues.items()
        ]
        return [own for own in largest_first(with_p(differences, times)) if own.sure][:_LISTED]

    lines = [f"Conversations that are {own.what}: {own}" for own in sure(kinds, unread)]
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


def _joined(old: Utterances, new: Utterances, title: str) -> Utterances:
    """Return the utterances of a flow, and then others, whose dialogues are called by the title."""
    names = [f"{title}/{name}" for name in new.dialogues]
    known = {*old.dialogues}
    return Utterances(
        (*old.dialogues, *(f"{name} (new)" if name in known else name for name in names)),
        np.concatenate([old.places, new.places + np.int32(len(old.dialogues))]),
        old.roles + new.roles,
        old.texts + new.texts,
        old.names + new.names,
    )


def with_new_states(flow: Flow, vectors: NDArray[np.float32], is_new: NDArray[np.bool_]) -> Flow:
    """Assign all utterances to states, and make states of new ones that are far from every state.

    Far is what lies farther than all but `_FAR` of the flow's own, where several are alike. Vectors
    are ``(N, D)``.
    """
    utterances = flow.utterances
    clusters = list(flow.clusters)
    means = flow.centroids
    labels = assign(vectors, utterances.roles, means, clusters)
    near = np.einsum("nd,nd->n", unit(vectors), unit(means)[labels])
    for role, rows in utterances.rows_by_role().items():
        own = near[rows[~is_new[rows]]]
        bound = np.quantile(own, _FAR) if len(own) else 0.0
        far = rows[is_new[rows] & (near[rows] < bound)]
        if len(far) < _FEWEST:
            continue
        groups = cluster(vectors[far], threshold=_ONE).labels
        places = [utterances.places[far[groups == group]] for group in range(groups.max() + 1)]
        large = [group for group, where in enumerate(places) if len(set(where)) >= _FEWEST]
        kept = np.isin(groups, large)
        if not kept.any():
            continue
        far = far[kept]
        part = named("", restricted_to(utterances, far), vectors[far], {role: groups[kept]})
        means = np.concatenate([means, part.centroids])
        for number, state in enumerate(part.clusters, 1):
            clusters.append(replace(state, id=f"{role}{NEW}{number}"))
    labels = assign(vectors, utterances.roles, means, clusters)
    return replace(flow, clusters=tuple(clusters), labels=labels, centroids=means)


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
