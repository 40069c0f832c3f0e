"""Semantic relatedness of embeddings, as an `evaluate` metric."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import datasets
import evaluate
import numpy as np
from numpy.typing import ArrayLike

from .functional import pair_relatedness, query_relatedness

DESCRIPTION = """\
Spearman's correlation of cosines with sharing a label: the mean of one correlation per dialogue with all others, and
that of random pairs. The two differ: never compare one with the other.
"""

INPUTS = """
Args:
    predictions: One vector per dialogue, (N, D), finite numbers; lists, an array or a tensor.
    references: One label per dialogue, (N,), strings or integers; at least two distinct, one of two members.
    seeds: The random state of each draw of pairs.
    block_size: How many dialogues are compared with all others at once; never changes the result.
Returns:
    spearman: Mean correlation over dialogues, in [-1, 1].
    queries: How many dialogues had a partner of their label.
    skipped: How many had none, and were left out.
    undefined: How many of the queries had equal cosines throughout, and count as 0.
    pair_spearman: Mean correlation of random pairs over draws, in [-1, 1].
    pair_spearman_std: Its sample standard deviation over draws; 0 for a single draw.
    pair_undefined: How many draws had no correlation, and count as 0.
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


class SemanticRelatedness(evaluate.Metric):  # type: ignore[misc]
    """Semantic relatedness of embeddings, as an `evaluate` metric."""

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
        self, predictions: ArrayLike, references: ArrayLike, seeds: Iterable[int] = range(10), block_size: int = 256
    ) -> dict[str, float]:
        pairs = pair_relatedness(predictions, references, seeds)
        draws = pairs["spearman"]
        return {
            **query_relatedness(predictions, references, block_size),
            "pair_spearman": float(np.mean(draws)),
            "pair_spearman_std": float(np.std(draws, ddof=1)) if len(draws) > 1 else 0.0,
            "pair_undefined": pairs["undefined"],
        }
