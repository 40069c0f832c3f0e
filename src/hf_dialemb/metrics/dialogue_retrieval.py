"""Dialogue retrieval: each dialogue ranks all others by cosine; those of its label are relevant (dial2vec, 4.1)."""

from typing import Any

from numpy.typing import ArrayLike

from .specification import Metric, labelled
from .vectors import average_precision, query_scores, reciprocal_rank


def retrieval_scores(embeddings: ArrayLike, labels: ArrayLike) -> dict[str, Any]:
    """Compute mean average precision and mean reciprocal rank, every dialogue a query against all others.

    Those of a dialogue's label are relevant (dial2vec, section 4.1). A dialogue whose label nobody else carries is
    skipped. Figures never depend on the order of the input. Dialogues of equal cosine (to 1e-9) count together for
    average precision; the first relevant one is placed after the irrelevant ones that it ties with. A zero vector has
    cosine 0 with everything. Memory is ``O(N)``, time that of sorting N rows of N.
    """
    (precision, reciprocal), skipped = query_scores(embeddings, labels, average_precision, reciprocal_rank)
    means = {"map": float(precision.mean()), "mrr": float(reciprocal.mean())}
    return {**means, "queries": len(precision), "skipped": skipped}


METRIC = Metric(
    "Dialogue Retrieval", "🔎", "liu-etal-2022-dial2vec", retrieval_scores,
    inputs=labelled("dialogue", ", one of two members"),
    outputs={
        "map": "Mean average precision, in (0, 1].",
        "mrr": "Mean reciprocal rank of the first relevant dialogue, in (0, 1].",
        "queries": "The number of dialogues with a partner of their label.",
        "skipped": "The number of dialogues without one; the others still rank them.",
    },
    example={
        "predictions": [[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 3.0]],
        "references": ["hotel", "hotel", "taxi", "taxi"],
    },
    result={"map": 1.0, "mrr": 1.0, "queries": 4, "skipped": 0},
)  # fmt: skip
