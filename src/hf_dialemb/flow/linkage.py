"""Average linkage by cosine, of leaves that have weights, and of groups where there are many vectors.

The distance of two clusters is the mean of 1 - cosine over all pairs. For unit vectors, that is 1 minus the product of
the clusters' means. So a leaf may stand for many vectors, and the result is that of linking them all once those of a
leaf are one cluster. Identical vectors are merged first in any case.

Reciprocal nearest neighbours are found along a chain (Murtagh, 1983); distances follow from those of the merged parts
(Lance and Williams, 1967). scipy does the same, but its leaves have no weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

MOST_EXACT = 6000  # distinct vectors that are linked as they are: their distances take 288 MB
GROUPS = 5000  # groups that more vectors are put into, about
REGION = 2500  # vectors of a region, about; at most `MOST_EXACT`
_SAMPLE = 20_000  # vectors from which the middles of regions are computed

Merges = NDArray[np.float64]
"""Merges in the form of scipy's linkage, ``(L - 1, 4)``: two clusters, their distance in ``[0, 2]``, their weight.

Leaves are 0 to L - 1, the result of row r is L + r; distances ascend."""


def average_linkage(means: NDArray[Any], weights: NDArray[Any]) -> Merges:
    """Merge L leaves until one cluster is left; this takes 8 bytes times the square of L.

    Args:
        means: The mean of the unit vectors that each leaf stands for, ``(L, D)``.
        weights: The number of these vectors, ``(L,)``.
    """
    exact = np.asarray(means, dtype=np.float64)
    distances = exact @ exact.T
    np.subtract(1, distances, out=distances)
    np.clip(distances, 0, 2, out=distances)
    np.fill_diagonal(distances, np.inf)
    sizes = np.array(weights, dtype=np.float64)
    pairs, heights = np.zeros((len(sizes) - 1, 2), dtype=np.intp), np.zeros(len(sizes) - 1)
    alive, chain = np.ones(len(sizes), dtype=bool), list[int]()
    for row in range(len(heights)):
        gone, kept = _nearest_pair(distances, chain, alive)
        pairs[row], heights[row] = (gone, kept), distances[gone, kept]
        _join(distances, sizes, gone, kept)
        alive[gone] = False
    return _in_order(pairs, heights, np.asarray(weights, dtype=np.float64))


def cut(merges: Merges, number: int) -> NDArray[np.int32]:
    """Undo merges until ``number`` clusters are left, in ``[1, L]``.

    Returns:
        The cluster of each leaf, ``(L,)``, numbered from 0 in the order of leaves.
    """
    leaves = len(merges) + 1
    owner = np.arange(2 * leaves - 1)
    for row in range(leaves - number - 1, -1, -1):  # from the top down, so that an owner's owner is known
        owner[merges[row, :2].astype(np.intp)] = owner[leaves + row]
    first, inverse = np.unique(owner[:leaves], return_index=True, return_inverse=True)[1:]
    return first.argsort().argsort()[inverse].astype(np.int32)


def number_below(merges: Merges, threshold: float) -> int:
    """Count the clusters that are left when only merges at a distance below the threshold are made."""
    return int((merges[:, 2] >= threshold).sum()) + 1


def _nearest_pair(distances: Merges, chain: list[int], alive: NDArray[np.bool_]) -> tuple[int, int]:
    """Follow nearest neighbours until two are mutual, and take these from the chain."""
    if not chain:
        chain.append(int(alive.argmax()))
    while True:
        of_last = distances[chain[-1]]
        nearest = int(of_last.argmin())
        # Among equally near neighbours the previous one wins, else a chain could go round in a circle.
        if len(chain) > 1 and of_last[chain[-2]] <= of_last[nearest]:
            return chain.pop(), chain.pop()
        chain.append(nearest)


def _join(distances: Merges, weights: NDArray[np.float64], gone: int, kept: int) -> None:
    """Put the cluster of two into the place of ``kept``; it and what is gone stay infinitely far from themselves."""
    share = weights[gone] / (weights[gone] + weights[kept])
    row = distances[kept]
    row *= 1 - share
    row += share * distances[gone]
    distances[:, kept] = row
    distances[:, gone] = np.inf
    distances[gone] = np.inf
    weights[kept] += weights[gone]


def _in_order(pairs: NDArray[np.intp], heights: NDArray[np.float64], weights: NDArray[np.float64]) -> Merges:
    """Sort merges by distance, and number clusters accordingly."""
    from scipy.cluster.hierarchy import DisjointSet

    leaves, joined = len(weights), DisjointSet(range(len(weights)))
    numbers, sizes = list(range(leaves)), weights.tolist()  # of the cluster that has a leaf for its root
    merges = np.zeros((leaves - 1, 4))
    for row, place in enumerate(np.argsort(heights, kind="stable")):
        roots = [joined[leaf] for leaf in pairs[place].tolist()]
        size = sum(sizes[root] for root in roots)
        merges[row] = *sorted(numbers[root] for root in roots), heights[place], size
        joined.merge(*roots)
        numbers[joined[roots[0]]], sizes[joined[roots[0]]] = leaves + row, size
    return merges


def grouped_leaves(
    units: NDArray[np.float32],
    counts: NDArray[np.float64],
    *,
    groups: int = GROUPS,
    region: int = REGION,
    threshold: float | None = None,
    seed: int = 0,
) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]:
    """Put distinct unit vectors, ``(U, D)``, into about ``groups`` groups of near ones.

    k-means divides the vectors into regions. Within each, average linkage merges up to one distance for all regions
    that leaves ``groups`` groups, or up to a lower threshold. Linking the groups is then exact, see `average_linkage`.

    Args:
        units: The vectors.
        counts: The number of equal vectors that each stands for, ``(U,)``.
        groups: The number of groups.
        region: The size of regions, about.
        threshold: A distance at which vectors stay apart, even if there are more groups then.
        seed: The seed of k-means.

    Returns:
        The group of each vector, ``(U,)``; the mean ``(L, D)`` and the number of vectors ``(L,)`` of each group.

    Raises:
        InputError: The threshold leaves more than `MOST_EXACT` groups.
    """
    from scipy.sparse import csr_array

    regions = _regions(units, region, seed)
    trees = [average_linkage(units[rows], counts[rows]) for rows in regions]
    heights = np.sort(np.concatenate([merges[:, 2] for merges in trees]))
    made = len(units) - groups
    highest = float(heights[made]) if made < len(heights) else np.inf
    if threshold is not None and threshold < highest:
        left = sum(number_below(merges, threshold) for merges in trees)
        if left > MOST_EXACT:
            raise InputError(
                f"field threshold: got {threshold:g}, which leaves about {left:,} clusters, expected at most "
                f"{MOST_EXACT:,}, which can be compared; raise it, to {round(highest + 0.005, 2):g} or more"
            )
        highest = threshold
    labels, count = np.zeros(len(units), dtype=np.intp), 0
    for rows, merges in zip(regions, trees, strict=True):
        number = number_below(merges, highest)
        labels[rows] = count + cut(merges, number)
        count += number
    members = csr_array((counts, (labels, np.arange(len(units)))), shape=(count, len(units)))
    weights = members.sum(axis=1)
    return labels, members @ units.astype(np.float64) / weights[:, None], weights


def _regions(units: NDArray[np.float32], region: int, seed: int) -> list[NDArray[np.intp]]:
    """Divide vectors into regions of near ones, again where a region is too large to be linked."""
    waiting, regions = [np.arange(len(units))], list[NDArray[np.intp]]()
    while waiting:
        rows = waiting.pop()
        labels = _nearest_middles(units[rows], max(2, round(len(rows) / region)), seed)
        parts = [rows[labels == label] for label in np.unique(labels)]
        for part in parts if len(parts) > 1 else np.array_split(rows, 2):  # any halves where no middle divides them
            (regions if len(part) <= MOST_EXACT else waiting).append(part)
    return regions


def _nearest_middles(units: NDArray[np.float32], number: int, seed: int) -> NDArray[np.intp]:
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    sample = np.random.default_rng(seed).choice(len(units), min(len(units), _SAMPLE), replace=False)
    with threadpool_limits(1):  # threads sum in any order, so that nearly equal distances may change sides
        model = KMeans(number, n_init=1, max_iter=20, random_state=seed).fit(units[np.sort(sample)])
        nearest: NDArray[np.intp] = model.predict(units).astype(np.intp)
    return nearest
