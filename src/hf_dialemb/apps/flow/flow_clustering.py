"""Cluster the utterances of each role by average linkage and cosine (Dialog2Flow)."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...display import counted
from ...errors import InputError
from ...metrics.vectors import unit, unit_vectors

MOST_CLUSTERS = 100  # of a role where no number is given: a person reads no more
# the largest share of a role's utterances in a wide cluster where no number is given
MOST_OF_A_ROLE = 0.3
CLEAR = 0.15  # a knee with a lower score is not taken; in few utterances it is noise
SHARE_OF_HIGHEST = 2 / 3
"""Of the distance at which all are one: where to cut without a clear knee.

In 40 small sets of SGD, MultiWOZ and the sample, the adjusted Rand index with actions is then 0.41,
and 0.25 at the knee. Clear knees lie at about 0.7 with all-MiniLM-L6-v2, and at 0.45 with
Dialog2Flow's vectors.
"""

MOST_EXACT = 6000  # distinct vectors that are linked as they are: their distances take 288 MB
GROUPS = 5000  # groups that more vectors are put into, about
REGION = 2500  # vectors of a region, about; at most `MOST_EXACT`
_SAMPLE = 20_000  # vectors from which the middles of regions are computed
_MANY = 20  # different utterances that make more than 2 clusters
_FEWEST = 5  # clusters that they make without a knee
_SAME = 1e-7  # a distance below this is rounding

Merges = NDArray[np.float64]
"""Merges of L leaves, ``(L - 1, 3)``: a leaf of each of two clusters, and their distance.

Distances are in ``[0, 2]`` and ascend."""


@dataclass(frozen=True, eq=False)
class Clustering:
    """Clusters of the N utterances of one role."""

    # the cluster of each, (N,), numbered from 0 in the order of utterances
    labels: NDArray[np.int32]
    sentence: str  # how the number of clusters was decided, for a person
    chosen: bool  # whether neither a number nor a threshold was given
    merges: Merges  # of distinct vectors, or of groups in large roles


def cluster_by_role(
    vectors: NDArray[Any],
    roles: Sequence[str],
    *,
    clusters: int | Mapping[str, int] | None = None,
    seed: int = 0,
) -> dict[str, Clustering]:
    """Cluster the utterances of each role by their vectors, ``(N, D)``.

    Roles are in alphabetical order. Equal texts should have equal vectors. A vector of zeros gets
    the direction of the first axis, as in the official program. ``clusters`` is their number for
    each role, or for the roles that a mapping names. The seed is that of the groups of a large
    role; nothing else is random. An
    InputError says that a number is of no role or out of bounds.
    """
    speakers = sorted(set(roles))
    counts = clusters if isinstance(clusters, Mapping) else dict.fromkeys(speakers, clusters)
    for role in counts:
        if role not in speakers:
            raise InputError(
                f"field clusters: got role '{role}', expected one of {', '.join(speakers)}"
            )
    names = np.array(roles, dtype=object)
    return {
        role: cluster(vectors[names == role], clusters=counts.get(role), seed=seed)
        for role in speakers
    }


def cluster(
    vectors: NDArray[Any],
    *,
    clusters: int | None = None,
    threshold: float | None = None,
    seed: int = 0,
) -> Clustering:
    """Cluster vectors of one role, ``(N, D)``; see `cluster_by_role`.

    ``threshold`` is the mean cosine distance below which clusters are merged. A chosen number is at
    least 2 where there are two distinct vectors, and at most `MOST_CLUSTERS`; a wide cluster with a
    knee of its own is split once more. More than `MOST_EXACT` distinct vectors are grouped first.
    """
    if clusters is not None and clusters < 1:
        raise InputError(f"field clusters: got {clusters}, expected 1 or more; correct it")
    clustering, bends = _linked(vectors, clusters, threshold, seed)
    return _largest_split(vectors, clustering, seed) if bends else clustering


def in_order(items: Iterable[Hashable]) -> NDArray[np.int32]:
    """Assign numbers to items, equal ones the same, by first occurrence, ``(N,)``."""
    places: dict[Hashable, int] = {}
    return np.array([places.setdefault(item, len(places)) for item in items], dtype=np.int32)


def in_order_of_size(labels: NDArray[Any]) -> NDArray[np.int32]:
    """Return labels ``(N,)`` in which 0 is the largest cluster.

    Those of a size are in the order in which they come.
    """
    names, firsts, sizes = np.unique(labels, return_index=True, return_counts=True)
    ranks = np.empty(int(names[-1]) + 1, dtype=np.int32)
    ranks[names[np.lexsort((firsts, -sizes))]] = np.arange(len(names))
    ordered: NDArray[np.int32] = ranks[labels]
    return ordered


def _largest_split(vectors: NDArray[Any], clustering: Clustering, seed: int) -> Clustering:
    """Split the wide clusters that hold more than `MOST_OF_A_ROLE` of all."""
    labels = clustering.labels.copy()
    sizes = np.bincount(clustering.labels)
    widest = float(clustering.merges[-len(sizes), 2])
    for label in np.flatnonzero((sizes > MOST_OF_A_ROLE * len(labels)) & (sizes >= _MANY)):
        rows = np.flatnonzero(clustering.labels == label)
        parts, bends = _linked(vectors[rows], None, None, seed)
        if bends and parts.merges[-1, 2] >= SHARE_OF_HIGHEST * widest:
            apart = parts.labels > 0
            labels[rows[apart]] = labels.max() + parts.labels[apart]
    count = int(labels.max()) + 1
    if count == len(sizes):
        return clustering
    largest = f"What held more than {MOST_OF_A_ROLE:.0%} of all was split again: {count} in all."
    sentence = f"{clustering.sentence} {largest}"
    return replace(clustering, labels=in_order(labels.tolist()), sentence=sentence)


def _linked(
    vectors: NDArray[Any], number: int | None, threshold: float | None, seed: int
) -> tuple[Clustering, bool]:
    """Link distinct vectors, in groups where there are many, and cut the tree.

    Return the clusters, and whether their number was chosen at a clear knee.
    """
    leaves: NDArray[Any] = in_order(vector.tobytes() for vector in vectors)
    distinct = np.array(vectors[np.unique(leaves, return_index=True)[1]])
    distinct[~distinct.any(axis=1), 0] = 1
    weights = np.bincount(leaves).astype(np.float64)
    if len(distinct) <= MOST_EXACT:
        means = unit_vectors(distinct)
    else:
        groups, means, weights = grouped_leaves(unit(distinct), weights, seed=seed)
        leaves = groups[leaves]
    if number is not None and number > len(means):
        raise InputError(
            f"field clusters: got {number}, expected at most {len(means)}, the different "
            "utterances or their groups; lower it"
        )
    merges = average_linkage(means, weights)
    count, sentence, bends = _choice(merges, number, threshold)
    chosen = number is None and threshold is None
    return Clustering(cut(merges, count)[leaves], sentence, chosen, merges), bends


def _choice(merges: Merges, number: int | None, threshold: float | None) -> tuple[int, str, bool]:
    """Return the number of clusters, the reason, and whether it is a clear knee."""
    if number is not None:
        return number, f"{counted(number, 'cluster')}, as asked for.", False
    if threshold is not None:
        count = number_below(merges, threshold)
        return count, f"{counted(count, 'cluster')} at a distance of {threshold:g}.", False
    if not len(merges) or merges[-1, 2] <= _SAME:
        return 1, "1 cluster: all utterances are the same.", False
    count, distance, score = _knee(merges)
    if score < CLEAR or (count == 2 and len(merges) >= _MANY - 1):
        count = _without_knee(merges)
        reason = "as the curve of distances has no clear bend."
        return count, f"{counted(count, 'cluster')}, {reason}", False
    reason = (
        "where the curve of distances bends: with fewer, unlike groups would be joined "
        f"(mean cosine distance {distance:.2f})."
    )
    return count, f"{counted(count, 'cluster')}, {reason}", count > 2


def _without_knee(merges: Merges) -> int:
    """Return the number of clusters below a share of the highest distance, within bounds."""
    leaves = len(merges) + 1
    below = number_below(merges, SHARE_OF_HIGHEST * float(merges[-1, 2]))
    most = min(below, (leaves + 1) // 2, MOST_CLUSTERS)
    return max(_FEWEST if leaves >= _MANY else 2, most)


def _knee(merges: Merges) -> tuple[int, float, float]:
    """Return the best of 2 to `MOST_CLUSTERS` clusters, their distance, and its score.

    The distance is that of the two nearest clusters. The score is how far the largest distance
    within clusters lies below the straight line from that of one cluster to that of the last
    number, both axes scaled to ``[0, 1]`` (Kneedle: Satopaa et al., 2011).
    """
    # within 1, 2, ... clusters; 0 within single leaves
    heights = np.append(merges[::-1, 2], 0)[:MOST_CLUSTERS]
    down = (heights[0] - heights) / max(heights[0] - heights[-1], np.finfo(np.float64).tiny)
    scores = down - np.linspace(0, 1, len(heights))
    best = 1 + int(scores[1:].argmax())
    return best + 1, float(heights[best - 1]), float(scores[best])


def average_linkage(means: NDArray[Any], weights: NDArray[Any]) -> Merges:
    """Merge L leaves until one cluster is left; this takes 8 bytes times the square of L.

    ``means`` ``(L, D)`` are those of the unit vectors that each leaf stands for, ``weights``
    ``(L,)`` the number of these. The distance of two clusters is the mean of 1 - cosine over all
    pairs: for unit vectors, 1 minus the product of the means. So a leaf may stand for many vectors,
    as in no leaf of scipy's. Reciprocal nearest neighbours are found along a chain (Murtagh, 1983);
    distances follow from those of the merged parts (Lance and Williams, 1967).
    """
    exact = np.asarray(means, dtype=np.float64)
    distances = exact @ exact.T
    np.clip(np.subtract(1, distances, out=distances), 0, 2, out=distances)
    np.fill_diagonal(distances, np.inf)
    sizes = np.array(weights, dtype=np.float64)
    pairs = np.zeros((len(sizes) - 1, 2), dtype=np.intp)
    heights = np.zeros(len(sizes) - 1)
    alive = np.ones(len(sizes), dtype=bool)
    chain = list[int]()
    for row in range(len(heights)):
        chain = chain or [int(alive.argmax())]
        while True:
            of_last = distances[chain[-1]]
            nearest = int(of_last.argmin())
            # Among equally near neighbours the previous one wins, else a chain could go round in a
            # circle.
            if len(chain) > 1 and of_last[chain[-2]] <= of_last[nearest]:
                break
            chain.append(nearest)
        gone = chain.pop()
        kept = chain.pop()
        pairs[row] = (gone, kept)
        heights[row] = distances[gone, kept]
        share = sizes[gone] / (sizes[gone] + sizes[kept])
        distances[kept] *= 1 - share
        distances[kept] += share * distances[gone]
        distances[:, kept] = distances[kept]
        distances[:, gone] = np.inf
        distances[gone] = np.inf
        sizes[kept] += sizes[gone]
        alive[gone] = False
    order = np.argsort(heights, kind="stable")
    merges: Merges = np.hstack([pairs[order].astype(np.float64), heights[order, None]])
    return merges


def cut(merges: Merges, number: int) -> NDArray[np.int32]:
    """Return the cluster of each leaf, ``(L,)``, once ``number`` in ``[1, L]`` are left.

    Clusters are numbered by their first leaves.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    leaves = len(merges) + 1
    made = merges[: leaves - number, :2].astype(np.intp)
    joined = coo_array((np.ones(len(made)), made.T), shape=(leaves, leaves))
    labels: NDArray[np.int32] = connected_components(joined, directed=False)[1]
    return labels


def number_below(merges: Merges, threshold: float) -> int:
    """Count the clusters that are left after all merges at a distance below the threshold."""
    return int((merges[:, 2] >= threshold).sum()) + 1


def grouped_leaves(
    units: NDArray[np.float32],
    counts: NDArray[np.float64],
    *,
    groups: int = GROUPS,
    region: int = REGION,
    seed: int = 0,
) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]:
    """Put distinct unit vectors, ``(U, D)``, into about ``groups`` groups of near ones.

    k-means divides the vectors into regions of about ``region``. Within each, average linkage
    merges up to one distance for all regions that leaves ``groups`` groups. Linking the groups is
    then exact, see `average_linkage`. Each vector stands for a number of equal ones, ``counts``
    ``(U,)``.

    Returns:
        The group of each vector, ``(U,)``, and the mean ``(L, D)`` and the number of vectors
        ``(L,)`` of each group.
    """
    from scipy.sparse import csr_array

    regions = _regions(units, region, seed)
    trees = [average_linkage(units[rows], counts[rows]) for rows in regions]
    heights = np.sort(np.concatenate([merges[:, 2] for merges in trees]))
    made = len(units) - groups
    highest = float(heights[made]) if made < len(heights) else np.inf
    labels = np.zeros(len(units), dtype=np.intp)
    count = 0
    for rows, merges in zip(regions, trees, strict=True):
        number = number_below(merges, highest)
        labels[rows] = count + cut(merges, number)
        count += number
    members = csr_array((counts, (labels, np.arange(len(units)))), shape=(count, len(units)))
    weights = members.sum(axis=1)
    return labels, members @ units.astype(np.float64) / weights[:, None], weights


def _regions(units: NDArray[np.float32], region: int, seed: int) -> list[NDArray[np.intp]]:
    """Divide vectors into regions of near ones, again where a region is too large to be linked."""
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    waiting = [np.arange(len(units))]
    regions = list[NDArray[np.intp]]()
    while waiting:
        rows = waiting.pop()
        own = units[rows]
        sample = np.random.default_rng(seed).choice(len(own), min(len(own), _SAMPLE), replace=False)
        means = KMeans(max(2, round(len(own) / region)), n_init=1, max_iter=20, random_state=seed)
        # Threads sum in any order, so that nearly equal distances could change sides.
        with threadpool_limits(1):
            labels = means.fit(own[np.sort(sample)]).predict(own)
        parts = [rows[labels == label] for label in np.unique(labels)]
        if len(parts) == 1:  # no middle divides them
            parts = np.array_split(rows, 2)
        for part in parts:
            (regions if len(part) <= MOST_EXACT else waiting).append(part)
    return regions
