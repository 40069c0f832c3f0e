"""Graph size difference (Dialog2Flow, section 7): how far sizes of extracted flows are from those of references."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .specification import Column, Metric


def graph_size_difference(predicted: ArrayLike, reference: ArrayLike) -> dict[str, float]:
    """Compare the number of nodes n of each graph with that of its reference graph n*, and average over graphs.

    It says whether an extracted flow is as complex as that of the annotations (Dialog2Flow, section 6). Two graphs of
    one size may have nothing else in common. Count nodes of start and end alike in both.
    """
    sizes, expected = np.asarray(predicted), np.asarray(reference)
    if sizes.ndim != 1 or sizes.shape != expected.shape or not len(sizes):
        raise ValueError(
            f"predicted and reference: got shapes {sizes.shape} and {expected.shape}, expected both (G,) with G > 0; "
            "give each graph the size of its reference"
        )
    differences = (_whole("predicted", sizes, 0) - _whole("reference", expected, 1)) / expected
    return {"size_difference": float(np.abs(differences).mean()), "signed_size_difference": float(differences.mean())}


def _whole(name: str, values: NDArray[np.generic], least: int) -> NDArray[np.float64]:
    if values.dtype.kind not in "iuf":
        raise ValueError(f"{name}: got values of type {values.dtype}, expected numbers of nodes; count the nodes")
    numbers = values.astype(np.float64)
    wrong = ~(np.isfinite(numbers) & (numbers >= least) & (numbers == np.floor(numbers)))
    if wrong.any():
        got = numbers[wrong][0]
        raise ValueError(f"{name}: got {got:g}, expected whole numbers from {least} on; count the nodes of the graph")
    return numbers


METRIC = Metric(
    "Graph Size Difference", "🕸️", "dialog2flow", graph_size_difference,
    inputs={
        "predictions": Column("number", "The nodes of each extracted graph, (G,), from 0 on.", "predicted"),
        "references": Column("number", "The nodes of its reference graph, (G,), from 1 on.", "reference"),
    },
    outputs={
        "size_difference": "Mean of |n - n*| / n*, 0 or more.",
        "signed_size_difference": "Mean of (n - n*) / n*, at least -1; negative where graphs tend to be too small.",
    },
    cases=(
        {
            "predictions": [9, 10], "references": [10, 8],
            "result": {"size_difference": 0.175, "signed_size_difference": 0.075},
        },
        {
            "predictions": [0, 30], "references": [10, 10],
            "result": {"size_difference": 1.5, "signed_size_difference": 0.5},
        },
    ),
)  # fmt: skip
