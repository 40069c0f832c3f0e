"""Graph size difference (Dialog2Flow, section 7): how far sizes of extracted flows are from those of references."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .specification import Column, Metric
from .vectors import require


def graph_size_difference(predicted: ArrayLike, reference: ArrayLike) -> dict[str, float]:
    """Compare the number of nodes n of each graph with that of its reference graph n*, and average over graphs.

    It says whether an extracted flow is as complex as that of the annotations (Dialog2Flow, section 6). Two graphs of
    one size may have nothing else in common. Count nodes of start and end alike in both.
    """
    sizes, expected = np.asarray(predicted, dtype=np.float64), np.asarray(reference, dtype=np.float64)
    shapes = f"shapes {sizes.shape} and {expected.shape}"
    fit = sizes.ndim == 1 and sizes.shape == expected.shape and len(sizes) > 0
    require(fit, "predicted and reference", shapes, "both (G,) with G > 0; give each graph the size of its reference")
    for name, values, least in (("predicted", sizes, 0), ("reference", expected, 1)):
        wrong = values[~(np.isfinite(values) & (values >= least) & (values == np.floor(values)))]
        require(not len(wrong), name, f"{wrong[:1]}", f"whole numbers from {least} on; count the nodes of the graph")
    differences = (sizes - expected) / expected
    return {"size_difference": float(np.abs(differences).mean()), "signed_size_difference": float(differences.mean())}


METRIC = Metric(
    "Graph Size Difference", "🕸️", "burdisso-etal-2024-dialog2flow", graph_size_difference,
    inputs={
        "predictions": Column("number", "The nodes of each extracted graph, (G,), from 0 on.", "predicted"),
        "references": Column("number", "The nodes of its reference graph, (G,), from 1 on.", "reference"),
    },
    outputs={
        "size_difference": "Mean of |n - n*| / n*, 0 or more.",
        "signed_size_difference": "Mean of (n - n*) / n*, at least -1; negative where graphs tend to be too small.",
    },
    example={"predictions": [9, 10], "references": [10, 8]},
    result={"size_difference": 0.175, "signed_size_difference": 0.075},
)  # fmt: skip
