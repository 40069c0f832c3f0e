"""Semantic relatedness in two forms: a single Spearman over random pairs, and the mean of one per query.

The dial2vec paper (section 4.1) pairs each dialogue with one random other dialogue; the authors' program instead
correlates, for each dialogue, its cosines to all others with the 0/1 vector of sharing its label, and averages.
Both are here, and their figures differ: never compare one with the other.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
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


def query_relatedness(embeddings: ArrayLike, labels: ArrayLike, block_size: int = 256) -> dict[str, Any]:
    """Averages over dialogues Spearman's correlation of their cosines with sharing their label.

    The form of dial2vec's program. A dialogue whose label nobody else carries is skipped and counted (the program
    counts it as 0). A dialogue whose cosines are all equal counts as 0, as in the program. A zero vector has cosine 0
    with everything. Memory is ``O(block_size * N)``; time is that of sorting N rows of N.

    Args:
        embeddings: One finite vector per dialogue, ``(N, D)``.
        labels: One label per dialogue, strings or integers, ``(N,)``; at least two distinct ones.
        block_size: How many dialogues are compared with all others at once; never changes the result.

    Returns:
        ``{"spearman": mean in [-1, 1], "queries": used, "skipped": label of one member, "undefined": counted as 0}``.

    Raises:
        ValueError: The shapes do not fit, a vector is not finite, or labels are all equal or all different.
    """
    total, queries, undefined = 0.0, 0, 0
    for _, ordered, positives in sorted_queries(embeddings, labels, block_size):
        correlation = binary_spearman(ordered, positives)
        queries += 1
        undefined += correlation is None
        total += correlation or 0.0
    skipped = len(np.asarray(labels)) - queries
    return {"spearman": total / queries, "queries": queries, "skipped": skipped, "undefined": undefined}


def pair_relatedness(embeddings: ArrayLike, labels: ArrayLike, seeds: Iterable[int] = range(10)) -> dict[str, Any]:
    """Pairs each dialogue with one random other dialogue and correlates the cosines with sharing a label.

    The form of the dial2vec paper, section 4.1, repeated once per seed. A draw in which no pair or every pair shares
    a label, or all cosines are equal, has no correlation: it counts as 0 and is counted in ``undefined``.

    Args:
        embeddings: One finite vector per dialogue, ``(N, D)``.
        labels: One label per dialogue, strings or integers, ``(N,)``; at least two distinct ones.
        seeds: The random state of each draw of N pairs.

    Returns:
        ``{"spearman": [...], "seeds": [...], "undefined": draws counted as 0}``, one value in ``[-1, 1]`` per seed.

    Raises:
        ValueError: The shapes do not fit, a vector is not finite, there is a single label, or there is no seed.
    """
    directions, codes = _checked(embeddings, labels)
    count, draws = len(codes), list(seeds)
    if not draws:
        raise ValueError("seeds: got none, expected at least one; pass for example range(10)")
    values, undefined = [], 0
    for seed in draws:
        steps = np.random.default_rng(seed).integers(1, count, size=count)
        partners = (np.arange(count) + steps) % count  # uniform over the others: a step is never a whole turn
        cosines = np.einsum("nd,nd->n", directions, directions[partners])
        scores = np.rint(cosines * COSINE_STEPS).astype(np.int32)
        correlation = binary_spearman(np.sort(scores), scores[codes == codes[partners]])
        undefined += correlation is None
        values.append(correlation or 0.0)
    return {"spearman": values, "seeds": draws, "undefined": undefined}


def binary_spearman(ordered: NDArray[Any], positives: NDArray[Any]) -> float | None:
    """Computes Spearman's correlation, ties included, of scores with a 0/1 vector in closed form.

    With M scores of average ranks r, P of them positive and tie groups of sizes t, it is the centred rank sum of
    the positives over the two spreads:
    ``(sum_pos r - P (M + 1) / 2) / sqrt((M^3 - M - sum(t^3 - t)) / 12 * P (M - P) / M)``.

    Args:
        ordered: All scores in ascending order, ``(M,)``.
        positives: The scores at which the vector is 1, in any order, ``(P,)``.

    Returns:
        A number in ``[-1, 1]``, or None where it is undefined: all scores equal, no positive, or only positives.
    """
    total, hits = len(ordered), len(positives)
    ties = ordered[1:][ordered[1:] == ordered[:-1]]  # a value t times in all is here t - 1 times
    sizes = np.unique(ties, return_counts=True)[1] + 1
    tied = int((sizes**3 - sizes).sum())
    spread = (total**3 - total - tied) / 12
    if spread == 0 or hits in (0, total):
        return None
    below = np.searchsorted(ordered, positives, side="left")
    up_to = np.searchsorted(ordered, positives, side="right") if len(ties) else below + 1
    rank_sum = float((below + up_to + 1).sum()) / 2
    return float((rank_sum - hits * (total + 1) / 2) / np.sqrt(spread * hits * (total - hits) / total))


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
