"""Dialogue retrieval: each dialogue ranks all others by cosine, those of its label are relevant (dial2vec, 4.1)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

COSINE_STEPS = 1_000_000_000
"""Cosines are compared in steps of 1e-9: equal vectors then tie, whatever the order in which a product was summed."""

THREADS = os.cpu_count() or 1
"""How many rows are sorted at the same time."""

_SELF = np.iinfo(np.int32).min


def retrieval_scores(embeddings: ArrayLike, labels: ArrayLike, block_size: int = 256) -> dict[str, Any]:
    """Computes mean average precision and mean reciprocal rank with every dialogue as a query against all others.

    A dialogue whose label nobody else carries is skipped and counted. Ties never depend on the order of the input
    (see `average_precision` and `reciprocal_rank`). A zero vector has cosine 0 with everything; constant vectors tie
    throughout, and MAP is the share of relevant dialogues. Memory is ``O(block_size * N)``; time is that of sorting N
    rows of N.

    Args:
        embeddings: One finite vector per dialogue, ``(N, D)``.
        labels: One label per dialogue, strings or integers, ``(N,)``; at least two distinct ones.
        block_size: How many dialogues are compared with all others at once; never changes the result.

    Returns:
        ``{"map": mean in (0, 1], "mrr": mean in (0, 1], "queries": used, "skipped": label of one member}``.

    Raises:
        ValueError: The shapes do not fit, a vector is not finite, or labels are all equal or all different.
    """
    precision, reciprocal, queries = 0.0, 0.0, 0
    for _, ordered, positives in sorted_queries(embeddings, labels, block_size):
        precision += average_precision(ordered, positives)
        reciprocal += reciprocal_rank(ordered, positives)
        queries += 1
    skipped = len(np.asarray(labels)) - queries
    return {"map": precision / queries, "mrr": reciprocal / queries, "queries": queries, "skipped": skipped}


def sorted_queries(
    embeddings: ArrayLike, labels: ArrayLike, block_size: int = 256
) -> Iterator[tuple[int, NDArray[np.int32], NDArray[np.int32]]]:
    """Sorts the cosines of every dialogue to all others; what average precision, ranks and correlations are made of.

    Args:
        embeddings: One finite vector per dialogue, ``(N, D)``.
        labels: One label per dialogue, strings or integers, ``(N,)``; at least two distinct ones.
        block_size: How many dialogues are compared with all others at once.

    Yields:
        For each dialogue whose label another one carries: its place; the cosines of the N - 1 others in ascending
        order, in steps of 1e-9, good until the next one is asked for; and those of the others of its label, in
        ascending order.

    Raises:
        ValueError: The shapes do not fit, a vector is not finite, or labels are all equal or all different.
    """
    if block_size < 1:
        raise ValueError(f"block_size: got {block_size}, expected at least 1; leave it out")
    directions, codes = _checked(embeddings, labels)
    members = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    if max(map(len, members)) < 2:
        raise ValueError("labels: got no label with two members, expected at least one; add dialogues of each label")
    count = len(directions)
    products = np.empty((min(block_size, count), count))
    scores = np.empty(products.shape, dtype=np.int32)
    with ThreadPoolExecutor(THREADS) as pool:
        for start in range(0, count, block_size):
            rows = min(block_size, count - start)
            np.matmul(directions[start : start + rows], directions.T, out=products[:rows])
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
    """Sorts some rows of cosines in integer steps into ``scores``; returns the queries among them with their positives.

    Each dialogue's own cosine is made the lowest of all, so that it comes first.
    """
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


def average_precision(ordered: NDArray[Any], positives: NDArray[Any]) -> float:
    """Computes average precision with tied items counted together, as scikit-learn's ``average_precision_score`` does.

    Args:
        ordered: The scores of all candidates in ascending order, ``(M,)``.
        positives: The scores of the relevant ones in ascending order, ``(P,)``, P >= 1.

    Returns:
        The mean over relevant candidates of the precision at the end of their group of equal scores, in ``(0, 1]``.
    """
    candidates = len(ordered) - np.searchsorted(ordered, positives, side="left")
    if (positives[1:] == positives[:-1]).any():
        relevant = len(positives) - np.searchsorted(positives, positives, side="left")
    else:
        relevant = np.arange(len(positives), 0, -1)
    return float(np.mean(relevant / candidates))


def reciprocal_rank(ordered: NDArray[Any], positives: NDArray[Any]) -> float:
    """Computes one over the rank of the first relevant candidate, placed after the irrelevant ones that it ties with.

    Args:
        ordered: The scores of all candidates in ascending order, ``(M,)``.
        positives: The scores of the relevant ones in ascending order, ``(P,)``, P >= 1.

    Returns:
        A number in ``(0, 1]``.
    """
    best = positives[-1]
    candidates = len(ordered) - np.searchsorted(ordered, best, side="left")
    relevant = len(positives) - np.searchsorted(positives, best, side="left")
    return float(1 / (1 + candidates - relevant))


def _checked(embeddings: ArrayLike, labels: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Returns unit vectors ``(N, D)`` (zero ones stay zero) and integer labels ``(N,)``."""
    vectors, names = np.array(embeddings, dtype=np.float64), np.asarray(labels)
    if vectors.ndim != 2 or len(vectors) < 2:
        raise ValueError(
            f"embeddings: got shape {vectors.shape}, expected (N, D) with N >= 2; stack one vector per item"
        )
    if names.shape != vectors.shape[:1]:
        raise ValueError(f"labels: got shape {names.shape}, expected ({len(vectors)},); give every vector one label")
    if not np.isfinite(vectors).all():
        bad = int((~np.isfinite(vectors).all(axis=1)).sum())
        raise ValueError(f"embeddings: got {bad} rows with NaN or infinity, expected finite numbers; check the encoder")
    codes = np.unique(names, return_inverse=True)[1]
    if codes.max() == 0:
        raise ValueError("labels: got one distinct label, expected at least two; add items of another label")
    norms = np.sqrt(np.einsum("nd,nd->n", vectors, vectors))
    vectors /= np.where(norms > 0, norms, 1.0)[:, None]
    return vectors, codes
