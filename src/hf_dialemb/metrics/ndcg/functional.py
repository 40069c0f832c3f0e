"""Normalised discounted cumulative gain of binary relevance (Dialog2Flow, section 5.1), and its program's version."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

DECIMALS = 9  # scores are compared after rounding: equal vectors then tie, however a product was summed


def ndcg_scores(scores: ArrayLike, relevant: ArrayLike, k: int = 10) -> dict[str, float]:
    """Computes `ndcg` and `official_ndcg`, whose arguments it takes, under these names."""
    return {"ndcg": ndcg(scores, relevant, k), "official_ndcg": official_ndcg(scores, relevant, k)}


def ndcg(scores: ArrayLike, relevant: ArrayLike, k: int = 10) -> float:
    """Computes nDCG@k, averaged over queries, in ``[0, 1]``.

    A relevant candidate at rank r gains ``1 / log2(1 + r)``; the ideal ranking has all relevant ones first. Tied
    candidates share what their ranks gain. Takes how near each candidate is to each query, finite, ``(Q, M)``, M >= 2,
    and which are relevant, booleans ``(Q, M)``, one or more for each query; else a ValueError. The first k ranks count.
    """
    from sklearn.metrics import ndcg_score

    values, gains = _checked(scores, relevant, k)
    return float(ndcg_score(gains, values, k=k))


def official_ndcg(scores: ArrayLike, relevant: ArrayLike, k: int = 10) -> float:
    """Computes what the Dialog2Flow program prints as nDCG@k; takes and raises what `ndcg` does.

    It gives scikit-learn the ideal ranking as the true gains, with one more relevant item than there are candidates
    because it counts the query itself, and the ranked hits as the scores. From C > k on, C relevant items with the
    query, that is the share of the C - 1 relevant candidates that are among the first C, in whatever order. Of equal
    scores the irrelevant candidate counts as the higher one.
    """
    from sklearn.metrics import ndcg_score

    values, gains = _checked(scores, relevant, k)
    order = np.lexsort((gains, -values), axis=-1)
    hits = np.take_along_axis(gains, order, axis=1)
    ideal = np.arange(gains.shape[1]) < gains.sum(axis=1, keepdims=True) + 1
    return float(ndcg_score(ideal, hits, k=k))


def _checked(scores: ArrayLike, relevant: ArrayLike, k: int) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    values, gains = np.asarray(scores, dtype=np.float64), np.asarray(relevant, dtype=bool)
    if values.ndim != 2 or values.shape != gains.shape or not len(values) or values.shape[1] < 2:
        raise ValueError(
            f"scores and relevant: got shapes {values.shape} and {gains.shape}, expected both (Q, M) with M >= 2; "
            "give every query as many candidates, and each of them a score"
        )
    if not np.isfinite(values).all():
        raise ValueError("scores: got NaN or infinity, expected finite numbers; look at the encoder")
    if not gains.any(axis=1).all():
        raise ValueError("relevant: got a query without a relevant candidate, expected one or more; leave it out")
    if k < 1:
        raise ValueError(f"k: got {k}, expected at least 1")
    return values.round(DECIMALS), gains.astype(np.intp)
