"""Response selection: a query ranks candidate responses by cosine (DSE, section 4.2.2: top-k-100 accuracy)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..ranks import expected_recall, expected_reciprocal_rank, places
from ..vectors import COSINE_STEPS, directions

KS = (1, 3, 10)  # among how many first candidates the correct one is looked for, as in DSE's Table 4


def selection_scores(
    queries: ArrayLike, candidates: ArrayLike, correct: ArrayLike, ignored: ArrayLike | None = None
) -> dict[str, float]:
    """Ranks the same candidates for each query and looks where the correct one comes.

    The best of a query's correct candidates is ranked among its wrong ones; its other correct ones are left out. Where
    wrong ones tie with it, the figures are the means over all orders of those that tie: they never depend on the order
    of the input, and constant vectors give those of guessing. A zero vector has cosine 0 with everything.

    Takes finite queries ``(N, D)`` and candidates ``(C, D)``; which candidates are right for which query, booleans
    ``(N, C)``, one or more in a row, else a ValueError; and which are ``ignored`` though wrong, likewise.

    Returns ``{"top1", "top3", "top10": share of queries whose correct candidate is among the first k, "mrr": mean of
    one over its rank}``, all in ``[0, 1]``.
    """
    shape = "(N, D) with N > 0; stack one vector per item"
    asked, offered = directions("queries", queries, shape), directions("candidates", candidates, shape)
    if asked.shape[1] != offered.shape[1]:
        raise ValueError(f"candidates: got width {offered.shape[1]}, expected that of queries, {asked.shape[1]}")
    right = _mask("correct", correct, (len(asked), len(offered)))
    wrong = ~right if ignored is None else ~right & ~_mask("ignored", ignored, right.shape)
    if not right.any(axis=1).all():
        raise ValueError("correct: got a query without a correct candidate, expected at least one; leave it out")
    scores = np.rint(asked @ offered.T * COSINE_STEPS)
    best = np.where(right, scores, -np.inf).max(axis=1, keepdims=True)
    placed = places(scores, best, wrong)
    found = {f"top{k}": float(expected_recall(k, *placed).mean()) for k in KS}
    return {**found, "mrr": float(expected_reciprocal_rank(*placed).mean())}


def _mask(name: str, values: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    mask = np.asarray(values)
    if mask.dtype != np.bool_ or mask.shape != shape:
        raise ValueError(f"{name}: got {mask.dtype} of shape {mask.shape}, expected booleans of shape {shape}")
    return mask
