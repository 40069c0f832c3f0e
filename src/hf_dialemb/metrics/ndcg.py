"""Normalised discounted cumulative gain of binary relevance (Dialog2Flow, section 5.1), and its program's version."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .specification import Column, Metric

DECIMALS = 9  # scores are compared after rounding: equal vectors then tie, however a product was summed


def ndcg_scores(scores: ArrayLike, relevant: ArrayLike, k: int = 10) -> dict[str, float]:
    """Compute whether relevant candidates come first (Dialog2Flow, section 5.1).

    A relevant candidate at rank r gains ``1 / log2(1 + r)``. The sum over the first k ranks is divided by that of the
    best order, and averaged over queries. Scores are rounded to nine decimals; equal ones share what their ranks gain.
    """
    return {"ndcg": ndcg(scores, relevant, k), "official_ndcg": official_ndcg(scores, relevant, k)}


def ndcg(scores: ArrayLike, relevant: ArrayLike, k: int = 10) -> float:
    """Compute nDCG@k, averaged over queries, in ``[0, 1]``.

    Args:
        scores: How near candidates are to queries, finite, ``(Q, M)`` with M >= 2.
        relevant: Booleans ``(Q, M)``, at least one true for each query.
        k: The number of ranks that count.

    Raises:
        ValueError: An input does not fit.
    """
    from sklearn.metrics import ndcg_score

    values, gains = _checked(scores, relevant, k)
    return float(ndcg_score(gains, values, k=k))


def official_ndcg(scores: ArrayLike, relevant: ArrayLike, k: int = 10) -> float:
    """Compute what the Dialog2Flow program prints as nDCG@k; takes and raises what `ndcg` does.

    The program gives scikit-learn the ideal ranking as the true gains and the ranked hits as the scores. It counts the
    query itself as one more relevant item. From C > k relevant items on, the figure is the share of the C - 1 relevant
    candidates among the first C, in any order. Of equal scores the irrelevant candidate counts as the higher one.
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


METRIC = Metric(
    "nDCG of Binary Relevance", "📶", "dialog2flow", ndcg_scores,
    inputs={
        "predictions": Column("scores", "How near each candidate is to each query, (Q, M) with M >= 2.", "scores"),
        "references": Column("booleans", "Which candidates are relevant, (Q, M); one or more per query.", "relevant"),
        "k": "Ranks that count; all of them where there are fewer candidates.",
    },
    outputs={
        "ndcg": "In [0, 1].",
        "official_ndcg": "What the Dialog2Flow program prints under that name, in [0, 1]; only to compare with it.",
    },
    cases=(
        {
            "predictions": [[0.9, 0.5, 0.1]], "references": [[True, False, False]],
            "result": {"ndcg": 1.0, "official_ndcg": 0.9598603945740939},  # (1.25 + 0.5 / log2(3)) / (1 + 1 / log2(3))
        },
        {
            "predictions": [[0.9, 0.5, 0.1], [0.5, 0.5, 0.5]],
            "references": [[False, True, True], [True, True, True]], "k": 2,
            # (1 / log2(3) / (1 + 1 / log2(3)) + 1) / 2
            "result": {"ndcg": 0.6934264036172708, "official_ndcg": 1.0},
        },
    ),
)  # fmt: skip
