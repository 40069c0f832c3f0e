"""Labels' centroids: what a picture with one place per label draws."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....models.errors import InputError


def check_labelled(embeddings: NDArray[Any], labels: Sequence[str]) -> None:
    """Makes sure that each vector has a label.

    Args:
        embeddings: Vectors ``(N, D)``.
        labels: One label per vector.

    Raises:
        InputError: They do not fit, or a vector is not finite.
    """
    if embeddings.ndim != 2 or len(embeddings) != len(labels):
        raise InputError(f"embeddings: got shape {embeddings.shape}, expected ({len(labels)}, D): one per label")
    if not np.isfinite(embeddings).all():
        raise InputError("embeddings: got a value that is not finite, expected numbers; encode the texts again")


def largest_labels(labels: Sequence[str], most: int) -> list[str]:
    """Lists the labels that most items have.

    Args:
        labels: One label per item.
        most: How many to list at most.

    Returns:
        Distinct labels, the largest first; equally large ones in alphabetical order.
    """
    counts = Counter(labels)
    return sorted(counts, key=lambda label: (-counts[label], label))[:most]


def mean_directions(vectors: NDArray[Any], labels: Sequence[str], names: Sequence[str]) -> NDArray[np.float64]:
    """Computes the direction in which each label's vectors point on average.

    Args:
        vectors: Vectors ``(N, D)``; they are L2-normalised first.
        labels: One label per vector.
        names: The K labels to compute a direction of.

    Returns:
        Centroids ``(K, D)`` of length 1.

    Raises:
        InputError: A label's vectors cancel out, so that they have no common direction.
    """
    points = np.asarray(vectors, dtype=np.float64)
    norms = np.linalg.norm(points, axis=1, keepdims=True)
    points = points / np.where(norms > 0, norms, 1.0)
    places = np.asarray(labels)
    centroids = np.stack([points[places == name].mean(axis=0) for name in names])
    lengths = np.linalg.norm(centroids, axis=1, keepdims=True)
    lost = [name for name, length in zip(names, lengths.ravel(), strict=True) if length < 1e-9]
    if lost:
        raise InputError(
            f"label '{lost[0]}': got vectors that cancel out, expected a common direction; leave the label out"
        )
    directions: NDArray[np.float64] = centroids / lengths
    return directions
