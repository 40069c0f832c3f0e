"""Vectors and labels as metrics take them, and all pairs in order. It imports nothing of ours: a Space has a copy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

COSINE_STEPS = 1_000_000_000  # cosines are compared in steps of 1e-9: equal vectors tie, however a product was summed
BLOCK = 256  # how many vectors are compared with all others at once
THREADS = os.cpu_count() or 1  # how many rows are sorted at the same time

_SELF = np.iinfo(np.int32).min


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


def directions(name: str, values: ArrayLike, expected: str = "(N, D) with N > 0") -> NDArray[np.float64]:
    """Return `unit_vectors`; raise ValueError, with their ``name``, if there is none or one is not finite."""
    vectors = np.asarray(values, dtype=np.float64)
    if vectors.ndim != 2 or not len(vectors):
        raise ValueError(f"{name}: got shape {vectors.shape}, expected {expected}")
    if not np.isfinite(vectors).all():
        raise ValueError(f"{name}: got a vector with NaN or infinity, expected finite numbers; look at the encoder")
    return unit_vectors(vectors)


def finite_vectors(embeddings: ArrayLike) -> NDArray[np.floating[Any]]:
    """Return vectors ``(N, D)``, N >= 2, in their own precision; raise ValueError if one is not finite."""
    vectors = np.asarray(embeddings)
    if vectors.dtype not in (np.float32, np.float64):
        vectors = vectors.astype(np.float64)
    if vectors.ndim != 2 or len(vectors) < 2:
        raise ValueError(
            f"embeddings: got shape {vectors.shape}, expected (N, D) with N >= 2; stack one vector per item"
        )
    if not np.isfinite(vectors).all():
        bad = int((~np.isfinite(vectors).all(axis=1)).sum())
        raise ValueError(f"embeddings: got {bad} rows with NaN or infinity, expected finite numbers; check the encoder")
    return vectors


def labelled_vectors(
    embeddings: ArrayLike, labels: ArrayLike, pairs: bool = False
) -> tuple[NDArray[np.floating[Any]], NDArray[np.intp]]:
    """Return `finite_vectors` and their labels as codes from 0 on, ``(N,)``.

    Raises:
        ValueError: The labels are all equal, or with ``pairs`` all different.
    """
    vectors, names = finite_vectors(embeddings), np.asarray(labels)
    if names.shape != vectors.shape[:1]:
        raise ValueError(f"labels: got shape {names.shape}, expected ({len(vectors)},); give every vector one label")
    codes = np.unique(names, return_inverse=True)[1]
    if codes.max() == 0:
        raise ValueError("labels: got one distinct label, expected at least two; add items of another label")
    if pairs and np.bincount(codes).max() == 1:
        raise ValueError("labels: got no label with two members, expected at least one; add dialogues of each label")
    return vectors, codes


def class_means(vectors: NDArray[np.float64], labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return the K labels in order and the mean of the vectors of each, ``(K, D)``; raise ValueError if K = 1."""
    names, codes = np.unique(labels, return_inverse=True)
    if len(names) < 2:
        raise ValueError("support_labels: got one label, expected at least two; add supports of another label")
    sums = np.zeros((len(names), vectors.shape[1]))
    np.add.at(sums, codes, vectors)
    return names, sums / np.bincount(codes)[:, None]


def check_supported(name: str, labels: NDArray[Any], supported: NDArray[Any]) -> None:
    """Raise ValueError for labels that no support has."""
    missing = np.setdiff1d(labels, supported)
    if len(missing):
        raise ValueError(f"{name}: got {missing.tolist()[0]!r}, which no support has; add supports or leave it out")


def sorted_queries(
    embeddings: ArrayLike, labels: ArrayLike
) -> Iterator[tuple[int, NDArray[np.int32], NDArray[np.int32]]]:
    """Sort the cosines of every dialogue to all others, for average precision, ranks and correlations.

    Takes `labelled_vectors` with pairs. Yields a triple for each dialogue whose label another one carries: its place;
    the cosines of the N - 1 others in ascending order, in steps of 1e-9, valid until the next triple; and those of the
    others of its label, in ascending order.
    """
    vectors, codes = labelled_vectors(embeddings, labels, pairs=True)
    units, count = unit_vectors(vectors), len(codes)
    members = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    products = np.empty((min(BLOCK, count), count))
    scores = np.empty(products.shape, dtype=np.int32)
    with ThreadPoolExecutor(THREADS) as pool:
        for start in range(0, count, BLOCK):
            rows = min(BLOCK, count - start)
            np.matmul(units[start : start + rows], units.T, out=products[:rows])
            parts = np.array_split(np.arange(rows), THREADS)
            sort = partial(_sort_rows, products, scores, start, codes, members)
            for row, positives in chain.from_iterable(pool.map(sort, parts)):  # all of it frees Python's lock
                yield start + row, scores[row, 1:], positives


def _sort_rows(
    products: NDArray[np.float64],
    scores: NDArray[np.int32],
    start: int,
    codes: NDArray[np.intp],
    members: list[NDArray[np.intp]],
    rows: NDArray[np.intp],
) -> list[tuple[int, NDArray[np.int32]]]:
    """Sort rows of cosines in integer steps, with a row's own as the lowest; return the queries among them."""
    if not len(rows):
        return []
    first, last = int(rows[0]), int(rows[-1]) + 1
    steps, sorted_steps = products[first:last], scores[first:last]
    steps *= COSINE_STEPS
    np.rint(steps, out=steps)
    np.copyto(sorted_steps, steps, casting="unsafe")
    scores[rows, start + rows] = _SELF
    wanted = [members[codes[start + row]] for row in rows.tolist()]
    queries = [
        (row, np.sort(scores[row, positives])[1:])
        for row, positives in zip(rows.tolist(), wanted, strict=True)
        if len(positives) > 1
    ]
    sorted_steps.sort(axis=1)
    return queries
