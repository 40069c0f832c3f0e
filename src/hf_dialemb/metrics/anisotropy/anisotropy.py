"""Anisotropy of embeddings within and between labels, as an `evaluate` metric."""

from __future__ import annotations

from typing import Any

import datasets
import evaluate
from numpy.typing import ArrayLike

from .functional import anisotropy

DESCRIPTION = """\
The mean cosine of vectors within labels (greater is better) and of the labels' centroids (smaller is better).
"""

INPUTS = """
Args:
    predictions: One vector per utterance, (N, D), finite numbers; lists, an array or a tensor.
    references: One label per utterance, (N,), strings or integers; at least two distinct.
    min_members: Labels with fewer vectors have no say in intra.
Returns:
    intra: Mean cosine within labels, in [-1, 1].
    inter: Mean cosine between centroids of labels, in [-1, 1].
    difference: intra minus inter, in [-2, 2]; greater is better.
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

VECTOR = datasets.List(datasets.Value("float64"))


class Anisotropy(evaluate.Metric):  # type: ignore[misc]
    """Anisotropy of embeddings within and between labels, as an `evaluate` metric."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=DESCRIPTION,
            citation=CITATION,
            inputs_description=INPUTS,
            features=[
                datasets.Features({"predictions": VECTOR, "references": datasets.Value(kind)})
                for kind in ("string", "int64")
            ],
            reference_urls=["https://arxiv.org/abs/2410.18481"],
        )

    def _infer_feature_from_batch(self, batch: dict[str, Any]) -> datasets.Features:
        if any(column is None or not len(column) for column in batch.values()):
            raise ValueError("predictions and references: got none, expected one of each per utterance; add some")
        return super()._infer_feature_from_batch(batch)

    def _compute(self, predictions: ArrayLike, references: ArrayLike, min_members: int = 3) -> dict[str, float]:
        return anisotropy(predictions, references, min_members)
