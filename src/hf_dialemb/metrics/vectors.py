"""Vectors, labels, pairs and ranks as metrics take them. It imports nothing of ours.

A Space has a copy.
"""

from collections.abc import Callable, Iterator
from typing import Any

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
    vectors, names = finite_vectors(embeddings), np.asarray(labels)
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
    known, others = directions("supports", supports), directions("vectors", vectors)
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
    """Compute average precision with tied items counted together.

    So does scikit-learn's ``average_precision_score``.

    It takes, both in ascending order, the scores of all candidates, ``(M,)``, and of the relevant
    ones, ``(P,)`` with P >= 1, and returns the mean over these of the precision at the end of their
    group of equal scores, in ``(0, 1]``.
    """
    candidates = len(ordered) - np.searchsorted(ordered, positives, side="left")
    if (positives[1:] == positives[:-1]).any():
        relevant = len(positives) - np.searchsorted(positives, positives, side="left")
    else:
        relevant = np.arange(len(positives), 0, -1)
    return float(np.mean(relevant / candidates))


def reciprocal_rank(ordered: NDArray[Any], positives: NDArray[Any]) -> float:
    """Compute one over the rank of the first relevant candidate.

    It is placed after the irrelevant ones that it ties with.

    Arguments are those of `average_precision`; the result is in ``(0, 1]``.
    """
    best = positives[-1]
    candidates = len(ordered) - np.searchsorted(ordered, best, side="left")
    relevant = len(positives) - np.searchsorted(positives, best, side="left")
    return float(1 / (1 + candidates - relevant))


def places(
    scores: NDArray[np.float64], best: NDArray[np.float64], wrong: NDArray[np.bool_]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Count the wrong scores of ``(Q, C)`` above the best right one ``(Q, 1)``, and its ties."""
    return ((scores > best) & wrong).sum(axis=1), ((scores == best) & wrong).sum(axis=1)


def expected_recall(k: int, ahead: NDArray[np.intp], tied: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return how often the correct candidate is among the first k, over all orders of its ties.

    ``ahead``, ``tied`` and the result are ``(Q,)``.
    """
    return np.clip((k - ahead) / (tied + 1), 0.0, 1.0)


def expected_reciprocal_rank(
    ahead: NDArray[np.intp], tied: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Return the mean of one over the correct candidate's rank, over all orders of its ties.

    ``ahead``, ``tied`` and the result are ``(Q,)``.
    """
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, int((ahead + tied).max()) + 2))])
    means = (harmonic[ahead + tied + 1] - harmonic[ahead]) / (tied + 1)
    return np.where(tied == 0, 1 / (ahead + 1), means)  # without ties exactly one over the rank
