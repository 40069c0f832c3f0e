"""Ranking of candidates of each query's own, as an `evaluate` metric."""

from __future__ import annotations

import datasets
import evaluate
import numpy as np

from .functional import ranking_scores

DESCRIPTION = """\
Each query ranks candidates of its own by cosine: mean average precision and mean reciprocal rank of the relevant ones.
"""

INPUTS = """
Args:
    predictions: One vector per query, (Q, D), finite numbers; lists, an array or a tensor.
    candidates: The vectors of each query's candidates, (Q, C, D); C may differ between queries.
    references: Which of them are relevant, (Q, C), booleans; at least one is and one is not.
Returns:
    map: Mean average precision, in (0, 1].
    mrr: Mean reciprocal rank of the first relevant candidate, in (0, 1].
    queries: How many queries there are.
"""

CITATION = """\
@inproceedings{liu-etal-2021-dialoguecse,
    title = {DialogueCSE: Dialogue-based Contrastive Learning of Sentence Embeddings},
    author = {Liu, Che and Wang, Rui and Liu, Jinghua and Sun, Jian and Huang, Fei and Si, Luo},
    booktitle = {Proceedings of the 2021 Conference on Empirical Methods in Natural Language Processing},
    year = {2021},
    url = {https://arxiv.org/abs/2109.12599},
}
"""

VECTOR = datasets.List(datasets.Value("float64"))


class Ranking(evaluate.Metric):  # type: ignore[misc]
    """Ranking of candidates of each query's own, as an `evaluate` metric."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=DESCRIPTION,
            citation=CITATION,
            inputs_description=INPUTS,
            features=datasets.Features(
                {
                    "predictions": VECTOR,
                    "candidates": datasets.List(VECTOR),
                    "references": datasets.List(datasets.Value("bool")),
                }
            ),
            reference_urls=["https://arxiv.org/abs/2109.12599"],
        )

    def _compute(
        self, predictions: list[list[float]], candidates: list[list[list[float]]], references: list[list[bool]]
    ) -> dict[str, float]:
        if not predictions:
            raise ValueError("predictions: got no query, expected at least one; add some before computing")
        scores = [ranking_scores(*each) for each in zip(predictions, candidates, references, strict=True)]
        return {
            "map": float(np.mean([each["average_precision"] for each in scores])),
            "mrr": float(np.mean([each["reciprocal_rank"] for each in scores])),
            "queries": len(scores),
        }
