"""The paired bootstrap: is a system better than another on the same examples, or only luckier?

A draw of all examples is extreme if its difference is as far from the observed one, d, as d is from
0, on either side (Koehn, 2004; Berg-Kirkpatrick et al., 2012). With b extreme draws of B,
``p = (b + 1) / (B + 1)``, which is never 0.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

RESAMPLES = 10_000  # draws of all examples
_BLOCK = 100  # draws that are in memory at once

_ROUNDING = 1e-12  # differences closer than this are equal


@dataclass(frozen=True)
class Comparison:
    """How much better the first of two systems is."""

    difference: float  # the observed one
    low: float  # the 2.5th percentile of all draws
    high: float  # the 97.5th
    p_value: float  # two-sided, in (0, 1]
    examples: int
    resamples: int = RESAMPLES


def paired_bootstrap(first: ArrayLike, second: ArrayLike) -> Comparison:
    """Compare two systems by their scores of the same examples.

    Scores ``(N,)``, such as reciprocal ranks, are compared by their means. Counts of true
    positives, false positives and false negatives, ``(N, 3)``, are compared by their micro F1.
    """
    ours = np.asarray(first, np.float64)
    others = np.asarray(second, np.float64)
    if ours.shape != others.shape or not len(ours):
        raise ValueError(f"got scores of shape {ours.shape} and {others.shape}, expected the same")
    of_counts = ours.ndim == 2
    score = _f1 if of_counts else partial(np.multiply, 1 / len(ours))
    observed = float(score(ours.sum(axis=0)) - score(others.sum(axis=0)))
    generator = np.random.default_rng(0)
    shares = np.full(len(ours), 1 / len(ours))
    drawn = np.empty(RESAMPLES)
    for block in np.split(drawn, RESAMPLES // _BLOCK):
        # how often each example is drawn with replacement
        weights = generator.multinomial(len(ours), shares, _BLOCK)
        block[:] = score(weights @ ours) - score(weights @ others)
    extreme = np.abs(drawn - observed) >= abs(observed) - _ROUNDING
    low, high = np.quantile(drawn, [0.025, 0.975])
    p_value = (int(extreme.sum()) + 1) / (RESAMPLES + 1)
    return Comparison(observed, float(low), float(high), p_value, len(ours))


def _f1(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    hits = 2 * sums[..., 0]
    errors = sums[..., 1] + sums[..., 2]
    scores: NDArray[np.float64] = hits / np.where(hits + errors > 0, hits + errors, 1)
    return scores
