"""Next-utterance retrieval from scores of candidates, as an `evaluate` metric."""

from __future__ import annotations

from collections.abc import Sequence

import datasets
import evaluate
from numpy.typing import ArrayLike

from .functional import next_utterance_scores

DESCRIPTION = """\
Scores rank the true response of each context among its candidates: mean reciprocal rank, hits@1 and recall R_N@k.
"""

INPUTS = """
Args:
    predictions: Of each example the scores of its candidates, (E, K), finite numbers, higher is better; K is 2 or more,
        and may differ between examples.
    references: Of each example which candidates are right, (E, K), booleans; at least one.
    ties: "expected", the mean over all orders of candidates that tie, or "official", the true one comes first.
Returns:
    mrr: Mean reciprocal rank, in (0, 1].
    hits1: Share of examples whose true response comes first, in [0, 1].
    rN@k: Share of examples whose true response is among the first k of N candidates, in [0, 1]; N is 2, 10 and K as
        far as all examples have as many, k is 1, 2 and 5 below N.
"""

CITATION = """\
@inproceedings{mehri-eskenazi-2019-multi,
    title = {Multi-Granularity Representations of Dialog},
    author = {Mehri, Shikib and Eskenazi, Maxine},
    booktitle = {Proceedings of the 2019 Conference on Empirical Methods in Natural Language Processing},
    year = {2019},
    url = {https://arxiv.org/abs/1908.09890},
}
"""


class NextUtterance(evaluate.Metric):  # type: ignore[misc]
    """Next-utterance retrieval from scores of candidates, as an `evaluate` metric."""

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
            reference_urls=["https://arxiv.org/abs/1908.09890"],
        )

    def _compute(
        self, predictions: Sequence[ArrayLike], references: Sequence[ArrayLike], ties: str = "expected"
    ) -> dict[str, float]:
        return next_utterance_scores(predictions, references, ties)
