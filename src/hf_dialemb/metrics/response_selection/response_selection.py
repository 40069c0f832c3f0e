"""Response selection among shared candidates, as an `evaluate` metric."""

from __future__ import annotations

import datasets
import evaluate
from numpy.typing import ArrayLike

from .functional import selection_scores

DESCRIPTION = """\
Each query ranks the same candidate responses by cosine: how often the right one is among the first 1, 3 and 10, and its
mean reciprocal rank. The figures are means over all orders of candidates that tie.
"""

INPUTS = """
Args:
    predictions: One vector per query, (N, D), finite numbers; lists, an array or a tensor.
    references: Which candidates are right for which query, (N, C), booleans; at least one in each row.
    candidates: One vector per candidate, (C, D).
    ignored: Which candidates are in no way of which query, though wrong, (N, C), booleans; None for none.
Returns:
    top1, top3, top10: Share of queries whose right candidate is among the first k, in [0, 1].
    mrr: Mean reciprocal rank of the right candidate, in (0, 1].
"""

CITATION = """\
@inproceedings{zhou-etal-2022-learning,
    title = {Learning Dialogue Representations from Consecutive Utterances},
    author = {Zhou, Zhihan and Zhang, Dejiao and Xiao, Wei and Dingwall, Nicholas and Ma, Xiaofei and Arnold, Andrew O.
              and Xiang, Bing},
    booktitle = {Proceedings of the 2022 Conference of the North American Chapter of the Association for Computational
                 Linguistics: Human Language Technologies},
    year = {2022},
    url = {https://arxiv.org/abs/2205.13568},
}
"""


class ResponseSelection(evaluate.Metric):  # type: ignore[misc]
    """Response selection among shared candidates, as an `evaluate` metric."""

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
            reference_urls=["https://arxiv.org/abs/2205.13568"],
        )

    def _compute(
        self, predictions: ArrayLike, references: ArrayLike, candidates: ArrayLike, ignored: ArrayLike | None = None
    ) -> dict[str, float]:
        return selection_scores(predictions, candidates, references, ignored)
