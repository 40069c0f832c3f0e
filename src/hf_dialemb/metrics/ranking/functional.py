"""Ranking: a query ranks candidates of its own by cosine (DialogueCSE, section 5.1.2: semantic retrieval)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

COSINE_STEPS = 1_000_000_000
"""Cosines are compared in steps of 1e-9: equal vectors then tie, whatever the order in which a product was summed."""


def ranking_scores(query: ArrayLike, candidates: ArrayLike, relevant: ArrayLike) -> dict[str, float]:
    """Computes average precision and reciprocal rank of one query; their means over queries are MAP and MRR.

    Ties never depend on the order of the input: candidates of equal score count together for average precision, as in
    scikit-learn's ``label_ranking_average_precision_score``, and the first relevant one is placed after the irrelevant
    ones that it ties with. A zero vector has cosine 0 with everything.

    Args:
        query: A finite vector, ``(D,)``.
        candidates: Finite vectors, ``(C, D)``; the query is not among them.
        relevant: Which of them are relevant, booleans, ``(C,)``; at least one is and one is not.

    Returns:
        ``{"average_precision": in (0, 1], "reciprocal_rank": in (0, 1]}``.

    Raises:
        ValueError: The shapes do not fit, a vector is not finite, or the candidates are all relevant or all irrelevant.
    """
    asked, offered = _directions("query", np.asarray(query)[None]), _directions("candidates", candidates)
    wanted = np.asarray(relevant)
    if asked.shape[1] != offered.shape[1]:
        raise ValueError(f"candidates: got width {offered.shape[1]}, expected that of the query, {asked.shape[1]}")
    if wanted.dtype != np.bool_ or wanted.shape != (len(offered),):
        raise ValueError(f"relevant: got {wanted.dtype} of shape {wanted.shape}, expected booleans, ({len(offered)},)")
    if wanted.all() or not wanted.any():
        raise ValueError("relevant: got candidates of one kind, expected relevant and irrelevant ones; leave it out")
    scores = np.rint(offered @ asked[0] * COSINE_STEPS)
    ordered, positives = np.sort(scores), np.sort(scores[wanted])
    placed = len(ordered) - np.searchsorted(ordered, positives, side="left")
    reached = len(positives) - np.searchsorted(positives, positives, side="left")
    return {
        "average_precision": float(np.mean(reached / placed)),
        "reciprocal_rank": float(1 / (1 + placed[-1] - reached[-1])),
    }


def _directions(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Returns unit vectors ``(N, D)``; zero ones stay zero."""
    vectors = np.asarray(values, dtype=np.float64)
    if vectors.ndim != 2 or not len(vectors):
        raise ValueError(f"{name}: got shape {np.shape(values)}, expected (D,) for a query and (C, D) for candidates")
    if not np.isfinite(vectors).all():
        raise ValueError(f"{name}: got a vector with NaN or infinity, expected finite numbers; look at the encoder")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths == 0, 1, lengths)
