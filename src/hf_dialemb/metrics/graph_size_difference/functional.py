"""Graph size difference (Dialog2Flow, section 7): how far sizes of extracted flows are from those of references."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def graph_size_difference(predicted: ArrayLike, reference: ArrayLike) -> dict[str, float]:
    """Compares numbers of nodes, each with that of its own reference graph, and averages over graphs.

    Args:
        predicted: How many nodes each extracted graph has, whole numbers from 0 on, ``(G,)``.
        reference: How many nodes its reference has, whole numbers from 1 on, ``(G,)``.

    Returns:
        ``{"size_difference": mean of |n - n*| / n*, "signed_size_difference": mean of (n - n*) / n*}``, with n the
        size of a graph and n* that of its reference. The first is 0 where all sizes agree, and may be above 1; the
        second is negative where graphs tend to be too small, and at least -1.

    Raises:
        ValueError: The shapes do not fit, or a size is none.
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
