"""Normalised discounted cumulative gain of binary relevance, as an `evaluate` metric."""

from __future__ import annotations

import datasets
import evaluate
from numpy.typing import ArrayLike

from .functional import ndcg, official_ndcg

DESCRIPTION = """\
Whether relevant candidates come first: one at rank r gains 1 / log2(1 + r), and the sum over the first k is divided by
that of the best order. Averaged over queries; candidates of equal score share what their ranks gain.
"""

INPUTS = """
Args:
    predictions: How near each candidate is to each query, (Q, M), finite numbers; M is 2 or more.
    references: Which candidates are relevant, (Q, M), booleans; at least one for each query.
    k: Ranks that count; all of them where there are fewer candidates.
Returns:
    ndcg: In [0, 1].
    official_ndcg: What the Dialog2Flow program prints under that name, in [0, 1]; only to compare with its figures.
"""

CITATION = """\
@inproceedings{burdisso-etal-2024-dialog2flow,
    title = {Dialog2Flow: Pre-training Soft-Contrastive Action-Driven Sentence Embeddings for Automatic Dialog Flow
             Extraction},
    author = {Burdisso, Sergio and Madikeri, Srikanth and Motlicek, Petr},
    booktitle = {Proceedings of the 2024 Conference on Empirical Methods in Natural Language Processing},
    year = {2024},
    url = {https://arxiv.org/abs/2410.18481},
}
"""


class Ndcg(evaluate.Metric):  # type: ignore[misc]
    """Normalised discounted cumulative gain of binary relevance, as an `evaluate` metric."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=DESCRIPTION,
            citation=CITATION,
            inputs_description=INPUTS,
            features=datasets.Features(
                {
                    "predictions": datasets.List(datasets.Value("float64")),
                    "references": datasets.List(datasets.Value("bool")),
                }
            ),
            reference_urls=["https://arxiv.org/abs/2410.18481"],
        )

    def _compute(self, predictions: ArrayLike, references: ArrayLike, k: int = 10) -> dict[str, float]:
        return {"ndcg": ndcg(predictions, references, k), "official_ndcg": official_ndcg(predictions, references, k)}
