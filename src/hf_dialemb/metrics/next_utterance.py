"""Next-utterance retrieval.

Scores of candidates rank the true response (Mehri and Eskenazi, 2019, equation 13).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .vectors import Places, expected_recall, expected_reciprocal_rank, places, require

# numbers of candidates of recall, beside all of them, as in the literature on Ubuntu
SIZES = (2, 10)
KS = (1, 2, 5)  # the numbers of first candidates that are searched for the true one
# how ties count: the mean over all orders of them, or a success
EXPECTED = "expected"
OFFICIAL = "official"


def next_utterance_scores(
    scores: Sequence[ArrayLike], correct: Sequence[ArrayLike], ties: str = EXPECTED
) -> dict[str, float]:
    """Compute how soon the true response of a context comes among its candidates.

    It does not matter what made the scores.

    Mehri and Eskenazi (2019, equation 13) print the mean reciprocal rank, the literature on the
    Ubuntu corpus R_N@k. The best of an example's right candidates is ranked among its wrong ones.
    R_N@k takes the N - 1 wrong ones that stand first in the example. Equal scores give the mean
    over all orders of those that tie; with ``ties="official"`` the true one comes first, as in the
    released program of Deep Attention Matching.
    """
    return {
        name: float(values.mean()) for name, values in example_scores(scores, correct, ties).items()
    }


def example_scores(
    scores: Sequence[ArrayLike], correct: Sequence[ArrayLike], ties: str = EXPECTED
) -> dict[str, NDArray[np.float64]]:
    """Rank the true response of each example among its candidates; see `next_utterance_scores`.

    Takes of each of E examples the finite scores of its K >= 2 candidates, where K may differ, and
    which of them are right, (K,) booleans, at least one. Returns ``{"mrr": 1 / rank, "hits1":
    whether it comes first, "rN@k": recall}``, each (E,) in ``[0, 1]``. N is 2, 10 and K, as far as
    no example has fewer candidates (K: where all have as many); k is 1, 2 and 5 below N.
    """
    require(ties in (EXPECTED, OFFICIAL), "ties", repr(ties), f"{EXPECTED!r} or {OFFICIAL!r}")
    values, right, counts = _padded(scores, correct)
    wrong = ~right & (np.arange(values.shape[1]) < counts[:, None])
    order = wrong.cumsum(axis=1)  # the number of a wrong candidate among the wrong ones
    fewest = int(counts.min())
    most = int(counts.max())

    def placed(counted: NDArray[np.bool_]) -> Places:
        at = places(values, right, counted)
        return at if ties == EXPECTED else at._replace(wrong=np.zeros_like(at.wrong))

    among_all = placed(wrong)
    figures = {"mrr": expected_reciprocal_rank(among_all), "hits1": expected_recall(1, among_all)}
    sizes = {size for size in SIZES if size <= fewest}
    if fewest == most:
        sizes.add(most)
    for size in sorted(sizes):
        among = placed(wrong & (order < size))
        figures |= {f"r{size}@{k}": expected_recall(k, among) for k in KS if k < size}
    return figures


def _padded(
    scores: Sequence[ArrayLike], correct: Sequence[ArrayLike]
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.intp]]:
    """Lay examples out as matrices (E, K) of the most candidates, with the candidates of each."""
    rows = [np.asarray(row, dtype=np.float64) for row in scores]
    masks = [np.asarray(row) for row in correct]
    require(len(rows) > 0, "scores", "0 examples", "at least one; add some")
    require(
        len(rows) == len(masks),
        "correct",
        f"{len(masks)} examples",
        f"as many as have scores, {len(rows)}",
    )
    values = np.full((len(rows), max(row.size for row in rows)), -np.inf)
    right = np.zeros(values.shape, dtype=bool)
    for place, (row, mask) in enumerate(zip(rows, masks, strict=True)):
        fit = row.ndim == 1 and len(row) > 1 and mask.shape == row.shape and mask.dtype == np.bool_
        got = f"scores of shape {row.shape} and {mask.dtype} of shape {mask.shape}"
        name = f"example {place}"
        require(fit, name, got, "(K,) scores and booleans of two candidates or more")
        require(np.isfinite(row).all(), name, "a score of NaN or infinity", "finite numbers")
        require(mask.any(), name, "no correct candidate", "at least one; leave it out")
        values[place, : len(row)] = row
        right[place, : len(row)] = mask
    return values, right, np.array([len(row) for row in rows])
