"""Purity, mutual information and Rand index of k-means over embeddings, as an `evaluate` metric."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import datasets
import evaluate
import numpy as np
from numpy.typing import ArrayLike

from .functional import cluster_purity

DESCRIPTION = """\
Clusters vectors with k-means++, as many clusters as labels, and compares clusters with labels: purity, normalised
mutual information and adjusted Rand index, each the mean over several runs. Vectors are not normalised.
"""

INPUTS = """
Args:
    predictions: One vector per dialogue, (N, D), finite numbers; lists, an array or a tensor.
    references: One label per dialogue, (N,), strings or integers; at least two distinct.
    seeds: The random state of each run of k-means.
    n_init: Random starts within a run, the best of which is kept.
    max_iter: Most iterations of one start.
    tol: Relative tolerance on the movement of the centres.
Returns:
    purity: Share of dialogues that carry their cluster's most frequent label, in (0, 1].
    nmi: Normalised mutual information, in [0, 1].
    ari: Adjusted Rand index, in [-0.5, 1]; about 0 for random clusters.
    purity_std, nmi_std, ari_std: Sample standard deviations over runs; 0 for a single run.
    clusters: How many clusters, and labels, there are.
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


class Purity(evaluate.Metric):  # type: ignore[misc]
    """Purity, mutual information and Rand index of k-means over embeddings, as an `evaluate` metric."""

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
        self,
        predictions: ArrayLike,
        references: ArrayLike,
        seeds: Iterable[int] = range(10),
        n_init: int = 10,
        max_iter: int = 500,
        tol: float = 1e-5,
    ) -> dict[str, float]:
        scores = cluster_purity(predictions, references, seeds, n_init, max_iter, tol)
        found: dict[str, float] = {"clusters": scores["clusters"]}
        for name in ("purity", "nmi", "ari"):
            found[name] = float(np.mean(scores[name]))
            found[f"{name}_std"] = float(np.std(scores[name], ddof=1)) if len(scores[name]) > 1 else 0.0
        return found
