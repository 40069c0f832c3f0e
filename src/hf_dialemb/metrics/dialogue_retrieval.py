"""Dialogue retrieval: each dialogue ranks all others by cosine; those of its label are relevant (dial2vec, 4.1)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .ranks import average_precision, reciprocal_rank
from .specification import Column, Metric
from .vectors import sorted_queries


def retrieval_scores(embeddings: ArrayLike, labels: ArrayLike) -> dict[str, Any]:
    """Compute mean average precision and mean reciprocal rank, every dialogue a query against all others.

    Those of a dialogue's label are relevant (dial2vec, section 4.1). A dialogue whose label nobody else carries is
    skipped. Figures never depend on the order of the input. Dialogues of equal cosine (to 1e-9) count together for
    average precision; the first relevant one is placed after the irrelevant ones that it ties with. A zero vector has
    cosine 0 with everything. Memory is ``O(N)``, time that of sorting N rows of N.
    """
    precision, reciprocal, queries = 0.0, 0.0, 0
    for _, ordered, positives in sorted_queries(embeddings, labels):
        precision += average_precision(ordered, positives)
        reciprocal += reciprocal_rank(ordered, positives)
        queries += 1
    skipped = len(np.asarray(labels)) - queries
    return {"map": precision / queries, "mrr": reciprocal / queries, "queries": queries, "skipped": skipped}


METRIC = Metric(
    "Dialogue Retrieval", "🔎", "dial2vec", retrieval_scores, item="dialogue",
    inputs={
        "predictions": Column("vector", "One vector per dialogue, (N, D), finite numbers.", "embeddings"),
        "references": Column("label", "One label per dialogue, (N,); two distinct, one of two members.", "labels"),
    },
    outputs={
        "map": "Mean average precision, in (0, 1].",
        "mrr": "Mean reciprocal rank of the first relevant dialogue, in (0, 1].",
        "queries": "The number of dialogues with a partner of their label.",
        "skipped": "The number of dialogues without one; the others still rank them.",
    },
    cases=(
        {
            "predictions": [[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 3.0]],
            "references": ["hotel", "hotel", "taxi", "taxi"],
            "result": {"map": 1.0, "mrr": 1.0, "queries": 4, "skipped": 0},
        },
        {
            "predictions": [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0]], "references": [0, 0, 1, 2],
            "result": {"map": 0.3333333333333333, "mrr": 0.3333333333333333, "queries": 2, "skipped": 2},
        },
    ),
)  # fmt: skip
