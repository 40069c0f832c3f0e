"""The paired bootstrap.

Whether a system is better than another on the same examples, or only luckier.

A draw of all examples is extreme if its difference is as far from the observed one, d, as d is from
0, on either side (Koehn, 2004; Berg-Kirkpatrick et al., 2012). With b extreme draws of B, ``p = (b
+ 1) / (B + 1)``, which is never 0.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..evaluation.tasks.sampling import bootstrap_weights, finite_array

RESAMPLES = 10_000  # draws of all examples

_ROUNDING = 1e-12  # differences closer than this are equal


@dataclass(frozen=True)
class Comparison:
    """How much better the first of two systems is."""

    difference: float  # the observed one
    low: float  # the 2.5th percentile of all draws
    high: float  # the 97.5th
    p_value: float  # two-sided, in (0, 1]
    examples: int
    resamples: int
    seed: int


def paired_bootstrap(
    first: ArrayLike, second: ArrayLike, *, resamples: int = RESAMPLES, seed: int = 0
) -> Comparison:
    """Compare the means of two systems' scores, such as reciprocal ranks or hits, each ``(N,)``."""
    columns = _side_by_side(first, second, 1)
    return _compare(columns, lambda sums: (sums[:, 0] - sums[:, 1]) / len(columns), resamples, seed)


def paired_bootstrap_f1(first: ArrayLike, second: ArrayLike) -> Comparison:
    """Compare the micro F1, in [0, 1], of two systems from their counts of TP, FP and FN, each
    ``(N, 3)``.
    """
    columns = _side_by_side(first, second, 2)
    if columns.shape[1] != 6:
        raise ValueError(f"counts: got {columns.shape[1] // 2} of each example, expected (N, 3)")
    if columns.min() < 0:
        raise ValueError(
            "counts: got a negative one, expected numbers of true and false positives and false "
            "negatives"
        )
    return _compare(columns, lambda sums: _f1(sums[:, :3]) - _f1(sums[:, 3:]), RESAMPLES, 0)


def _side_by_side(first: ArrayLike, second: ArrayLike, dimensions: int) -> NDArray[np.float64]:
    ours, others = (
        finite_array("first", first, dimensions),
        finite_array("second", second, dimensions),
    )
    if ours.shape != others.shape:
        raise ValueError(f"second: got shape {others.shape}, expected that of first, {ours.shape}")
    return np.column_stack([ours, others])


def _compare(
    columns: NDArray[np.float64],
    difference: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    resamples: int,
    seed: int,
) -> Comparison:
    """Bootstrap ``difference``, a function of the sums of columns: (R, K) in, (R,) out."""
    if resamples < 1:
        raise ValueError(f"resamples: got {resamples}, expected at least 1")
    observed = float(difference(columns.sum(axis=0, keepdims=True))[0])
    sums = np.concatenate(
        [weights @ columns for weights in bootstrap_weights(len(columns), resamples, seed)]
    )
    drawn = difference(sums)
    extreme = np.abs(drawn - observed) >= abs(observed) - _ROUNDING
    low, high = np.quantile(drawn, [0.025, 0.975])
    p_value = (int(extreme.sum()) + 1) / (resamples + 1)
    return Comparison(observed, float(low), float(high), p_value, len(columns), resamples, seed)


def _f1(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    hits, errors = 2 * sums[:, 0], sums[:, 1] + sums[:, 2]
    scores: NDArray[np.float64] = hits / np.where(hits + errors > 0, hits + errors, 1)
    return scores
