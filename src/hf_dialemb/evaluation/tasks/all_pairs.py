"""Every dialogue against all others, once for all that is measured so: retrieval and relatedness per query."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


class PairScores(NamedTuple):
    """What each query is worth; a query is a dialogue whose label another one carries.

    Attributes:
        average_precision: (Q,), see `hf_dialemb.metrics.ranks.average_precision`.
        reciprocal_rank: (Q,), see `hf_dialemb.metrics.ranks.reciprocal_rank`.
        spearman: (Q,), see `hf_dialemb.metrics.semantic_relatedness.functional.binary_spearman`; 0 where undefined.
        undefined: How many of them are.
        skipped: How many dialogues are no query.
    """

    average_precision: NDArray[np.float64]
    reciprocal_rank: NDArray[np.float64]
    spearman: NDArray[np.float64]
    undefined: int
    skipped: int


def pair_scores(embeddings: ArrayLike, labels: ArrayLike, block_size: int = 256) -> PairScores:
    """Ranks all other dialogues for each dialogue by cosine; those of its label are relevant.

    The figures are those of the two metrics, to the bit; the products and the sorting, which take nearly all of the
    time, are done once. Memory is ``O(block_size * N)``.
    """
    from ...metrics.ranks import average_precision, reciprocal_rank
    from ...metrics.semantic_relatedness.functional import binary_spearman
    from ...metrics.vectors import sorted_queries

    found = [
        (
            average_precision(ordered, positives),
            reciprocal_rank(ordered, positives),
            binary_spearman(ordered, positives),
        )
        for _, ordered, positives in sorted_queries(embeddings, labels, block_size)
    ]
    precision, reciprocal, correlation = zip(*found, strict=True)
    undefined = sum(value is None for value in correlation)
    spearman = np.array([value or 0.0 for value in correlation])
    skipped = len(np.asarray(labels)) - len(found)
    return PairScores(np.array(precision), np.array(reciprocal), spearman, undefined, skipped)
