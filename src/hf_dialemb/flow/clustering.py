"""Cluster the utterances of each role, so that those that do the same lie together.

This is average linkage by cosine, as in the official program of Dialog2Flow; see `hf_dialemb.flow.linkage`. The number
of clusters is given, follows from a distance below which clusters are merged, or is chosen at the knee of the curve of
such distances (Kneedle: Satopaa et al., 2011). On annotated dialogues of SGD and MultiWOZ (training and development
sets) these clusters are about as true as with the number of actions given. The largest gap between distances and the
best silhouette mostly stop too early.

In few utterances the knee is noise. Where its score is below `CLEAR`, clusters nearer than `SHARE_OF_HIGHEST` of the
distance at which all are one are merged instead, and more where that leaves more clusters than half of the different
utterances. In 40 sets of these corpora and the sample (5 to 30 dialogues, all-MiniLM-L6-v2) the adjusted Rand index
with actions is then 0.41, and 0.25 at the knee. All sets of 130 different utterances and more have a clear knee. Both
constants were chosen on these sets, so that the gain on others may be smaller.

A cluster with more than `MOST_OF_A_ROLE` of a role's utterances, about as wide as the widest and with a clear knee of
its own, is cut there once more. In dialogues about many things, the knee of all passes over it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..metrics.vectors import unit, unit_vectors
from ..runs.frames import counted
from .linkage import MOST_EXACT, Merges, average_linkage, cut, grouped_leaves, number_below

MOST_CLUSTERS = 100  # of a role where no number is given: a person reads no more
MOST_OF_A_ROLE = 0.3  # the largest share of a role's utterances in a wide cluster where no number is given
CLEAR = 0.15  # a knee with a lower score is not taken
SHARE_OF_HIGHEST = 2 / 3
"""Of the distance at which all are one. Clear knees lie at about 0.7 of it with all-MiniLM-L6-v2, and at 0.45 with
Dialog2Flow's vectors, which mostly have one in small sets too."""

_MANY, _FEWEST = 20, 5  # 20 different utterances make more than 2 clusters; without a knee, 5 or more
_SAME = 1e-7  # a distance below this is rounding

Curve = tuple[tuple[int, float, float], ...]
"""For each number of clusters from 2 on: the threshold that gives it, and its score in ``[-1, 1]``.

The threshold is the distance of the two nearest clusters. The score is how far the largest distance within clusters
lies below the straight line from that of one cluster to that of the last number, both axes scaled to ``[0, 1]``."""


@dataclass(frozen=True)
class Choice:
    """The number of clusters of a role, and the reason."""

    kind: Literal["number", "threshold", "chosen"]  # a number or threshold was given, or neither
    value: float  # the given number or threshold; the best score where the number was chosen
    count: int  # the number of clusters
    curve: Curve  # empty where there is one distinct vector
    sentence: str  # for a person


@dataclass(frozen=True, eq=False)
class Clustering:
    """Clusters of the N utterances of one role."""

    labels: NDArray[np.int32]  # the cluster of each, (N,), numbered from 0 in the order of utterances
    choice: Choice
    merges: Merges = field(default_factory=lambda: np.zeros((0, 4)))  # of distinct vectors, or of groups in large roles


def cluster_by_role(
    vectors: NDArray[Any],
    roles: Sequence[str],
    *,
    clusters: int | Mapping[str, int] | None = None,
    threshold: float | Mapping[str, float] | None = None,
    seed: int = 0,
) -> dict[str, Clustering]:
    """Cluster the utterances of each role by their vectors, ``(N, D)``; roles in alphabetical order.

    Args:
        vectors: Equal texts should have equal vectors. A vector of zeros gets the direction of the first axis, as in
            the official program.
        roles: The role of each utterance.
        clusters: The number of clusters of each role, or of the roles that a mapping names.
        threshold: The distance below which clusters are merged, likewise.
        seed: The seed of the groups of a large role; nothing else is random.

    Raises:
        InputError: A number or threshold is of no role or out of bounds, or a role has both.
        ValueError: Shapes do not fit, or vectors are not finite.
    """
    if np.ndim(vectors) != 2 or len(vectors) != len(roles) or not np.size(vectors):
        raise ValueError(f"vectors: got shape {np.shape(vectors)}, expected ({len(roles)}, D): one for each utterance")
    check_roles(clusters, threshold, roles)
    names, clusterings = np.array(roles, dtype=object), {}
    for role in sorted(set(roles)):
        asked = {"clusters": _of(clusters, role), "threshold": _of(threshold, role)}
        try:
            clusterings[role] = cluster(np.asarray(vectors)[names == role], **asked, seed=seed)
        except InputError as error:
            raise InputError(f"role {role}: {error}") from error
    return clusterings


def check_roles(
    clusters: int | Mapping[str, int] | None, threshold: float | Mapping[str, float] | None, roles: Iterable[str]
) -> None:
    """Raise an InputError for a number of a role that does not speak, and for two numbers of one role."""
    speakers = sorted(set(roles))
    decided: dict[str, str] = {}
    for name, given in (("clusters", clusters), ("threshold", threshold)):
        for role in given if isinstance(given, Mapping) else speakers if given is not None else ():
            if role not in speakers:
                raise InputError(f"field {name}: got role '{role}', expected one of {', '.join(speakers)}; correct it")
            if role in decided:
                raise InputError(
                    f"role {role}: got field {decided[role]} and field {name}, expected one; leave one out"
                )
            decided[role] = name


def cluster(
    vectors: NDArray[Any], *, clusters: int | None = None, threshold: float | None = None, seed: int = 0
) -> Clustering:
    """Cluster vectors of one role, ``(N, D)``, by cosine with average linkage; see `cluster_by_role`.

    A chosen number is at least 2 where there are two distinct vectors, and at most `MOST_CLUSTERS`. More than
    `hf_dialemb.flow.linkage.MOST_EXACT` distinct vectors are grouped first.
    """
    if not np.isfinite(vectors).all():
        raise ValueError("vectors: got one with NaN or infinity, expected finite numbers; look at the encoder")
    if clusters is not None and (clusters != int(clusters) or clusters < 1):
        raise InputError(f"field clusters: got {clusters}, expected a whole number from 1 on; correct it")
    if threshold is not None and not 0 < threshold < math.inf:
        raise InputError(f"field threshold: got {threshold}, expected a distance above 0, such as 0.5; correct it")
    clustering = _linked(vectors, clusters, threshold, seed)
    return _largest_split(vectors, clustering, seed) if _bends(clustering.choice) else clustering


def _bends(choice: Choice) -> bool:
    """Return whether a number was chosen at a clear knee."""
    best = max(choice.curve, key=lambda point: point[2], default=(0, 0.0, 0.0))
    return choice.kind == "chosen" and choice.count == best[0] > 2 and best[2] >= CLEAR


def _largest_split(vectors: NDArray[Any], clustering: Clustering, seed: int) -> Clustering:
    """Split the wide clusters that hold more than `MOST_OF_A_ROLE` of all."""
    labels, sizes = clustering.labels.copy(), np.bincount(clustering.labels)
    widest = float(clustering.merges[-clustering.choice.count, 2])
    for label in np.flatnonzero((sizes > MOST_OF_A_ROLE * len(labels)) & (sizes >= _MANY)):
        rows = np.flatnonzero(clustering.labels == label)
        parts = _linked(vectors[rows], None, None, seed)
        if _bends(parts.choice) and parts.merges[-1, 2] >= SHARE_OF_HIGHEST * widest:
            apart = parts.labels > 0
            labels[rows[apart]] = labels.max() + parts.labels[apart]
    count = int(labels.max()) + 1
    if count == len(sizes):
        return clustering
    places: dict[int, int] = {}
    labels = np.array([places.setdefault(label, len(places)) for label in labels.tolist()], dtype=np.int32)
    largest = f"What held more than {100 * MOST_OF_A_ROLE:.0f} % of all was split in the same way: {count} in all."
    choice = replace(clustering.choice, sentence=f"{clustering.choice.sentence} {largest}")
    return Clustering(labels, choice, clustering.merges)


def _linked(vectors: NDArray[Any], number: int | None, threshold: float | None, seed: int) -> Clustering:
    """Link distinct vectors, in groups where there are many, and cut the tree."""
    places: dict[bytes, int] = {}
    leaves = np.array([places.setdefault(vector.tobytes(), len(places)) for vector in vectors], dtype=np.intp)
    distinct = np.array(vectors[np.unique(leaves, return_index=True)[1]])
    distinct[~distinct.any(axis=1), 0] = 1
    weights, kind = np.bincount(leaves).astype(np.float64), "distinct utterances"
    if len(distinct) <= MOST_EXACT:
        means = unit_vectors(distinct)
    else:
        groups, means, weights = grouped_leaves(unit(distinct), weights, threshold=threshold, seed=seed)
        leaves, kind = groups[leaves], "groups that utterances are put in first"
    if number is not None and number > len(means):
        raise InputError(f"field clusters: got {number}, expected at most {len(means)}, the {kind}; lower it")
    merges = average_linkage(means, weights)
    choice = _choice(merges, number, threshold, len(vectors))
    return Clustering(cut(merges, choice.count)[leaves], choice, merges)


def _of(given: Any, role: str) -> Any:  # noqa: ANN401 - a number of either kind, or some by role
    return given.get(role) if isinstance(given, Mapping) else given


def _choice(merges: Merges, number: int | None, threshold: float | None, utterances: int) -> Choice:
    curve = _curve(merges)
    if number is not None:
        return Choice("number", number, number, curve, f"{counted(number, 'cluster')}, as asked for.")
    if threshold is not None:
        count = number_below(merges, threshold)
        sentence = f"those at a mean cosine distance below {threshold:g}, as asked for, are one."
        return Choice("threshold", threshold, count, curve, f"{counted(count, 'cluster')}: {sentence}")
    if not curve or merges[-1, 2] <= _SAME:
        reason = "all utterances are the same" if utterances > 1 else "there is one utterance"
        return Choice("chosen", 0.0, 1, curve, f"1 cluster, as {reason}.")
    count, distance, score = max(curve, key=lambda point: point[2])
    if score < CLEAR:
        return _without_knee(merges, curve, score, "the curve of distances has no clear bend")
    if count == 2 and len(merges) >= _MANY - 1:
        return _without_knee(merges, curve, score, "the curve of distances bends only at 2, which say too little")
    sentence = (
        f"{counted(count, 'cluster')}, where the curve of distances bends: with fewer, unlike groups would be joined "
        f"(mean cosine distance {distance:.2f}); with more, alike ones would be split."
    )
    return Choice("chosen", score, count, curve, sentence)


def _without_knee(merges: Merges, curve: Curve, score: float, reason: str) -> Choice:
    """Cut at a share of the highest distance, within bounds."""
    leaves, threshold = len(merges) + 1, SHARE_OF_HIGHEST * float(merges[-1, 2])
    below, half = number_below(merges, threshold), (leaves + 1) // 2
    count = max(_FEWEST if leaves >= _MANY else 2, min(below, half, MOST_CLUSTERS))
    distance = f"{threshold:.2f}, two thirds of that at which all would be one"
    sentence = f"{reason}, so clusters were joined up to a mean cosine distance of {distance}."
    if count != below:
        end = f"stopped at {count}, as fewer say too little"
        if count < below:
            most = "half as many as there are different utterances" if count == half else "what a person can read"
            end = f"went on to {most}"
        sentence = f"{reason}; joining clusters up to a mean cosine distance of {distance}, would leave {below}, "
        sentence += f"so joining {end}."
    return Choice("chosen", score, count, curve, f"{counted(count, 'cluster')}: {sentence}")


def _curve(merges: Merges) -> Curve:
    """Look at 2 to `MOST_CLUSTERS` clusters."""
    heights = np.append(merges[::-1, 2], 0)[:MOST_CLUSTERS]  # within 1, 2, ... clusters; 0 within single leaves
    if len(heights) < 2:
        return ()
    down = (heights[0] - heights) / max(heights[0] - heights[-1], np.finfo(np.float64).tiny)
    scores = (down - np.linspace(0, 1, len(heights))).tolist()
    return tuple((number, float(heights[number - 2]), scores[number - 1]) for number in range(2, len(heights) + 1))
