"""Whether one system is better than another on the same examples, or only luckier: the paired bootstrap.

As in Koehn (EMNLP 2004) and Berg-Kirkpatrick, Burkett and Klein (EMNLP 2012): examples are drawn with replacement, as
many as there are, and both systems are compared on what was drawn, many times. The share of draws whose difference is
as far from the observed difference d as d is from 0, on either side, says how often chance alone would do as much. With
b of B draws so far off, ``p = (b + 1) / (B + 1)`` (Davison and Hinkley, 1997, section 4.2), which is never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

RESAMPLES = 10_000  # how often examples are drawn

_BLOCK = 1 << 21  # numbers that are drawn at once
_ROUNDING = 1e-12  # differences closer than this are one


@dataclass(frozen=True)
class Comparison:
    """How much better the first of two systems is: the difference, its 95 % interval, and a two-sided p in (0, 1].

    The interval is that of the 2.5th and the 97.5th percentile of all draws.
    """

    difference: float
    low: float
    high: float
    p_value: float
    examples: int
    resamples: int
    seed: int


def paired_bootstrap(first: ArrayLike, second: ArrayLike, *, resamples: int = RESAMPLES, seed: int = 0) -> Comparison:
    """Compares the means of two systems' scores, such as reciprocal ranks or hits."""
    ours, others = _checked("first", first, 1), _checked("second", second, 1)
    if ours.shape != others.shape:
        raise ValueError(f"second: got shape {others.shape}, expected that of first, {ours.shape}")
    columns = np.stack([ours, others], axis=1)
    return _compare(columns, lambda sums: (sums[:, 0] - sums[:, 1]) / len(ours), resamples, seed)


def mean_interval(values: ArrayLike) -> tuple[float, float]:
    """Computes the 95 % bootstrap interval of a mean, by a thousand draws."""
    found = _checked("values", values, 1)
    means = np.concatenate([weights @ found for weights in _weights(len(found), 1_000, 0)]) / len(found)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def paired_bootstrap_f1(first: ArrayLike, second: ArrayLike) -> Comparison:
    """Compares the micro F1 of two systems, in [0, 1]."""
    ours, others = _checked("first", first, 2), _checked("second", second, 2)
    if ours.shape != others.shape or ours.shape[1] != 3:
        raise ValueError(f"counts: got shapes {ours.shape} and {others.shape}, expected (N, 3) for both")
    if min(ours.min(), others.min()) < 0:
        raise ValueError("counts: got a negative one, expected numbers of true and false positives and false negatives")
    columns = np.concatenate([ours, others], axis=1)
    return _compare(columns, lambda sums: _f1(sums[:, :3]) - _f1(sums[:, 3:]), RESAMPLES, 0)


def _compare(
    columns: NDArray[np.float64],
    difference: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    resamples: int,
    seed: int,
) -> Comparison:
    """Bootstraps ``difference``, a function of the sums of columns: (R, K) in, (R,) out."""
    if resamples < 1:
        raise ValueError(f"resamples: got {resamples}, expected at least 1")
    observed = float(difference(columns.sum(axis=0, keepdims=True))[0])
    sums = np.concatenate([weights @ columns for weights in _weights(len(columns), resamples, seed)])
    drawn = difference(sums)
    far = np.abs(drawn - observed) >= abs(observed) - _ROUNDING
    low, high = np.quantile(drawn, [0.025, 0.975])
    p_value = (int(far.sum()) + 1) / (resamples + 1)
    return Comparison(observed, float(low), float(high), p_value, len(columns), resamples, seed)


def _weights(count: int, resamples: int, seed: int) -> Iterator[NDArray[np.float64]]:
    """Yields how often each example was drawn, blocks (R, N) of all draws."""
    generator = np.random.default_rng(seed)
    block = max(1, _BLOCK // count)
    for start in range(0, resamples, block):
        rows = min(block, resamples - start)
        drawn = generator.integers(0, count, (rows, count)) + count * np.arange(rows)[:, None]
        yield np.bincount(drawn.ravel(), minlength=rows * count).reshape(rows, count).astype(np.float64)


def _f1(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    hits, errors = 2 * sums[:, 0], sums[:, 1] + sums[:, 2]
    found: NDArray[np.float64] = hits / np.where(hits + errors > 0, hits + errors, 1)
    return found


def _checked(name: str, values: ArrayLike, dimensions: int) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != dimensions or not len(array):
        raise ValueError(
            f"{name}: got shape {array.shape}, expected {dimensions} dimension(s) and at least one example"
        )
    if not np.isfinite(array).all():
        raise ValueError(f"{name}: got NaN or infinity, expected finite numbers; look at the system")
    return array
