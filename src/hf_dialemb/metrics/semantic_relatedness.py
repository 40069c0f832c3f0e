"""Semantic relatedness in two forms (dial2vec, section 4.1), not to be compared."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .vectors import COSINE_STEPS, labelled_vectors, require, unit_vectors


def pair_relatedness(
    embeddings: ArrayLike, labels: ArrayLike, seeds: Iterable[int] = range(10)
) -> NDArray[np.float64]:
    """Correlate the cosines of random pairs of dialogues with sharing a label.

    The form of the dial2vec paper, section 4.1: of finite vectors ``(N, D)`` with two or more
    labels, each seed draws N pairs. Returns a correlation in ``[-1, 1]`` for each seed, NaN for a
    draw in which no pair or every pair shares a label, or all cosines are equal.
    """
    vectors, codes = labelled_vectors(embeddings, labels)
    units = unit_vectors(vectors)
    count = len(codes)
    correlations = []
    for seed in seeds:
        steps = np.random.default_rng(seed).integers(1, count, size=count)
        # uniform over the others: a step is never a whole turn
        partners = (np.arange(count) + steps) % count
        cosines = np.einsum("nd,nd->n", units, units[partners])
        scores = np.rint(cosines * COSINE_STEPS).astype(np.int32)
        correlations.append(binary_spearman(np.sort(scores), scores[codes == codes[partners]]))
    require(len(correlations) > 0, "seeds", "none", "at least one; pass for example range(10)")
    return np.array(correlations)


def binary_spearman(ordered: NDArray[Any], positives: NDArray[Any]) -> float:
    """Compute Spearman's correlation, ties included, of scores with a 0/1 vector in closed form.

    With average ranks r and tie groups of sizes t, it is the centred rank sum of the positives over
    the two spreads: ``(sum_pos r - P (M + 1) / 2) / sqrt((M^3 - M - sum(t^3 - t)) / 12 * P (M - P)
    / M)``.

    Takes all M scores in ascending order, and the P at which the vector is 1 in any order. The
    correlation is in ``[-1, 1]``, or NaN where all scores are equal, or all or none are positive.
    """
    total = len(ordered)
    hits = len(positives)
    ties = ordered[1:][ordered[1:] == ordered[:-1]]  # a value t times in all is here t - 1 times
    sizes = np.unique(ties, return_counts=True)[1] + 1
    tied = int((sizes**3 - sizes).sum())
    spread = (total**3 - total - tied) / 12
    if spread == 0 or hits in (0, total):
        return float("nan")
    below = np.searchsorted(ordered, positives, side="left")
    up_to = np.searchsorted(ordered, positives, side="right") if len(ties) else below + 1
    rank_sum = float((below + up_to + 1).sum()) / 2
    return float(
        (rank_sum - hits * (total + 1) / 2) / np.sqrt(spread * hits * (total - hits) / total)
    )
