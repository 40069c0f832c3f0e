"""Difference between numbers of nodes of dialogue flows, as an `evaluate` metric."""

from __future__ import annotations

import datasets
import evaluate
from numpy.typing import ArrayLike

from .functional import graph_size_difference

DESCRIPTION = """\
How far the number of nodes of an extracted dialogue flow is from that of the flow of the annotations, relative to the
latter, averaged over flows. Lower is better.
"""

INPUTS = """
Args:
    predictions: How many nodes each extracted graph has, (G,), whole numbers from 0 on.
    references: How many nodes its reference graph has, (G,), whole numbers from 1 on.
Returns:
    size_difference: Mean of |n - n*| / n*, 0 or more.
    signed_size_difference: Mean of (n - n*) / n*, at least -1; negative where graphs tend to be too small.
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


class GraphSizeDifference(evaluate.Metric):  # type: ignore[misc]
    """Difference between numbers of nodes of dialogue flows, as an `evaluate` metric."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=DESCRIPTION,
            citation=CITATION,
            inputs_description=INPUTS,
            features=datasets.Features(
                {"predictions": datasets.Value("float64"), "references": datasets.Value("float64")}
            ),
            reference_urls=["https://arxiv.org/abs/2410.18481"],
        )

    def _compute(self, predictions: ArrayLike, references: ArrayLike) -> dict[str, float]:
        return graph_size_difference(predictions, references)
