"""Names clusters for a person: by the utterance in their middle, typical phrases, and examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .flow import EXAMPLES, Cluster, Flow, Utterances
from .phrases import PHRASES, typical_phrases

LONGEST_TEXT = 300
"""So many characters a name or an example has at most: both are repeated in every file of a flow."""

_PHRASES = 3  # so many make a name
_NEAR = 6  # digits of a cosine that count, so that rounding does not decide between equally near texts


class _Group(NamedTuple):
    """Utterances of one role that do the same: which, and what the clustering calls them."""

    role: str
    label: int
    rows: NDArray[np.intp]


def named(
    title: str,
    utterances: Utterances,
    vectors: NDArray[Any],
    labels: Mapping[str, NDArray[Any]],
    settings: Mapping[str, Any] | None = None,
) -> Flow:
    """Builds a flow from clusters.

    A cluster is named for the utterance that is nearest to its centroid; long ones are cut, see `LONGEST_TEXT`.

    Args:
        title: What the flow is of.
        utterances: The utterances, N of them.
        vectors: One for each, ``(N, D)``.
        labels: Of each role the cluster of each of its utterances in order; see `hf_dialemb.flow.clustering`.
        settings: Everything that decided the result, as JSON has it.

    Returns:
        The flow. Clusters are sorted by role and falling size, ties as they first occur, and numbered so.

    Raises:
        ValueError: The shapes do not fit.
    """
    groups = _groups(utterances, labels)
    if np.ndim(vectors) != 2 or len(vectors) != len(utterances):
        raise ValueError(f"vectors: got shape {np.shape(vectors)}, expected ({len(utterances)}, D): one each")
    numbers = np.zeros(len(utterances), dtype=np.int32)
    for number, group in enumerate(groups):
        numbers[group.rows] = number
    phrases = _phrases(utterances, groups)
    middles = centroids(vectors, numbers)
    clusters, counts = [], dict.fromkeys(labels, 0)
    for number, (role, _, rows) in enumerate(groups):
        counts[role] += 1
        texts = _by_nearness([utterances.texts[row] for row in rows], _unit(vectors[rows]) @ middles[number])
        examples = tuple(dict.fromkeys(map(_shortened, texts[:EXAMPLES])))
        clusters.append(Cluster(f"{role}-{counts[role]}", role, examples[0], len(rows), phrases[number], examples))
    return Flow(title, utterances, numbers, tuple(clusters), dict(settings or {}))


def centroids(vectors: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.float32]:
    """Computes the middle of each cluster.

    Args:
        vectors: One for each utterance, ``(N, D)``.
        labels: The cluster of each, ``(N,)``, each in ``[0, C)``; none is empty.

    Returns:
        The mean of each cluster's unit vectors, brought to unit length, ``(C, D)``: an utterance's cosine with it
        grows with its mean cosine with the cluster's utterances.
    """
    from scipy.sparse import csr_array

    places = np.arange(len(labels))
    members = csr_array((np.ones(len(labels), dtype=np.float32), (labels, places)))
    return _unit(members @ _unit(vectors))


def with_names(flow: Flow, names: Sequence[str]) -> Flow:
    """Gives clusters other names.

    Args:
        flow: The flow, of C clusters.
        names: Their names in order, C of them; an empty one leaves a cluster's own.

    Returns:
        The flow under new names; clusters with one name stay apart, see `merged_names`.
    """
    pairs = zip(flow.clusters, names, strict=True)
    return replace(flow, clusters=tuple(replace(cluster, name=name or cluster.name) for cluster, name in pairs))


def phrase_names(flow: Flow) -> Flow:
    """Names clusters for their most typical phrases.

    Args:
        flow: The flow.

    Returns:
        The flow; a name is a cluster's first one to three phrases, parted by commas. One without phrases keeps its own.
        Clusters with the same phrases stay apart, see `merged_names`.
    """
    return with_names(flow, [_shortened(", ".join(cluster.phrases[:_PHRASES])) for cluster in flow.clusters])


def merged_names(flow: Flow) -> Flow:
    """Makes clusters of one role one where they have the same name, but for case and blanks at the ends.

    Args:
        flow: The flow.

    Returns:
        The flow of what is left, sorted and numbered anew as `named` does; phrases and examples of a cluster come from
        all its parts in turn, those of the largest first.
    """
    keys = [(cluster.role, cluster.name.strip().casefold()) for cluster in flow.clusters]
    parts: dict[tuple[str, str], list[int]] = {}
    for label in sorted(range(len(keys)), key=lambda label: -flow.clusters[label].size):
        parts.setdefault(keys[label], []).append(label)
    sizes = {key: sum(flow.clusters[label].size for label in of_key) for key, of_key in parts.items()}
    order = sorted(parts, key=lambda key: (key[0], -sizes[key], parts[key][0]))
    numbers = np.array([order.index(key) for key in keys], dtype=np.int32)
    counts: dict[str, int] = {}
    clusters = []
    for key in order:
        members = [flow.clusters[label] for label in parts[key]]
        role = members[0].role
        counts[role] = counts.get(role, 0) + 1
        clusters.append(
            replace(
                members[0],
                id=f"{role}-{counts[role]}",
                size=sizes[key],
                phrases=_in_turn([member.phrases for member in members], PHRASES),
                examples=_in_turn([member.examples for member in members], EXAMPLES),
            )
        )
    return replace(flow, labels=numbers[flow.labels], clusters=tuple(clusters))


def _groups(utterances: Utterances, labels: Mapping[str, NDArray[Any]]) -> list[_Group]:
    """Finds the utterances of each cluster; those of a role by falling size, ties as they first occur."""
    by_role = utterances.rows_by_role()
    if set(labels) != set(by_role):
        raise ValueError(f"labels: got roles {', '.join(sorted(labels))}, expected {', '.join(by_role)}")
    groups = []
    for role, rows in by_role.items():
        if np.shape(labels[role]) != rows.shape:
            raise ValueError(f"labels of {role}: got shape {np.shape(labels[role])}, expected {rows.shape}: one each")
        of_role = [_Group(role, int(label), rows[labels[role] == label]) for label in np.unique(labels[role])]
        groups += sorted(of_role, key=lambda group: (-len(group.rows), int(group.rows[0])))
    return groups


def _phrases(utterances: Utterances, groups: Sequence[_Group]) -> list[tuple[str, ...]]:
    """Finds typical phrases; groups come role by role."""
    found: list[tuple[str, ...]] = []
    for role in dict.fromkeys(group.role for group in groups):
        found += typical_phrases([[utterances.texts[row] for row in g.rows] for g in groups if g.role == role])
    return found


def _by_nearness(texts: Sequence[str], cosines: NDArray[Any]) -> list[str]:
    """Sorts texts, each once: the nearest first, of equally near ones the more frequent, then by the alphabet."""
    nearest: dict[str, float] = {}
    counts: dict[str, int] = {}
    for text, cosine in zip(texts, np.round(cosines, _NEAR).tolist(), strict=True):
        nearest[text] = max(cosine, nearest.get(text, cosine))
        counts[text] = counts.get(text, 0) + 1
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
