"""Names clusters for a person: by the utterance in their middle, typical phrases, and examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .flow import EXAMPLES, Cluster, Flow, Utterances, numbered
from .phrases import PHRASES, typical_phrases

LONGEST_TEXT = 300
"""So many characters a name or an example has at most: both are repeated in every file of a flow."""

_PHRASES = 3  # so many make a name
_NEAR = 6  # digits of a cosine that count, so that rounding does not decide between equally near texts


def named(
    title: str,
    utterances: Utterances,
    vectors: NDArray[Any],
    labels: Mapping[str, NDArray[Any]],
    settings: Mapping[str, Any] | None = None,
) -> Flow:
    """Builds a flow from clusters, each named for the utterance that is nearest to its centroid.

    Args:
        title: What the flow is of.
        utterances: The utterances, N of them.
        vectors: One for each, ``(N, D)``.
        labels: Of each role the cluster of each of its utterances in order; see `hf_dialemb.flow.clustering`.
        settings: Everything that decided the result, as JSON has it.

    Returns:
        The flow, its clusters in the order of `hf_dialemb.flow.flow.numbered`; long texts are cut to `LONGEST_TEXT`.

    Raises:
        ValueError: The shapes do not fit.
    """
    if np.ndim(vectors) != 2 or len(vectors) != len(utterances):
        raise ValueError(f"vectors: got shape {np.shape(vectors)}, expected ({len(utterances)}, D): one each")
    ids, numbers = numbered(list(zip(utterances.roles, _label_of_each(utterances, labels), strict=True)))
    rows = np.split(np.argsort(numbers, kind="stable"), np.cumsum(np.bincount(numbers))[:-1])
    texts = [[utterances.texts[row] for row in of_one] for of_one in rows]
    phrases: list[tuple[str, ...]] = []
    for role in dict.fromkeys(role for role, _ in ids):
        phrases += typical_phrases([said for (other, _), said in zip(ids, texts, strict=True) if other == role])
    middles, clusters = centroids(vectors, numbers), []
    for number, ((role, _), (name, size)) in enumerate(ids.items()):
        nearest = _by_nearness(texts[number], _unit(vectors[rows[number]]) @ middles[number])
        examples = tuple(dict.fromkeys(map(_shortened, nearest[:EXAMPLES])))
        clusters.append(Cluster(name, role, examples[0], size, phrases[number], examples))
    return Flow(title, utterances, numbers, tuple(clusters), dict(settings or {}))


def _label_of_each(utterances: Utterances, labels: Mapping[str, NDArray[Any]]) -> list[int]:
    by_role = utterances.rows_by_role()
    if set(labels) != set(by_role):
        raise ValueError(f"labels: got roles {', '.join(sorted(labels))}, expected {', '.join(by_role)}")
    each = np.zeros(len(utterances), dtype=np.int64)
    for role, rows in by_role.items():
        if np.shape(labels[role]) != rows.shape:
            raise ValueError(f"labels of {role}: got shape {np.shape(labels[role])}, expected {rows.shape}: one each")
        each[rows] = labels[role]
    found: list[int] = each.tolist()
    return found


def centroids(vectors: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.float32]:
    """Computes the middle of each of C clusters, none of which is empty.

    Args:
        vectors: One for each utterance, ``(N, D)``.
        labels: The cluster of each, ``(N,)``, each in ``[0, C)``.

    Returns:
        The mean of each cluster's unit vectors, brought to unit length, ``(C, D)``: an utterance's cosine with it
        grows with its mean cosine with the cluster's utterances.
    """
    from scipy.sparse import csr_array

    places = np.arange(len(labels))
    members = csr_array((np.ones(len(labels), dtype=np.float32), (labels, places)))
    return _unit(members @ _unit(vectors))


def with_names(flow: Flow, names: Sequence[str]) -> Flow:
    """Gives clusters other names, in order; an empty one leaves a cluster's own. See `merged_names` for equal ones."""
    pairs = zip(flow.clusters, names, strict=True)
    return replace(flow, clusters=tuple(replace(cluster, name=name or cluster.name) for cluster, name in pairs))


def phrase_names(flow: Flow) -> Flow:
    """Names clusters for their first one to three phrases, parted by commas; one without phrases keeps its name."""
    return with_names(flow, [_shortened(", ".join(cluster.phrases[:_PHRASES])) for cluster in flow.clusters])


def merged_names(flow: Flow) -> Flow:
    """Makes clusters of one role one where they have the same name, but for case and blanks at the ends.

    Phrases and examples of a cluster come from all its parts in turn, those of the largest, whose name it has, first.
    """
    keys = [(cluster.role, cluster.name.strip().casefold()) for cluster in flow.clusters]
    ids, labels = numbered([keys[label] for label in flow.labels])
    clusters = []
    for key, (name, size) in ids.items():
        members = [cluster for cluster, other in zip(flow.clusters, keys, strict=True) if other == key]
        members.sort(key=lambda member: -member.size)
        phrases = _in_turn([member.phrases for member in members], PHRASES)
        examples = _in_turn([member.examples for member in members], EXAMPLES)
        clusters.append(replace(members[0], id=name, size=size, phrases=phrases, examples=examples))
    return replace(flow, labels=labels, clusters=tuple(clusters))


def _by_nearness(texts: Sequence[str], cosines: NDArray[Any]) -> list[str]:
    """Sorts texts, each once: the nearest first, of equally near ones the more frequent, then by the alphabet."""
    counts = Counter(texts)
    nearest: dict[str, float] = {}
    for text, cosine in zip(texts, np.round(cosines, _NEAR).tolist(), strict=True):
        nearest[text] = max(cosine, nearest.get(text, cosine))
    return sorted(nearest, key=lambda text: (-nearest[text], -counts[text], text))


def _shortened(text: str) -> str:
    """Cuts a long text, between words unless one is very long."""
    if len(text) <= LONGEST_TEXT:
        return text
    kept = text[: LONGEST_TEXT - 1]
    whole = kept if text[LONGEST_TEXT - 1].isspace() else kept.rpartition(" ")[0]
    return f"{(whole if len(whole) > LONGEST_TEXT // 2 else kept).rstrip()}…"


def _unit(vectors: NDArray[Any]) -> NDArray[np.float32]:
    """Brings vectors to unit length; those of zeros, which have no direction, stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: NDArray[np.float32] = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return unit


def _in_turn(lists: Sequence[Sequence[str]], most: int) -> tuple[str, ...]:
    """Takes the first of each, then the second of each, and so on, each once."""
    longest = max(map(len, lists))
    every = dict.fromkeys(each[place] for place in range(longest) for each in lists if place < len(each))
    return tuple(every)[:most]
