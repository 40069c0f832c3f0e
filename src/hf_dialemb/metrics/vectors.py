"""Vectors, labels, pairs and ranks as metrics take them. It imports nothing of ours.

A Space has a copy.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

# cosines are compared in steps of 1e-9: equal vectors tie, however a product was summed
COSINE_STEPS = 1_000_000_000
BLOCK = 256  # how many vectors are compared with all others at once

_SELF = np.iinfo(np.int32).min


def require(right: bool | np.bool_, name: str, got: str, expected: str) -> None:
    """Raise ValueError for an input that is not right."""
    if not right:
        raise ValueError(f"{name}: got {got}, expected {expected}")


def unit(vectors: ArrayLike) -> NDArray[np.float32]:
    """Return float32 vectors ``(N, D)`` of length 1 in a new array; zero rows stay zero."""
    array = np.array(vectors, dtype=np.float32)
    lengths = np.linalg.norm(array, axis=1, keepdims=True)
    array /= np.where(lengths > 0, lengths, 1)
    return array


def unit_vectors(vectors: ArrayLike) -> NDArray[np.float64]:
    """Return float64 vectors ``(N, D)`` of length 1 in a new array; zero rows stay zero."""
    units = np.array(vectors, dtype=np.float64)
    lengths = np.sqrt(np.einsum("nd,nd->n", units, units))
    units /= np.where(lengths > 0, lengths, 1.0)[:, None]
    return units


def finite_vectors(
    values: ArrayLike, name: str = "embeddings", least: int = 2
) -> NDArray[np.floating[Any]]:
    """Return vectors ``(N, D)`` in their own precision.

    Raise ValueError if there are too few, or one is not finite.
    """
    vectors = np.asarray(values)
    if vectors.dtype not in (np.float32, np.float64):
        vectors = vectors.astype(np.float64)
    shape = f"(N, D) with N >= {least}; stack one vector per item"
    require(vectors.ndim == 2 and len(vectors) >= least, name, f"shape {vectors.shape}", shape)
    require(
        np.isfinite(vectors).all(),
        name,
        "a vector with NaN or infinity",
        "finite numbers; look at the encoder",
    )
    return vectors


def directions(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return `unit_vectors` of one or more `finite_vectors`."""
    return unit_vectors(finite_vectors(values, name, 1))


def labelled_vectors(
    embeddings: ArrayLike, labels: ArrayLike, pairs: bool = False
) -> tuple[NDArray[np.floating[Any]], NDArray[np.intp]]:
    """Return `finite_vectors` and their labels as codes, ``(N,)``.

    Raise ValueError if these are all equal.

    With ``pairs`` labels that are all different are refused too.
    """
    vectors = finite_vectors(embeddings)
    names = np.asarray(labels)
    shape = f"({len(vectors)},); give every vector one label"
    require(names.shape == vectors.shape[:1], "labels", f"shape {names.shape}", shape)
    codes = np.unique(names, return_inverse=True)[1]
    require(codes.any(), "labels", "one distinct label", "at least two; add items of another label")
    alone = pairs and np.bincount(codes).max() == 1
    require(
        not alone,
        "labels",
        "no label with two members",
        "at least one; add dialogues of each label",
    )
    return vectors, codes


def prototype_products(
    supports: ArrayLike,
    support_labels: ArrayLike,
    vectors: ArrayLike,
    unit_prototypes: bool = False,
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return the K labels in order, and products ``(N, K)`` with the means of their supports.

    Supports ``(S, D)``, of two or more labels, and vectors ``(N, D)`` are brought to length 1,
    means only if wanted.
    """
    names = np.asarray(support_labels)
    known = directions("supports", supports)
    others = directions("vectors", vectors)
    require(
        names.shape == known.shape[:1] and known.shape[1] == others.shape[1],
        "supports, support_labels and vectors",
        f"shapes {known.shape}, {names.shape} and {others.shape}",
        "(S, D), (S,) and (N, D)",
    )
    labels, codes = np.unique(names, return_inverse=True)
    require(
        len(labels) > 1,
        "support_labels",
        "one label",
        "at least two; add supports of another label",
    )
    sums = np.zeros((len(labels), known.shape[1]))
    np.add.at(sums, codes, known)
    means = sums / np.bincount(codes)[:, None]
    return labels, others @ (unit_vectors(means) if unit_prototypes else means).T


def check_supported(name: str, labels: NDArray[Any], supported: NDArray[Any]) -> None:
    """Raise ValueError for labels that no support has."""
    missing = np.setdiff1d(labels, supported).tolist()
    require(
        not missing,
        name,
        f"{missing[:1]}, which no support has",
        "labels of supports; add some or leave it out",
    )


def query_scores(
    embeddings: ArrayLike, labels: ArrayLike, *scores: Callable[[NDArray[Any], NDArray[Any]], float]
) -> tuple[NDArray[np.float64], int]:
    """Score each dialogue as a query for those of its label, by cosine.

    A score takes the cosines of the N - 1 others in ascending order, in steps of 1e-9, and those of
    the relevant ones. Memory is ``O(N)``, time that of sorting N rows of N. Returns the scores,
    ``(S, Q)``, and how many dialogues are no query, since nobody else has their label.
    """
    queries = _sorted_queries(*labelled_vectors(embeddings, labels, pairs=True))
    results = [[score(ordered, positives) for score in scores] for ordered, positives in queries]
    return np.ascontiguousarray(np.array(results).T), len(np.asarray(labels)) - len(results)


def _sorted_queries(
    vectors: NDArray[np.floating[Any]], codes: NDArray[np.intp]
) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
    """Yield the sorted steps of the others' cosines, and those of the relevant ones, per query."""
    units = unit_vectors(vectors)
    for start in range(0, len(codes), BLOCK):
        own = np.arange(start, min(start + BLOCK, len(codes)))
        steps = np.rint(units[own] @ units.T * COSINE_STEPS).astype(np.int32)
        steps[np.arange(len(own)), own] = _SELF  # the lowest, which is left out
        relevant = codes[own][:, None] == codes
        for row, ordered in enumerate(np.sort(steps, axis=1)):
            positives = np.sort(steps[row, relevant[row]])[1:]
            if len(positives):
                yield ordered[1:], positives


def average_precision(ordered: NDArray[Any], positives: NDArray[Any]) -> float:
    """Compute the mean of average precision over all orders of tied items, in ``(0, 1]``.

    It takes, both in ascending order, the scores of all candidates, ``(M,)``, and of the relevant
    ones, ``(P,)`` with P >= 1. In a tied group of n with m relevant ones, after a candidates of
    which r are relevant, position i has a relevant one with probability m / n, and then the
    precision ``(r + 1 + (i - 1) (m - 1) / (n - 1)) / (a + i)``.
    """
    values, relevant = np.unique(positives, return_counts=True)
    ahead = len(ordered) - np.searchsorted(ordered, values, side="right")
    sizes = len(ordered) - np.searchsorted(ordered, values, side="left") - ahead
    before = len(positives) - np.cumsum(relevant)
    if (sizes == 1).all():
        return float(np.sum((before + 1) / (ahead + 1)) / len(positives))
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, len(ordered) + 1))])
    inverse = harmonic[ahead + sizes] - harmonic[ahead]
    later = (relevant - 1) / np.maximum(sizes - 1, 1) * (sizes - (ahead + 1) * inverse)
    sums = relevant / sizes * ((before + 1) * inverse + later)
    return float(sums.sum() / len(positives))


def reciprocal_rank(ordered: NDArray[Any], positives: NDArray[Any]) -> float:
    """Compute the mean of one over the first relevant rank, over all orders of tied items.

    Arguments are those of `average_precision`; the result is in ``(0, 1]``.
    """
    best = positives[-1]
    ahead = len(ordered) - np.searchsorted(ordered, best, side="right")
    tied = len(ordered) - np.searchsorted(ordered, best, side="left") - ahead
    right = len(positives) - np.searchsorted(positives, best, side="left")
    return float(expected_reciprocal_rank(Places([ahead], [tied - right], [right]))[0])


class Places(NamedTuple):
    """Of Q queries: the wrong candidates above the best right one, and both kinds that tie."""

    ahead: Any
    wrong: Any
    right: Any


def places(
    scores: NDArray[np.float64], right: NDArray[np.bool_], wrong: NDArray[np.bool_]
) -> Places:
    """Count in scores ``(Q, C)`` what is above the best right candidate, and what ties with it."""
    best = np.where(right, scores, -np.inf).max(axis=1, keepdims=True)
    level = scores == best
    counted = ((scores > best) & wrong, level & wrong, level & right)
    return Places(*(part.sum(axis=1) for part in counted))


def expected_recall(k: int, at: Places) -> NDArray[np.float64]:
    """Return how often a right candidate is among the first k wrong ones and itself, ``(Q,)``.

    It is the mean over all orders of ties.
    """
    rows = zip(*at, strict=True)
    return np.array([_waiting(*ties)[: max(0, k - ahead)].sum() for ahead, *ties in rows])


def expected_reciprocal_rank(at: Places) -> NDArray[np.float64]:
    """Return the mean of one over the first right rank among wrong ones, over orders, ``(Q,)``."""
    ranks = []
    for ahead, *ties in zip(*at, strict=True):
        chances = _waiting(*ties)
        ranks.append((chances / (ahead + 1 + np.arange(len(chances)))).sum())
    return np.array(ranks)


def _waiting(wrong: int, right: int) -> NDArray[np.float64]:
    """Return how likely 0, 1, ... ``wrong`` tied wrong candidates come before the first right."""
    tied = np.arange(wrong)
    ratios = (wrong - tied) / (wrong + right - 1 - tied)
    return np.asarray(right / (wrong + right) * np.cumprod([1.0, *ratios]))


def expected_share(k: int, scores: NDArray[Any], right: NDArray[np.bool_]) -> float:
    """Return which share of the right ones of scores ``(C,)`` is among the first k, over orders."""
    own = scores[right][:, None]
    ahead = (scores > own).sum(axis=1)
    return float(np.clip((k - ahead) / (scores == own).sum(axis=1), 0, 1).mean())
