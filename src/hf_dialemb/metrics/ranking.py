"""Score how a query ranks its own candidates by cosine (DialogueCSE, section 5.1.2)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from .vectors import COSINE_STEPS, average_precision, directions, reciprocal_rank, require


def ranking_scores(
    query: ArrayLike, candidates: ArrayLike, relevant: ArrayLike
) -> dict[str, float]:
    """Compute ``average_precision`` and ``reciprocal_rank`` of one query, in (0, 1].

    Their means are MAP and MRR.

    Takes a finite vector ``(D,)``, other vectors ``(C, D)`` without it, and booleans ``(C,)`` of
    both values.
    """
    queries = directions("query", np.asarray(query)[None])
    vectors = directions("candidates", candidates)
    mask = np.asarray(relevant)
    fit = mask.dtype == np.bool_ and mask.shape == (len(vectors),)
    require(fit, "relevant", f"{mask.dtype} of shape {mask.shape}", f"booleans, ({len(vectors)},)")
    both = "relevant and irrelevant ones; leave it out"
    require(mask.any() and not mask.all(), "relevant", "candidates of one kind", both)
    scores = np.rint(vectors @ queries[0] * COSINE_STEPS)
    ordered = np.sort(scores)
    positives = np.sort(scores[mask])
    return {
        "average_precision": average_precision(ordered, positives),
        "reciprocal_rank": reciprocal_rank(ordered, positives),
    }


def mean_ranking_scores(
    queries: Sequence[ArrayLike], candidates: Sequence[ArrayLike], relevant: Sequence[ArrayLike]
) -> dict[str, float]:
    """Compute how soon queries rank the relevant ones of their own candidates, by cosine.

    The measure of DialogueCSE, section 5.1.2.

    Figures never depend on the order of candidates: where candidates have equal cosines (to 1e-9),
    they are means over all orders of these. A zero vector has cosine 0 with everything.
    """
    require(len(queries) > 0, "predictions", "no query", "at least one; add some before computing")
    scores = [
        ranking_scores(*example) for example in zip(queries, candidates, relevant, strict=True)
    ]
    return {
        "map": float(np.mean([score["average_precision"] for score in scores])),
        "mrr": float(np.mean([score["reciprocal_rank"] for score in scores])),
        "queries": len(scores),
    }
