"""Puts very many utterances into groups of near ones, so that a matrix of distances can hold the groups.

Vectors are parted into regions by k-means; within each they are merged by average linkage, up to one distance for all
regions at which as many groups are left as shall be, or below a threshold. Linking these groups on is then exact, see
`hf_dialemb.flow.average_linkage`: the result differs from linking all vectors only where near ones are in different
regions.
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .average_linkage import average_linkage, cut, number_below

MOST_EXACT = 6000  # so many distinct vectors are linked as they are: their distances take 288 MB
GROUPS = 5000  # so many groups more vectors are put in, about
REGION = 2500  # so many vectors a region has, about; none more than `MOST_EXACT`
_SAMPLE = 20_000  # the middles of regions are found from so many vectors at most


def grouped_leaves(
    unit: NDArray[np.float32],
    counts: NDArray[np.float64],
    *,
    groups: int = GROUPS,
    region: int = REGION,
    threshold: float | None = None,
    seed: int = 0,
    progress: bool = False,
) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]:
    """Puts distinct unit vectors, ``(U, D)``, each of which stands for so many as its count says, into about L groups.

    What is not nearer than the threshold stays apart, even if there are more groups then. The seed draws what regions
    of about ``region`` vectors start from. An InputError says that there are more than `MOST_EXACT` groups for the
    threshold's sake.

    Returns the group of each vector, ``(U,)``, each in ``[0, L)``; of each group the mean, ``(L, D)`` float64, and how
    many vectors it stands for, ``(L,)``.
    """
    from scipy.sparse import csr_array
    from tqdm.auto import tqdm

    regions = _regions(unit, region, seed)
    trees = []
    with tqdm(total=len(unit), desc="group", unit="text", file=sys.stderr, leave=False, disable=not progress) as bar:
        for rows in regions:
            trees.append(average_linkage(unit[rows], counts[rows]))
            bar.update(len(rows))
    heights = np.sort(np.concatenate([merges[:, 2] for merges in trees]))
    made = len(unit) - groups
    highest = float(heights[made]) if made < len(heights) else np.inf
    if threshold is not None and threshold < highest:
        left = sum(number_below(merges, threshold) for merges in trees)
        if left > MOST_EXACT:
            enough = round(highest + 0.005, 2)  # not below it
            raise InputError(
                f"field threshold: got {threshold:g}, which leaves about {left:,} clusters, expected one that leaves "
                f"at most {MOST_EXACT:,}, more cannot be compared with each other; raise it, to {enough:g} or more"
            )
        highest = threshold
    of, found = np.zeros(len(unit), dtype=np.intp), 0
    for rows, merges in zip(regions, trees, strict=True):
        number = number_below(merges, highest)
        of[rows] = found + cut(merges, number)
        found += number
    members = csr_array((counts, (of, np.arange(len(unit)))), shape=(found, len(unit)))
    weights = members.sum(axis=1)
    return of, members @ unit.astype(np.float64) / weights[:, None], weights


def _regions(unit: NDArray[np.float32], region: int, seed: int) -> list[NDArray[np.intp]]:
    """Parts vectors into regions of near ones, again where one is too large to be linked."""
    waiting: list[NDArray[np.intp]] = [np.arange(len(unit))]
    regions: list[NDArray[np.intp]] = []
    while waiting:
        rows = waiting.pop()
        of = _nearest_middles(unit[rows], max(2, round(len(rows) / region)), seed)
        parts = [rows[of == label] for label in np.unique(of)]
        for part in parts if len(parts) > 1 else np.array_split(rows, 2):  # any do where no middle parts them
            (regions if len(part) <= MOST_EXACT else waiting).append(part)
    return regions


def _nearest_middles(unit: NDArray[np.float32], number: int, seed: int) -> NDArray[np.intp]:
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    sample = np.random.default_rng(seed).choice(len(unit), min(len(unit), _SAMPLE), replace=False)
    with threadpool_limits(1):  # threads add up in any order, and what is nearly as near may change sides
        model = KMeans(number, n_init=1, max_iter=20, random_state=seed).fit(unit[np.sort(sample)])
        nearest: NDArray[np.intp] = model.predict(unit).astype(np.intp)
    return nearest
