"""Graph size difference (Dialog2Flow, section 7): how far sizes of extracted flows are from those of references."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def graph_size_difference(predicted: ArrayLike, reference: ArrayLike) -> dict[str, float]:
    """Compares numbers of nodes n, each with that of its own reference graph n*, and averages over graphs.

    Takes whole numbers ``(G,)``, those of the references from 1 on; a ValueError refuses others. Returns
    ``size_difference``, the mean of ``|n - n*| / n*``, 0 where all sizes agree, and may be above 1; and
    ``signed_size_difference``, that of ``(n - n*) / n*``, at least -1, negative where graphs tend to be too small.
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
