"""Place new dialogues in a flow: where they stand, what comes next, and how they differ from others."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..corpora import load_dialogues
from ..encoders import load_encoder
from ..errors import InputError, unknown_name
from ..metrics.vectors import unit_vectors
from ..runs.files import write_text_atomically
from .exports import as_cell, table_of
from .extract import short, source_of, utterance_vectors
from .flow import Cluster, Flow, Utterances, read_utterances, restricted_to
from .folder import CACHE, PAGE, StoredFlow, read_flow
from .graph import END, START, FlowGraph, State, TransitionModel, readable, transition_graph
from .page.page import Comparison, TransitionDifference, write_page

TRANSITIONS = "transitions.csv"
SIGNIFICANT = 0.05  # a difference with a higher corrected p may be chance
_LISTED = 10  # differences that are printed


@dataclass(frozen=True)
class NextAction:
    """A state that may come next."""

    state: State  # or `END`
    name: str
    probability: float  # in (0, 1]


def next_actions(flow: Flow, history: Sequence[State], top: int = 5) -> list[NextAction]:
    """Return the ``top`` states that are most likely to come next, the likeliest first; `END` may be among them.

    Args:
        flow: The flow.
        history: The states of a conversation so far, the latest last. The last two decide, as far as they occurred
            (see `hf_dialemb.flow.graph.TransitionModel`).
        top: The number of states.

    Raises:
        InputError: A state is not of the flow, or ``top`` is below 1.
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
    actions = [NextAction(state, names[state], model.probability(latest, state)) for state in model.outcomes]
    return sorted(actions, key=lambda action: (-action.probability, action.state))[:top]


def next_in_dialogues(
    folder: Path,
    dialogues: Any,  # noqa: ANN401 - see load_dialogues
    top: int = 5,
) -> Iterator[tuple[str, list[Cluster], list[NextAction]]]:
    """Yield the id of each unfinished dialogue, its clusters so far, and what is likely to come next.

    ``folder`` is the output of ``dialemb flow``; ``dialogues`` are what `load_dialogues` takes.
    """
    stored, utterances = read_flow(folder), read_utterances(load_dialogues(dialogues))
    labels = assigned(stored, folder, utterances)
    for place, name in enumerate(utterances.dialogues):
        clusters = [stored.flow.clusters[labels[row]] for row in utterances.rows_of(place)]
        yield name, clusters, next_actions(stored.flow, [cluster.state for cluster in clusters], top)


def assigned(stored: StoredFlow, folder: Path, utterances: Utterances) -> NDArray[np.int32]:
    """Assign N utterances to the clusters of a flow by the encoder that made it, ``(N,)``.

    Raises:
        InputError: The encoder is unknown, cannot embed new texts, or has changed.
    """
    model = stored.flow.settings.get("model")
    if not model:
        raise InputError(f"flow '{folder}': got one of ready vectors, expected one with an encoder; make it by --model")
    encoder = load_encoder(model)
    if encoder.fitted_on_input:
        reason = "has no vectors of new texts; make the flow by an encoder"
    elif source_of(encoder) != stored.flow.settings.get("vectors"):
        reason = "is not what the flow was made by; run dialemb flow again"
    else:
        vectors = utterance_vectors(encoder, utterances.texts, folder / CACHE)
        return assign(vectors, utterances.roles, stored.centroids, stored.flow.clusters)
    raise InputError(f"flow '{folder}': its model '{model}' {reason}")


def assign(
    vectors: NDArray[Any], roles: Sequence[str], centroids: NDArray[Any], clusters: Sequence[Cluster]
) -> NDArray[np.int32]:
    """Return for each utterance the cluster of its role with the nearest centroid by cosine, ``(N,)``.

    Of equally near ones it is the first. An InputError reports a role without clusters.
    """
    utterances, means = unit_vectors(vectors), unit_vectors(centroids)
    speakers = np.array(roles, dtype=object)
    labels = np.zeros(len(roles), dtype=np.int32)
    for role in dict.fromkeys(roles):
        own = [place for place, cluster in enumerate(clusters) if cluster.role == role]
        if not own:
            known = ", ".join(sorted({cluster.role for cluster in clusters}))
            raise InputError(
                f"field role: got {role!r}, expected one of {known}, who speak in the flow; rename the speaker, or "
                "extract a flow in which it speaks"
            )
        rows = np.flatnonzero(speakers == role)
        labels[rows] = np.array(own)[(utterances[rows] @ means[own].T).argmax(axis=1)]
    return labels


def compare_with(folder: Path, dialogues: Any, output: Path, title: str) -> Iterator[str]:  # noqa: ANN401
    """Compare dialogues with those of a flow in a folder; yield lines on transitions that differ, the surest first.

    Dialogues that are part of the flow are compared with the rest of it. Others are assigned to its states by the
    nearest centroid, and then those of the flow are as well. Writes a page and ``transitions.csv``.
    """
    stored = read_flow(folder)
    flow, second = _both(stored, folder, read_utterances(load_dialogues(dialogues)), title)
    first = set(flow.utterances.dialogues) - second
    if not first:
        raise InputError(f"{title}: got all dialogues of the flow, expected some of them, or others; choose some")
    differences = compared(graph_of(flow, first), graph_of(flow, second))
    whole = second.isdisjoint(stored.flow.utterances.dialogues)
    names, sizes = (flow.title if whole else "the rest", title), (len(first), len(second))
    comparison = Comparison(names, sizes, differences, second)
    write_page(flow, output / PAGE, readable(flow.graph), comparison=comparison)
    write_text_atomically(output / TRANSITIONS, _table(flow, names, differences))
    yield f"{names[0]}: {sizes[0]:,} dialogues; {names[1]}: {sizes[1]:,}"
    yield from _listed(flow, differences)
    yield f"Wrote {output / TRANSITIONS} and {output / PAGE}"


def _both(stored: StoredFlow, folder: Path, utterances: Utterances, title: str) -> tuple[Flow, set[str]]:
    """Find dialogues in a flow and add the others to it; return the flow, and the ids of all of them in it."""
    flow, known = stored.flow, _contents(stored.flow.utterances)
    ids: dict[str, str] = {}
    for name, content in _contents(utterances).items():
        # A folder that is part of the flow's input has ids without the folder's name.
        same = next((known_id for known_id in (name, f"{title}/{name}") if known.get(known_id) == content), None)
        free = chain([f"{title}/{name}"], (f"{title}/{name} ({number})" for number in count(2)))
        ids[name] = same or next(new_id for new_id in free if new_id not in known)
    new = [place for place, name in enumerate(utterances.dialogues) if ids[name] not in known]
    if not new:
        return flow, set(ids.values())
    parts = flow.utterances, restricted_to(utterances, np.flatnonzero(np.isin(utterances.places, new)))
    roles, texts, actions = (sum((getattr(part, name) for part in parts), ()) for name in ("roles", "texts", "actions"))
    names = [part.names or ("",) * len(part) for part in parts]
    both = Utterances(
        parts[0].dialogues + tuple(ids[name] for name in parts[1].dialogues),
        np.concatenate([parts[0].places, parts[1].places + np.int32(len(known))]),
        roles,
        texts,
        actions,
        names[0] + names[1] if parts[0].names or parts[1].names else (),
    )
    # Both sides follow one rule: nearest centroids beside the flow's own clusters would show differences of their own.
    return replace(flow, utterances=both, labels=assigned(stored, folder, both)), set(ids.values())


def _contents(utterances: Utterances) -> dict[str, list[tuple[str, str]]]:
    turns = list(zip(utterances.roles, utterances.texts, strict=True))
    rows = map(utterances.rows_of, range(len(utterances.dialogues)))
    return {name: turns[own.start : own.stop] for name, own in zip(utterances.dialogues, rows, strict=True)}


def graph_of(flow: Flow, dialogues: Collection[str]) -> FlowGraph:
    """Return the graph of some dialogues of a flow, by their ids."""
    pairs = zip(flow.utterances.dialogues, flow.trajectories, strict=True)
    return transition_graph(trajectory for name, trajectory in pairs if name in dialogues)


def compared(first: FlowGraph, second: FlowGraph) -> list[TransitionDifference]:
    """Compare all transitions of two sets of dialogues over the same states, with p corrected by Holm's rule.

    Significant differences come first, by falling size; last come transitions whose source a set never reaches. The
    test treats transitions as independent, which those of one dialogue are not quite.
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
            p = _exact_p(*counts, sizes[0] - before, sizes[1] - after)
            tested.append(TransitionDifference(*ends, counts, shares, shares[1] - shares[0], p, p))
    largest, corrected = 0.0, []
    for place, difference in enumerate(sorted(tested, key=lambda difference: difference.p)):
        largest = max(largest, min(1.0, difference.p * (len(tested) - place)))
        corrected.append(replace(difference, corrected_p=largest))

    def order(change: TransitionDifference) -> tuple[bool, float, State, State]:
        return change.corrected_p > SIGNIFICANT, -abs(change.difference or 0.0), change.source, change.target

    return sorted(corrected, key=order) + untested


@lru_cache(maxsize=100_000)  # most transitions are rare, so that many have the same counts
def _exact_p(*counts: int) -> float:
    from scipy.stats import fisher_exact

    return float(fisher_exact([counts[:2], counts[2:]]).pvalue)


def _listed(flow: Flow, differences: Sequence[TransitionDifference]) -> Iterator[str]:
    both = sum(difference.difference is not None for difference in differences)
    sure = [difference for difference in differences if difference.corrected_p <= SIGNIFICANT]
    if not sure:
        yield f"None of {both:,} transitions from states that both have differs more than chance explains"
        return
    yield f"{len(sure):,} of {both:,} transitions differ (p at most {SIGNIFICANT} after Holm's correction):"
    for difference in sure[:_LISTED]:
        shares = " to ".join("—" if share is None else f"{share:.0%}" for share in difference.shares)
        ends = difference.source, difference.target
        yield f"  {shares}  {' > '.join(f'{end[1]} {short(_name(flow, end), 40)}'.strip() for end in ends)}"


def _table(flow: Flow, names: tuple[str, str], differences: Sequence[TransitionDifference]) -> str:
    heads = [f"{kind} in {name}" for kind in ("times", "share") for name in names]
    rows = []
    for difference in differences:
        ends = difference.source, difference.target
        figures = [*difference.counts, *difference.shares, difference.difference, difference.p, difference.corrected_p]
        rows.append([*(end[1] for end in ends), *(as_cell(_name(flow, end)) for end in ends), *figures])
    return table_of(["from", "to", "from name", "to name", *heads, "difference", "p", "corrected p"], rows)


def _name(flow: Flow, state: State) -> str:
    return "" if state in (START, END) else flow.by_state[state].name
