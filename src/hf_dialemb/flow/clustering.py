"""Clusters the utterances of each role: what does the same lies together.

Average linkage by cosine, as in Dialog2Flow's program: see `hf_dialemb.flow.average_linkage`, and for more utterances
than a matrix of all distances can hold `hf_dialemb.flow.large`. How many clusters there are is given as a number, as a
distance below which clusters are merged, or is chosen: at the knee of the curve of such distances (Kneedle: Satopaa et
al., 2011). On annotated dialogues of SGD and MultiWOZ (training and development sets) clusters are then about as true
as with the number of actions given; the largest gap between distances and the best silhouette mostly stop too early.

Few utterances have no knee but noise. Where its score is below `CLEAR`, clusters nearer than `SHARE_OF_HIGHEST` of the
distance at which all are one are merged instead, and more where that leaves more clusters than half of the different
utterances. In 40 such sets of these corpora and the sample (5 to 30 dialogues, all-MiniLM-L6-v2) the adjusted Rand
index with actions is 0.41 then, at the knee 0.25; sets of 130 different utterances and more all have a clear knee. Both
constants were chosen on these very sets, so that the gain on others may be smaller.

A cluster that holds more than `MOST_OF_A_ROLE` of a role's utterances, is about as wide as the widest, and has a clear
knee of its own, is cut there once more: in dialogues about many things, the knee of all passes over it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..runs.frames import counted
from .average_linkage import Merges, average_linkage, cut, number_below
from .large import MOST_EXACT, grouped_leaves

MOST_CLUSTERS = 100
"""At most so many clusters of a role are chosen where no number is given: more are no picture that a person reads."""

MOST_OF_A_ROLE = 0.3
"""Of a role's utterances, the largest share that a wide cluster may hold where no number is given."""

CLEAR = 0.15  # a knee with a score below it is not taken
SHARE_OF_HIGHEST = 2 / 3
"""Of the distance at which all are one. Clear knees lie at about 0.7 of it with all-MiniLM-L6-v2, at 0.45 with
Dialog2Flow's vectors, which mostly have one in small sets too."""

_MANY = 20  # so many different utterances have more than 2 clusters, and those without a knee at least `_FEWEST`
_FEWEST = 5

_SAME = 1e-7  # a distance that is but rounding: the directions are the same

Floats = TypeVar("Floats", NDArray[np.float32], NDArray[np.float64])

Curve = tuple[tuple[int, float, float], ...]
"""Numbers of clusters from 2 on; of each the threshold that gives it, which is the distance of the two nearest of them,
and its score in ``[-1, 1]``: how far the largest distance at which it has merged anything lies below the straight line
from that of one cluster to that of the last number, both axes brought to ``[0, 1]``."""


@dataclass(frozen=True)
class Choice:
    """How many clusters a role has, and why."""

    kind: Literal["number", "threshold", "chosen"]  # what was asked for, or neither
    value: float  # the number or threshold that was asked for; of a number that was chosen, the best score of all
    count: int  # how many clusters there are
    curve: Curve  # what was looked at; empty where there is one distinct vector
    sentence: str  # what was done, for a person to read


@dataclass(frozen=True, eq=False)
class Clustering:
    """Clusters of one role's N utterances."""

    labels: NDArray[np.int32]  # the cluster of each, (N,), numbered from 0 in the order of utterances
    choice: Choice
    merges: Merges  # of leaves: distinct vectors, or in a large role groups of near ones


class Leaves(NamedTuple):
    """What is merged, L leaves."""

    of: NDArray[np.intp]  # the leaf of each vector, (N,), numbered in their order
    means: NDArray[np.float64]  # the mean of each leaf's unit vectors, (L, D)
    weights: NDArray[np.float64]  # how many vectors each leaf stands for, (L,)
    distinct: bool  # whether a leaf is a distinct vector, not a group of near ones


def cluster_by_role(
    vectors: NDArray[Any],
    roles: Sequence[str],
    *,
    clusters: int | Mapping[str, int] | None = None,
    threshold: float | Mapping[str, float] | None = None,
    seed: int = 0,
    progress: bool = False,
) -> dict[str, Clustering]:
    """Clusters the utterances of each role for themselves, by their vectors, ``(N, D)``; roles in alphabetical order.

    Equal texts should have equal vectors; a vector of zeros gets the direction of the first axis, as in the paper's
    program. A mapping names the roles that a number, or a distance below which clusters are merged, is for; a role with
    neither gets a number that is chosen. The seed decides the groups of a large role; others depend on no chance. An
    InputError refuses a number or threshold that is not of a role or not within bounds, and both for one role; a
    ValueError shapes that do not fit, and vectors that are not finite.
    """
    if np.ndim(vectors) != 2 or len(vectors) != len(roles) or not len(roles):
        raise ValueError(f"vectors: got shape {np.shape(vectors)}, expected ({len(roles)}, D): one for each utterance")
    check_roles(clusters, threshold, roles)
    names, clusterings = np.array(roles, dtype=object), {}
    for role in sorted(set(roles)):
        asked = {"clusters": _of(clusters, role), "threshold": _of(threshold, role)}
        try:
            clusterings[role] = cluster(np.asarray(vectors)[names == role], **asked, seed=seed, progress=progress)
        except InputError as error:
            raise InputError(f"role {role}: {error}") from error
    return clusterings


def check_roles(
    clusters: int | Mapping[str, int] | None, threshold: float | Mapping[str, float] | None, roles: Iterable[str]
) -> None:
    """Refuses numbers for roles that do not speak, and two for one role."""
    speakers = sorted(set(roles))
    decided: dict[str, str] = {}
    for field, given in (("clusters", clusters), ("threshold", threshold)):
        for role in given if isinstance(given, Mapping) else speakers if given is not None else ():
            if role not in speakers:
                raise InputError(f"field {field}: got role '{role}', expected one of {', '.join(speakers)}; correct it")
            if role in decided:
                raise InputError(
                    f"role {role}: got field {decided[role]} and field {field}, expected one; leave one out"
                )
            decided[role] = field


def cluster(
    vectors: NDArray[Any],
    *,
    clusters: int | None = None,
    threshold: float | None = None,
    seed: int = 0,
    progress: bool = False,
) -> Clustering:
    """Clusters vectors of one role, ``(N, D)``, by cosine with average linkage; see `cluster_by_role`.

    There are so many clusters as asked for, or as are left once those at a distance below the threshold are merged.
    With neither it is the number at the knee, or another where no knee is clear: at least 2 where there are two leaves,
    and at most `MOST_CLUSTERS`. More than `hf_dialemb.flow.large.MOST_EXACT` distinct vectors are put in groups first.
    """
    _check(vectors, clusters, threshold)
    found = _cut(np.asarray(vectors), clusters, threshold, seed, progress)
    return _largest_split(np.asarray(vectors), found, seed, progress) if _bends(found.choice) else found


def _bends(choice: Choice) -> bool:
    """Says whether a number was chosen at a clear bend."""
    best = max(choice.curve, key=lambda point: point[2], default=(0, 0.0, 0.0))
    return choice.kind == "chosen" and choice.count == best[0] > 2 and best[2] >= CLEAR


def _largest_split(vectors: NDArray[Any], found: Clustering, seed: int, progress: bool) -> Clustering:
    """Clusters by themselves what clusters with more than `MOST_OF_A_ROLE` of all hold."""
    labels, sizes = found.labels.copy(), np.bincount(found.labels)
    widest = float(found.merges[-found.choice.count, 2])
    for label in np.flatnonzero((sizes > MOST_OF_A_ROLE * len(labels)) & (sizes >= _MANY)):
        rows = np.flatnonzero(found.labels == label)
        parts = _cut(vectors[rows], None, None, seed, progress)
        if _bends(parts.choice) and parts.merges[-1, 2] >= SHARE_OF_HIGHEST * widest:
            apart = parts.labels > 0
            labels[rows[apart]] = labels.max() + parts.labels[apart]
    count = int(labels.max()) + 1
    if count == len(sizes):
        return found
    places: dict[int, int] = {}
    labels = np.array([places.setdefault(label, len(places)) for label in labels.tolist()], dtype=np.int32)
    largest = f"What held more than {100 * MOST_OF_A_ROLE:.0f} % of all was split in the same way: {count} in all."
    return Clustering(labels, replace(found.choice, sentence=f"{found.choice.sentence} {largest}"), found.merges)


def _cut(vectors: NDArray[Any], clusters: int | None, threshold: float | None, seed: int, progress: bool) -> Clustering:
    leaves = _leaves(vectors, threshold, seed, progress)
    if clusters is not None and clusters > len(leaves.means):
        kind = "distinct utterances" if leaves.distinct else "groups that utterances are put in first"
        raise InputError(f"field clusters: got {clusters}, expected at most {len(leaves.means)}, the {kind}; lower it")
    merges = average_linkage(leaves.means, leaves.weights, progress=progress)
    choice = _choice(merges, clusters, threshold, len(vectors))
    labels = cut(merges, choice.count)[leaves.of]
    return Clustering(labels, choice, merges)


def _of(given: Any, role: str) -> Any:  # noqa: ANN401 - a number of either kind, or some by role
    return given.get(role) if isinstance(given, Mapping) else given


def _check(vectors: NDArray[Any], number: int | None, threshold: float | None) -> None:
    if np.ndim(vectors) != 2 or not np.size(vectors):
        raise ValueError(f"vectors: got shape {np.shape(vectors)}, expected (N, D) with N and D of at least 1")
    if not np.isfinite(vectors).all():
        raise ValueError("vectors: got one with NaN or infinity, expected finite numbers; look at the encoder")
    if number is not None and (number != int(number) or number < 1):
        raise InputError(f"field clusters: got {number}, expected a whole number from 1 on; correct it")
    if threshold is not None and not 0 < threshold < math.inf:
        raise InputError(f"field threshold: got {threshold}, expected a distance above 0, such as 0.5; correct it")


def _leaves(vectors: NDArray[Any], threshold: float | None, seed: int, progress: bool) -> Leaves:
    """Finds distinct vectors, and puts them into groups where there are many."""
    places: dict[bytes, int] = {}
    of = np.array([places.setdefault(vector.tobytes(), len(places)) for vector in vectors], dtype=np.intp)
    firsts = np.unique(of, return_index=True)[1]
    counts = np.bincount(of).astype(np.float64)
    if len(firsts) <= MOST_EXACT:
        return Leaves(of, unit(vectors[firsts].astype(np.float64)), counts, True)
    near = unit(vectors[firsts].astype(np.float32))
    groups, means, weights = grouped_leaves(near, counts, threshold=threshold, seed=seed, progress=progress)
    return Leaves(groups[of], means, weights, False)


def unit(vectors: Floats) -> Floats:
    """Brings vectors to unit length, in place; those of zeros get the direction of the first axis."""
    vectors[~vectors.any(axis=1), 0] = 1
    vectors /= np.abs(vectors).max(axis=1, keepdims=True)  # else squares of very small or large numbers are 0 or inf
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def _choice(merges: Merges, number: int | None, threshold: float | None, utterances: int) -> Choice:
    """Settles how many clusters there are."""
    curve = _curve(merges)
    if number is not None:
        return Choice("number", number, number, curve, f"{_clusters(number)}, as asked for.")
    if threshold is not None:
        found = number_below(merges, threshold)
        sentence = f"{_clusters(found)}: those at a mean cosine distance below {threshold:g}, as asked for, are one."
        return Choice("threshold", threshold, found, curve, sentence)
    if not curve or merges[-1, 2] <= _SAME:
        reason = "all utterances are the same" if utterances > 1 else "there is one utterance"
        return Choice("chosen", 0.0, 1, curve, f"1 cluster, as {reason}.")
    count, distance, score = max(curve, key=lambda point: point[2])
    if score < CLEAR:
        return _without_knee(merges, curve, score, "the curve of distances has no clear bend")
    if count == 2 and len(merges) >= _MANY - 1:
        return _without_knee(merges, curve, score, "the curve of distances bends only at 2, which say too little")
    sentence = (
        f"{_clusters(count)}, where the curve of distances bends: with fewer, unlike groups would be joined (mean "
        f"cosine distance {distance:.2f}); with more, alike ones would be split."
    )
    return Choice("chosen", score, count, curve, sentence)


def _without_knee(merges: Merges, curve: Curve, score: float, reason: str) -> Choice:
    """Cuts at a share of the highest distance, within bounds."""
    leaves, threshold = len(merges) + 1, SHARE_OF_HIGHEST * float(merges[-1, 2])
    found = number_below(merges, threshold)
    fewest, half = _FEWEST if leaves >= _MANY else 2, (leaves + 1) // 2
    count = max(fewest, min(found, half, MOST_CLUSTERS))
    distance = f"{threshold:.2f}, two thirds of that at which all would be one"
    if count == found:
        sentence = f"{_clusters(count)}: {reason}, so clusters were joined up to a mean cosine distance of {distance}."
    else:
        end = f"stopped at {count}, as fewer say too little"
        if count < found:
            most = "half as many as there are different utterances" if count == half else "what a person can read"
            end = f"went on to {most}"
        sentence = (
            f"{_clusters(count)}: {reason}; joining clusters up to a mean cosine distance of {distance}, would leave "
            f"{found}, so joining {end}."
        )
    return Choice("chosen", score, count, curve, sentence)


def _curve(merges: Merges) -> Curve:
    """Looks at 2 to `MOST_CLUSTERS` clusters."""
    heights = np.append(merges[::-1, 2], 0)[:MOST_CLUSTERS]  # within 1, 2, ... clusters; none within single leaves
    if len(heights) < 2:
        return ()
    along = np.linspace(0, 1, len(heights))
    down = (heights[0] - heights) / max(heights[0] - heights[-1], np.finfo(np.float64).tiny)
    scores = (down - along).tolist()
    return tuple((number, float(heights[number - 2]), scores[number - 1]) for number in range(2, len(heights) + 1))


def _clusters(count: int) -> str:
    return counted(count, "cluster")
