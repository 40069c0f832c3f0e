"""Normalised discounted cumulative gain of binary relevance (Dialog2Flow, section 5.1).

The second function is the version of Dialog2Flow's program.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .vectors import require

DECIMALS = (
    9  # scores are compared after rounding: equal vectors then tie, however a product was summed
)


def ndcg_scores(scores: ArrayLike, relevant: ArrayLike, k: int = 10) -> dict[str, float]:
    """Compute whether relevant candidates come first (Dialog2Flow, section 5.1).

    A relevant candidate at rank r gains ``1 / log2(1 + r)``. The sum over the first k ranks is
    divided by that of the best order, and averaged over queries. Scores are rounded to nine
    decimals; equal ones share what their ranks gain.
    """
    return {"ndcg": ndcg(scores, relevant, k), "official_ndcg": official_ndcg(scores, relevant, k)}


def ndcg(scores: ArrayLike, relevant: ArrayLike, k: int = 10) -> float:
    """Compute nDCG@k, averaged over queries, in ``[0, 1]``.

    Takes finite scores ``(Q, M)``, M >= 2, and booleans of the same shape, at least one true for
    each query.
    """
    from sklearn.metrics import ndcg_score

    values, gains = _checked(scores, relevant, k)
    return float(ndcg_score(gains, values, k=k))


def official_ndcg(scores: ArrayLike, relevant: ArrayLike, k: int = 10) -> float:
    """Compute what the Dialog2Flow program prints as nDCG@k; takes and raises what `ndcg` does.

    The program gives scikit-learn the ideal ranking as the true gains and the ranked hits as the
    scores. It counts the query itself as one more relevant item. From C > k relevant items on, the
    figure is the share of the C - 1 relevant candidates among the first C, in any order. Of equal
    scores the irrelevant candidate counts as the higher one.
    """
    from sklearn.metrics import ndcg_score

    values, gains = _checked(scores, relevant, k)
    order = np.lexsort((gains, -values), axis=-1)
    hits = np.take_along_axis(gains, order, axis=1)
    ideal = np.arange(gains.shape[1]) < gains.sum(axis=1, keepdims=True) + 1
    return float(ndcg_score(ideal, hits, k=k))


def _checked(
    scores: ArrayLike, relevant: ArrayLike, k: int
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    values = np.asarray(scores, dtype=np.float64)
    gains = np.asarray(relevant, dtype=bool)
    fit = (
        values.ndim == 2 and values.shape == gains.shape and len(values) > 0 and values.shape[1] > 1
    )
    require(
        fit,
        "scores and relevant",
        f"shapes {values.shape} and {gains.shape}",
        "both (Q, M) with M >= 2",
    )
    require(
        np.isfinite(values).all(),
        "scores",
        "NaN or infinity",
        "finite numbers; look at the encoder",
    )
    require(
        gains.any(axis=1).all(),
        "relevant",
        "a query without a relevant candidate",
        "one or more; leave it out",
    )
    require(k >= 1, "k", f"{k}", "at least 1")
    return values.round(DECIMALS), gains.astype(np.intp)
