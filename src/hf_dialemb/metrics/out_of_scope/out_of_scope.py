"""Out-of-scope detection by class means, as an `evaluate` metric."""

from __future__ import annotations

from typing import Any

import datasets
import evaluate
from numpy.typing import ArrayLike

from .functional import detection_scores

DESCRIPTION = """\
Few-shot detection of what belongs to no class: an item whose similarity to every class mean is low, judged by that of
other items in scope, is out of scope; the others get the nearest class.
"""

INPUTS = """
Args:
    predictions: The vectors to classify, (N, D), finite numbers; lists, an array or a tensor.
    references: Their true labels, (N,), strings or integers; some are out_of_scope, the others are of the supports'.
    supports: Labelled vectors, (S, D).
    support_labels: Their labels, (S,), of the kind of the references; at least two distinct.
    calibration: Vectors in scope that are neither supports nor predictions, (C, D).
    deviations: The threshold is the mean of their similarities plus so many standard deviations; the paper: 0 and -1.
    out_of_scope: The label of items that belong to no class, of the kind of the references.
Returns:
    accuracy: Share of items with the right label, in [0, 1].
    in_accuracy: The same of items in scope, in [0, 1].
    oos_accuracy: Share of items of which it is right whether they belong to any class, in [0, 1].
    oos_recall: Share of items out of scope that are found, in [0, 1].
    threshold: The similarity that an item in scope exceeds.
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

VECTOR = datasets.List(datasets.Value("float64"))


class OutOfScope(evaluate.Metric):  # type: ignore[misc]
    """Out-of-scope detection by class means, as an `evaluate` metric."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=DESCRIPTION,
            citation=CITATION,
            inputs_description=INPUTS,
            features=[
                datasets.Features({"predictions": VECTOR, "references": datasets.Value(kind)})
                for kind in ("string", "int64")
            ],
            reference_urls=["https://arxiv.org/abs/2205.13568"],
        )

    def _infer_feature_from_batch(self, batch: dict[str, Any]) -> datasets.Features:
        if any(column is None or not len(column) for column in batch.values()):
            raise ValueError("predictions and references: got none, expected one of each per utterance; add some")
        return super()._infer_feature_from_batch(batch)

    def _compute(
        self,
        predictions: ArrayLike,
        references: ArrayLike,
        supports: ArrayLike,
        support_labels: ArrayLike,
        calibration: ArrayLike,
        deviations: float = -1.0,
        out_of_scope: str | int = "oos",
    ) -> dict[str, float]:
        return detection_scores(
            predictions,
            references,
            supports,
            support_labels,
            calibration,
            deviations=deviations,
            out_of_scope=out_of_scope,
        )
