"""Dialogue retrieval: each dialogue ranks all others by cosine, those of its label are relevant (dial2vec, 4.1)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..ranks import average_precision, reciprocal_rank
from ..vectors import sorted_queries


def retrieval_scores(embeddings: ArrayLike, labels: ArrayLike) -> dict[str, Any]:
    """Computes mean average precision and mean reciprocal rank with every dialogue as a query against all others.

    A dialogue whose label nobody else carries is skipped and counted. Ties never depend on the order of the input (see
    `hf_dialemb.metrics.ranks`). A zero vector has cosine 0 with everything; constant vectors tie throughout, and MAP is
    the share of relevant dialogues.

    Takes finite vectors ``(N, D)`` and labels ``(N,)``, strings or integers, two or more distinct ones, one of them
    twice; else a ValueError. Memory is ``O(N)``, time that of sorting N rows of N.

    Returns ``{"map": mean in (0, 1], "mrr": mean in (0, 1], "queries": used, "skipped": label of one member}``.
    """
    precision, reciprocal, queries = 0.0, 0.0, 0
    for _, ordered, positives in sorted_queries(embeddings, labels):
        precision += average_precision(ordered, positives)
        reciprocal += reciprocal_rank(ordered, positives)
        queries += 1
    skipped = len(np.asarray(labels)) - queries
    return {"map": precision / queries, "mrr": reciprocal / queries, "queries": queries, "skipped": skipped}
