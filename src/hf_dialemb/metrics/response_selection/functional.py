"""Response selection: a query ranks candidate responses by cosine (DSE, section 4.2.2: top-k-100 accuracy)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

KS = (1, 3, 10)
"""Among how many first candidates the correct one is looked for, as in DSE's Table 4."""

COSINE_STEPS = 1_000_000_000
"""Cosines are compared in steps of 1e-9: equal vectors then tie, whatever the order in which a product was summed."""


def selection_scores(
    queries: ArrayLike, candidates: ArrayLike, correct: ArrayLike, ignored: ArrayLike | None = None
) -> dict[str, float]:
    """Ranks the same candidates for each query and looks where the correct one comes.

    The best of a query's correct candidates is ranked among its wrong ones; its other correct ones are left out. Where
    wrong ones tie with it, the figures are the means over all orders of those that tie: they never depend on the order
    of the input, and constant vectors give those of guessing. A zero vector has cosine 0 with everything.

    Args:
        queries: Finite vectors, ``(N, D)``.
        candidates: Finite vectors, ``(C, D)``.
        correct: Which candidates are right for which query, booleans, ``(N, C)``; at least one in each row.
        ignored: Which candidates are in no way of which query, though wrong, booleans, ``(N, C)``; None for none.

    Returns:
        ``{"top1", "top3", "top10": share of queries whose correct candidate is among the first k, "mrr": mean of one
        over its rank}``, all in ``[0, 1]``.

    Raises:
        ValueError: The shapes do not fit, a vector is not finite, or a query has no correct candidate.
    """
    asked, offered = _directions("queries", queries), _directions("candidates", candidates)
    if asked.shape[1] != offered.shape[1]:
        raise ValueError(f"candidates: got width {offered.shape[1]}, expected that of queries, {asked.shape[1]}")
    right = _mask("correct", correct, (len(asked), len(offered)))
    wrong = ~right if ignored is None else ~right & ~_mask("ignored", ignored, right.shape)
    if not right.any(axis=1).all():
        raise ValueError("correct: got a query without a correct candidate, expected at least one; leave it out")
    scores = np.rint(asked @ offered.T * COSINE_STEPS)
    best = np.where(right, scores, -np.inf).max(axis=1, keepdims=True)
    ahead = ((scores > best) & wrong).sum(axis=1)
    tied = ((scores == best) & wrong).sum(axis=1)
    found = {f"top{k}": float(np.clip((k - ahead) / (tied + 1), 0, 1).mean()) for k in KS}
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, len(offered) + 1))])
    found["mrr"] = float(((harmonic[ahead + tied + 1] - harmonic[ahead]) / (tied + 1)).mean())
    return found


def _mask(name: str, values: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    mask = np.asarray(values)
    if mask.dtype != np.bool_ or mask.shape != shape:
        raise ValueError(f"{name}: got {mask.dtype} of shape {mask.shape}, expected booleans of shape {shape}")
    return mask


def _directions(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Returns unit vectors ``(N, D)``; zero ones stay zero."""
    vectors = np.asarray(values, dtype=np.float64)
    if vectors.ndim != 2 or not len(vectors):
        raise ValueError(f"{name}: got shape {vectors.shape}, expected (N, D) with N > 0; stack one vector per item")
    if not np.isfinite(vectors).all():
        raise ValueError(f"{name}: got a vector with NaN or infinity, expected finite numbers; look at the encoder")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths == 0, 1, lengths)
