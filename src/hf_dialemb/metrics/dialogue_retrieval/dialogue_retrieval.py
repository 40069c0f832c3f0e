"""Dialogue retrieval among all other dialogues, as an `evaluate` metric."""

from __future__ import annotations

from typing import Any

import datasets
import evaluate
from numpy.typing import ArrayLike

from .functional import retrieval_scores

DESCRIPTION = """\
Each dialogue ranks all others by cosine; those of its label are relevant. Mean average precision and reciprocal rank.
"""

INPUTS = """
Args:
    predictions: One vector per dialogue, (N, D), finite numbers; lists, an array or a tensor.
    references: One label per dialogue, (N,), strings or integers; at least two distinct, one of two members.
    block_size: How many dialogues are compared with all others at once; never changes the result.
Returns:
    map: Mean average precision, in (0, 1].
    mrr: Mean reciprocal rank of the first relevant dialogue, in (0, 1].
    queries: How many dialogues had a partner of their label.
    skipped: How many had none, and asked nothing.
"""

CITATION = """\
@inproceedings{liu-etal-2022-dial2vec,
    title = {Dial2vec: Self-Guided Contrastive Learning of Unsupervised Dialogue Embeddings},
    author = {Liu, Che and Wang, Rui and Jiang, Junfeng and Li, Yongbin and Huang, Fei},
    booktitle = {Proceedings of the 2022 Conference on Empirical Methods in Natural Language Processing},
    year = {2022},
    url = {https://arxiv.org/abs/2210.15332},
}
"""

VECTOR = datasets.List(datasets.Value("float64"))


class DialogueRetrieval(evaluate.Metric):  # type: ignore[misc]
    """Dialogue retrieval among all other dialogues, as an `evaluate` metric."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=DESCRIPTION,
            citation=CITATION,
            inputs_description=INPUTS,
            features=[
                datasets.Features({"predictions": VECTOR, "references": datasets.Value(kind)})
                for kind in ("string", "int64")
            ],
            reference_urls=["https://arxiv.org/abs/2210.15332"],
        )

    def _infer_feature_from_batch(self, batch: dict[str, Any]) -> datasets.Features:
        if any(column is None or not len(column) for column in batch.values()):
            raise ValueError("predictions and references: got none, expected one of each per dialogue; add some")
        return super()._infer_feature_from_batch(batch)

    def _compute(self, predictions: ArrayLike, references: ArrayLike, block_size: int = 256) -> dict[str, float]:
        return retrieval_scores(predictions, references, block_size)
