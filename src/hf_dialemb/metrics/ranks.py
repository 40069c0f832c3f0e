"""Where relevant candidates come among others, ties or not. It imports nothing of ours: a Space has a copy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def average_precision(ordered: NDArray[Any], positives: NDArray[Any]) -> float:
    """Compute average precision with tied items counted together, as scikit-learn's ``average_precision_score`` does.

    It takes, both in ascending order, the scores of all candidates, ``(M,)``, and of the relevant ones, ``(P,)`` with
    P >= 1, and returns the mean over these of the precision at the end of their group of equal scores, in ``(0, 1]``.
    """
    candidates = len(ordered) - np.searchsorted(ordered, positives, side="left")
    if (positives[1:] == positives[:-1]).any():
        relevant = len(positives) - np.searchsorted(positives, positives, side="left")
    else:
        relevant = np.arange(len(positives), 0, -1)
    return float(np.mean(relevant / candidates))


def reciprocal_rank(ordered: NDArray[Any], positives: NDArray[Any]) -> float:
    """Compute one over the rank of the first relevant candidate, placed after the irrelevant ones that it ties with.

    Arguments are those of `average_precision`; the result is in ``(0, 1]``.
    """
    best = positives[-1]
    candidates = len(ordered) - np.searchsorted(ordered, best, side="left")
    relevant = len(positives) - np.searchsorted(positives, best, side="left")
    return float(1 / (1 + candidates - relevant))


def places(
    scores: NDArray[np.float64], best: NDArray[np.float64], wrong: NDArray[np.bool_]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Count the wrong scores of ``(Q, C)`` above the best right one ``(Q, 1)``, and those that tie with it."""
    return ((scores > best) & wrong).sum(axis=1), ((scores == best) & wrong).sum(axis=1)


def expected_recall(k: int, ahead: NDArray[np.intp], tied: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return how often the correct candidate is among the first k, ``(Q,)``, over all orders of its ties."""
    return np.clip((k - ahead) / (tied + 1), 0.0, 1.0)


def expected_reciprocal_rank(ahead: NDArray[np.intp], tied: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the mean of one over the correct candidate's rank, ``(Q,)``, over all orders of those that tie with it."""
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, int((ahead + tied).max()) + 2))])
    means = (harmonic[ahead + tied + 1] - harmonic[ahead]) / (tied + 1)
    return np.where(tied == 0, 1 / (ahead + 1), means)  # without ties exactly one over the rank
