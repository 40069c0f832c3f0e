"""Classes of `evaluate` from what a metric's specification says. It imports nothing of ours: a Space has a copy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import datasets
import evaluate

VECTOR = datasets.List(datasets.Value("float64"))
FEATURES = {
    "number": datasets.Value("float64"),
    "scores": VECTOR,
    "vector": VECTOR,
    "vectors": datasets.List(VECTOR),
    "booleans": datasets.List(datasets.Value("bool")),
}
"""What an input may be, beside ``label``, a string or an integer."""


def metric_class(
    name: str,
    module: str,
    function: Callable[..., dict[str, float]],
    *,
    features: Mapping[str, str],
    parameters: Mapping[str, str],
    item: str,
    **texts: Any,  # noqa: ANN401 - those of evaluate.MetricInfo
) -> type:
    """Makes the class of a metric, to be found in ``module`` (its ``__name__``).

    ``features`` gives the kind of each input, see `FEATURES`, ``parameters`` what the function calls inputs that it
    calls otherwise, ``item`` what there is one vector of, and ``texts`` the rest of `evaluate.MetricInfo`.
    """
    labelled = "label" in features.values()
    forms = [
        datasets.Features({each: FEATURES.get(kind, datasets.Value(label)) for each, kind in features.items()})
        for label in ("string", "int64")
    ]

    class Built(evaluate.Metric):  # type: ignore[misc]
        def _info(self) -> evaluate.MetricInfo:
            return evaluate.MetricInfo(features=forms if labelled else forms[0], **texts)

        def _infer_feature_from_batch(self, batch: dict[str, Any]) -> datasets.Features:
            if labelled and any(column is None or not len(column) for column in batch.values()):
                raise ValueError(f"predictions and references: got none, expected one of each per {item}; add some")
            return super()._infer_feature_from_batch(batch)

        def _compute(self, **arguments: Any) -> dict[str, float]:  # noqa: ANN401 - whatever the function takes
            return function(**{parameters.get(each, each): value for each, value in arguments.items()})

    Built.__name__ = Built.__qualname__ = name
    Built.__module__, Built.__doc__ = module, texts["description"]
    return Built
