"""Average linkage by cosine, of leaves that have weights.

The distance of two clusters is the mean over all pairs of 1 - cosine. Of unit vectors, that is 1 less the product of
the two clusters' means, which need not be of unit length; so a leaf may stand for many vectors, and the result is what
linking all of them would give once those of a leaf are one cluster. Identical vectors are one cluster before anything
else in any case: there nothing is lost.

Reciprocal nearest neighbours are found along a chain (Murtagh, 1983), and distances of what is merged follow from those
of its parts (Lance and Williams, 1967). No merge makes a cluster nearer to another than its parts were, so that the
order in which pairs are found does not matter.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

Merges = NDArray[np.float64]
"""Merges in the form of scipy's linkage, ``(L - 1, 4)``: two clusters, their distance in ``[0, 2]``, the weight of both
together. Leaves are 0 to L - 1, what row r makes is L + r; distances ascend."""


def average_linkage(means: NDArray[Any], weights: NDArray[Any], *, progress: bool = False) -> Merges:
    """Merges L leaves until one cluster is left; takes 8 bytes times the square of L.

    A leaf is the mean of unit vectors, ``(L, D)``, and stands for so many of them as its weight says, ``(L,)``.
    """
    from tqdm.auto import tqdm

    exact = np.asarray(means, dtype=np.float64)
    distances = exact @ exact.T
    np.subtract(1, distances, out=distances)
    np.clip(distances, 0, 2, out=distances)
    np.fill_diagonal(distances, np.inf)
    total = len(exact) - 1
    hidden = not progress or not total
    with tqdm(total=total, desc="merge", unit="cluster", file=sys.stderr, leave=False, delay=1, disable=hidden) as bar:
        pairs, heights = _merged(distances, np.array(weights, dtype=np.float64), bar)
    return _in_order(pairs, heights, np.asarray(weights, dtype=np.float64))


def cut(merges: Merges, number: int) -> NDArray[np.int32]:
    """Undoes merges, ``(L - 1, 4)``, until there are so many clusters, in ``[1, L]``.

    Returns the cluster of each leaf, ``(L,)``, numbered from 0 in the order of leaves.
    """
    leaves = len(merges) + 1
    owner = np.arange(2 * leaves - 1)
    for row in range(leaves - number - 1, -1, -1):  # from the top down, so that an owner's owner is known
        owner[merges[row, :2].astype(np.intp)] = owner[leaves + row]
    first, inverse = np.unique(owner[:leaves], return_index=True, return_inverse=True)[1:]
    ranks = np.empty(len(first), dtype=np.int32)
    ranks[np.argsort(first)] = np.arange(len(first))
    return ranks[inverse]


def number_below(merges: Merges, threshold: float) -> int:
    """Counts the clusters that are left when only merges at a distance below the threshold are made."""
    return int((merges[:, 2] >= threshold).sum()) + 1


def _merged(distances: Merges, weights: NDArray[np.float64], bar: Any) -> tuple[NDArray[np.intp], NDArray[np.float64]]:  # noqa: ANN401 - tqdm's are not typed
    """Finds what is merged with what, clusters named by one of their leaves, in no order; changes what it is given."""
    pairs, heights = np.zeros((len(weights) - 1, 2), dtype=np.intp), np.zeros(len(weights) - 1)
    alive = np.ones(len(weights), dtype=bool)
    chain: list[int] = []
    for row in range(len(heights)):
        gone, kept = _nearest_pair(distances, chain, alive)
        pairs[row], heights[row] = (gone, kept), distances[gone, kept]
        _join(distances, weights, gone, kept)
        alive[gone] = False
        bar.update()
    return pairs, heights


def _nearest_pair(distances: Merges, chain: list[int], alive: NDArray[np.bool_]) -> tuple[int, int]:
    """Follows nearest neighbours until two are each other's; takes these from the chain."""
    if not chain:
        chain.append(int(alive.argmax()))
    while True:
        of_last = distances[chain[-1]]
        nearest = int(of_last.argmin())
        # Of equally near ones the one before is taken, else a chain could go round in a circle.
        if len(chain) > 1 and of_last[chain[-2]] <= of_last[nearest]:
            return chain.pop(), chain.pop()
        chain.append(nearest)


def _join(distances: Merges, weights: NDArray[np.float64], gone: int, kept: int) -> None:
    """Puts the cluster of two into the place of one; what is gone, and itself, stay infinitely far."""
    share = weights[gone] / (weights[gone] + weights[kept])
    row = distances[kept]
    row *= 1 - share
    row += share * distances[gone]
    distances[:, kept] = row
    distances[:, gone] = np.inf
    distances[gone] = np.inf
    weights[kept] += weights[gone]


def _in_order(pairs: NDArray[np.intp], heights: NDArray[np.float64], weights: NDArray[np.float64]) -> Merges:
    """Sorts merges by distance and gives clusters the numbers that they then have."""
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
