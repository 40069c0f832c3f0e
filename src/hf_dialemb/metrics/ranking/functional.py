"""Ranking: a query ranks candidates of its own by cosine (DialogueCSE, section 5.1.2: semantic retrieval)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..ranks import average_precision, reciprocal_rank
from ..vectors import COSINE_STEPS, directions

SHAPES = "(D,) for a query and (C, D) for candidates"


def ranking_scores(query: ArrayLike, candidates: ArrayLike, relevant: ArrayLike) -> dict[str, float]:
    """Computes ``average_precision`` and ``reciprocal_rank`` of one query, in (0, 1]; their means are MAP and MRR.

    Ties never depend on the order of the input: candidates of equal score count together for average precision, as in
    scikit-learn's ``label_ranking_average_precision_score``, and the first relevant one is placed after the irrelevant
    ones that it ties with. A zero vector has cosine 0 with everything.

    Takes a finite query ``(D,)``, finite candidates ``(C, D)``, among which the query is not, and which of them are
    relevant, booleans ``(C,)``: at least one is and one is not. What does not fit is a ValueError.
    """
    asked = directions("query", np.asarray(query)[None], SHAPES)
    offered = directions("candidates", candidates, SHAPES)
    wanted = np.asarray(relevant)
    if asked.shape[1] != offered.shape[1]:
        raise ValueError(f"candidates: got width {offered.shape[1]}, expected that of the query, {asked.shape[1]}")
    if wanted.dtype != np.bool_ or wanted.shape != (len(offered),):
        raise ValueError(f"relevant: got {wanted.dtype} of shape {wanted.shape}, expected booleans, ({len(offered)},)")
    if wanted.all() or not wanted.any():
        raise ValueError("relevant: got candidates of one kind, expected relevant and irrelevant ones; leave it out")
    scores = np.rint(offered @ asked[0] * COSINE_STEPS)
    both = np.sort(scores), np.sort(scores[wanted])
    return {"average_precision": average_precision(*both), "reciprocal_rank": reciprocal_rank(*both)}


def mean_ranking_scores(
    queries: Sequence[ArrayLike], candidates: Sequence[ArrayLike], relevant: Sequence[ArrayLike]
) -> dict[str, float]:
    """Averages `ranking_scores` over Q queries with candidates of their own, whose numbers may differ.

    Returns ``{"map": in (0, 1], "mrr": in (0, 1], "queries": Q}``.
    """
    if not queries:
        raise ValueError("predictions: got no query, expected at least one; add some before computing")
    scores = [ranking_scores(*each) for each in zip(queries, candidates, relevant, strict=True)]
    return {
        "map": float(np.mean([each["average_precision"] for each in scores])),
        "mrr": float(np.mean([each["reciprocal_rank"] for each in scores])),
        "queries": len(scores),
    }
