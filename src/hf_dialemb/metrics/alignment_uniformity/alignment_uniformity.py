"""Adjusted alignment and uniformity of embeddings on the unit sphere, as an `evaluate` metric."""

from __future__ import annotations

from typing import Any

import datasets
import evaluate
from numpy.typing import ArrayLike

from .functional import alignment_uniformity

DESCRIPTION = """\
Alignment is the mean squared distance of unit vectors of one label, adjusted alignment is that minus the one of two
labels, and uniformity is the logarithm of the mean Gaussian kernel of all pairs. Lower is better.
"""

INPUTS = """
Args:
    predictions: One vector per dialogue, (N, D), finite numbers; lists, an array or a tensor.
    references: One label per dialogue, (N,), strings or integers; at least two distinct, one of two members.
    include_self: Whether a dialogue also pairs with itself at distance 0, as in dial2vec's program.
    block_size: How many dialogues are compared with the others at once; never changes the result.
Returns:
    adjusted_alignment: alignment minus separation, in [-4, 4].
    alignment: Mean squared distance of pairs of one label, in [0, 4].
    separation: Mean squared distance of pairs of two labels, in [0, 4].
    uniformity: In [-8, 0].
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


class AlignmentUniformity(evaluate.Metric):  # type: ignore[misc]
    """Adjusted alignment and uniformity of embeddings on the unit sphere, as an `evaluate` metric."""

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

    def _compute(
        self, predictions: ArrayLike, references: ArrayLike, include_self: bool = False, block_size: int = 256
    ) -> dict[str, float]:
        return alignment_uniformity(predictions, references, include_self, block_size)
