"""Labels' centroids: what a picture with one place per label draws."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....models.errors import InputError


def check_labelled(embeddings: NDArray[Any], labels: Sequence[str]) -> None:
    """Makes sure that each of the vectors ``(N, D)`` is finite and has a label."""
    if embeddings.ndim != 2 or len(embeddings) != len(labels):
        raise InputError(f"embeddings: got shape {embeddings.shape}, expected ({len(labels)}, D): one per label")
    if not np.isfinite(embeddings).all():
        raise InputError("embeddings: got a value that is not finite, expected numbers; encode the texts again")


def largest_labels(labels: Sequence[str], most: int) -> list[str]:
    """Lists the labels that most items have, the largest first; equally large ones in alphabetical order."""
    counts = Counter(labels)
    return sorted(counts, key=lambda label: (-counts[label], label))[:most]


def mean_directions(vectors: NDArray[Any], labels: Sequence[str], names: Sequence[str]) -> NDArray[np.float64]:
    """Computes where the vectors ``(N, D)`` of K named labels point on average, ``(K, D)`` of length 1."""
    points = directions(vectors)
    places = np.asarray(labels)
    centroids = np.stack([points[places == name].mean(axis=0) for name in names])
    lengths = np.linalg.norm(centroids, axis=1, keepdims=True)
    lost = [name for name, length in zip(names, lengths.ravel(), strict=True) if length < 1e-9]
    if lost:
        raise InputError(
            f"label '{lost[0]}': got vectors that cancel out, expected a common direction; leave the label out"
        )
    return directions(centroids)


def directions(vectors: NDArray[Any]) -> NDArray[np.float64]:
    """L2-normalises vectors ``(N, D)``; what is zero stays zero."""
    vectors = np.asarray(vectors, dtype=np.float64)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    normalised: NDArray[np.float64] = vectors / np.where(norms > 0, norms, 1.0)
    return normalised
