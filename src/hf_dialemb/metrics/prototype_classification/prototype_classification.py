"""Classification by the nearest class mean, as an `evaluate` metric."""

from __future__ import annotations

from typing import Any

import datasets
import evaluate
from numpy.typing import ArrayLike

from .functional import prototype_classification

DESCRIPTION = """\
Few-shot classification: vectors are brought to length 1, the mean of a label's supports is its prototype, and the
prototype with the greatest product wins.
"""

INPUTS = """
Args:
    predictions: The vectors to classify, (N, D), finite numbers; lists, an array or a tensor.
    references: Their true labels, (N,), strings or integers; each one of the supports'.
    supports: Labelled vectors, (S, D).
    support_labels: Their labels, (S,), of the kind of the references; at least two distinct.
    unit_prototypes: Whether prototypes are brought to length 1 too, so that the nearest one by cosine wins.
Returns:
    accuracy: Share that is right, in [0, 1].
    macro_f1: Unweighted mean F1 of the labels that the references have, in [0, 1].
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


class PrototypeClassification(evaluate.Metric):  # type: ignore[misc]
    """Classification by the nearest class mean, as an `evaluate` metric."""

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
        unit_prototypes: bool = False,
    ) -> dict[str, float]:
        return prototype_classification(
            supports, support_labels, predictions, references, unit_prototypes=unit_prototypes
        )
