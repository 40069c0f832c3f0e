"""Next-utterance retrieval: scores of candidates rank the true response (Mehri and Eskenazi, 2019, equation 13)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..ranks import expected_recall, expected_reciprocal_rank, places

SIZES = (2, 10)  # among how many candidates recall is measured, beside all of them, as the literature on Ubuntu does
KS = (1, 2, 5)  # among how many first candidates the true one is looked for
EXPECTED, OFFICIAL = "expected", "official"  # what becomes of ties: the mean over all orders of them, or a success


def next_utterance_scores(
    scores: Sequence[ArrayLike], correct: Sequence[ArrayLike], ties: str = EXPECTED
) -> dict[str, float]:
    """Averages `example_scores`, whose arguments it takes, over examples: figures by name, all in ``[0, 1]``."""
    return {name: float(values.mean()) for name, values in example_scores(scores, correct, ties).items()}


def example_scores(
    scores: Sequence[ArrayLike], correct: Sequence[ArrayLike], ties: str = EXPECTED
) -> dict[str, NDArray[np.float64]]:
    """Ranks the true response of each example among its candidates, and says so example by example.

    The best of an example's correct candidates is ranked among its wrong ones; its other correct ones are left out.
    R_N@k looks for it among the first k of itself and the N - 1 wrong candidates that stand first in the example: R_2@1
    is the share of those that beat the first wrong one.

    Takes of each of E examples the finite scores of its K >= 2 candidates, where K may differ, and which of these are
    right, (K,) booleans, at least one; else a ValueError. Where wrong candidates tie with the true one, ``"expected"``
    is the mean over all orders of those that tie, so that equal scores give the figures of guessing; ``"official"``
    puts it first, as in the released program of Deep Attention Matching.

    Returns ``{"mrr": one over the rank, "hits1": whether it comes first, "rN@k": recall}``, each (E,) in ``[0, 1]``. N
    is 2, 10 and K, as far as no example has fewer candidates (K: where all have as many); k is 1, 2 and 5 below N.
    """
    if ties not in (EXPECTED, OFFICIAL):
        raise ValueError(f"ties: got {ties!r}, expected {EXPECTED!r} or {OFFICIAL!r}")
    values, right, counts = _padded(scores, correct)
    best = np.where(right, values, -np.inf).max(axis=1, keepdims=True)
    wrong = ~right & (np.arange(values.shape[1]) < counts[:, None])
    order = wrong.cumsum(axis=1)  # of a wrong candidate: the how manieth wrong one it is
    fewest, most = int(counts.min()), int(counts.max())

    def placed(counted: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        ahead, tied = places(values, best, counted)
        return ahead, tied if ties == EXPECTED else np.zeros_like(tied)

    among_all = placed(wrong)
    found = {"mrr": expected_reciprocal_rank(*among_all), "hits1": expected_recall(1, *among_all)}
    for size in sorted({*(size for size in SIZES if size <= fewest), *((most,) if fewest == most else ())}):
        among = placed(wrong & (order < size))
        found |= {f"r{size}@{k}": expected_recall(k, *among) for k in KS if k < size}
    return found


def _padded(
    scores: Sequence[ArrayLike], correct: Sequence[ArrayLike]
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.intp]]:
    """Checks examples and lays them out as matrices (E, K) of the most candidates, with how many each has (E,)."""
    rows, masks = [np.asarray(row, dtype=np.float64) for row in scores], [np.asarray(row) for row in correct]
    if not rows:
        raise ValueError("scores: got 0 examples, expected at least one; add some")
    if len(rows) != len(masks):
        raise ValueError(f"correct: got {len(masks)} examples, expected as many as have scores, {len(rows)}")
    values = np.full((len(rows), max(row.size for row in rows)), -np.inf)
    right = np.zeros(values.shape, dtype=bool)
    for place, (row, mask) in enumerate(zip(rows, masks, strict=True)):
        if row.ndim != 1 or len(row) < 2 or mask.shape != row.shape or mask.dtype != np.bool_:
            raise ValueError(
                f"example {place}: got scores of shape {row.shape} and {mask.dtype} of shape {mask.shape}, expected "
                "(K,) scores and booleans of two candidates or more"
            )
        if not np.isfinite(row).all():
            raise ValueError(f"example {place}: got a score of NaN or infinity, expected finite numbers")
        if not mask.any():
            raise ValueError(f"example {place}: got no correct candidate, expected at least one; leave it out")
        values[place, : len(row)], right[place, : len(row)] = row, mask
    return values, right, np.array([len(row) for row in rows])
