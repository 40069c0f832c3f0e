"""Dialogue retrieval: each dialogue ranks all others by cosine.

Those of its label are relevant (dial2vec, 4.1).
"""

from typing import Any

from numpy.typing import ArrayLike

from .vectors import average_precision, query_scores, reciprocal_rank


def retrieval_scores(embeddings: ArrayLike, labels: ArrayLike) -> dict[str, Any]:
    """Compute mean average precision and reciprocal rank of dialogue retrieval.

    Every dialogue is a query against all others.

    Those of a dialogue's label are relevant (dial2vec, section 4.1). A dialogue whose label nobody
    else carries is skipped. Figures never depend on the order of the input: where dialogues have
    equal cosines (to 1e-9), they are means over all orders of these. A zero vector has cosine 0
    with everything. Memory is ``O(N)``, time that of sorting N rows of N.
    """
    (precision, reciprocal), skipped = query_scores(
        embeddings, labels, average_precision, reciprocal_rank
    )
    means = {"map": float(precision.mean()), "mrr": float(reciprocal.mean())}
    return {**means, "queries": len(precision), "skipped": skipped}
