"""Anisotropy within and between labels (Dialog2Flow, section 5.1): mean cosines, in linear time."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..vectors import directions


def mean_cosine(embeddings: ArrayLike) -> float:
    """Computes the mean cosine of all pairs of distinct vectors, in ``[-1, 1]``; 1 where all point the same way.

    The sum over pairs is the squared length of the sum of the directions, so no N x N matrix is built. A ValueError
    refuses all but finite vectors ``(N, D)``, N >= 2; a zero vector has cosine 0 with everything.
    """
    units = directions("embeddings", embeddings, "(N, D); stack one vector per item")
    count = len(units)
    if count < 2:
        raise ValueError(f"embeddings: got {count} vectors, expected at least 2; add some")
    total = units.sum(axis=0)
    own = (units**2).sum()  # 1 for each vector but those of length 0
    return float((total @ total - own) / (count * (count - 1)))


def anisotropy(embeddings: ArrayLike, labels: ArrayLike, min_members: int = 3) -> dict[str, float]:
    """Computes how alike vectors are within labels and how alike the labels' centroids are.

    Cosines keep their sign, as in the paper's program; its text says absolute values. Takes finite vectors ``(N, D)``
    and labels ``(N,)``, strings or integers, at least two distinct ones, one of ``min_members`` (the program: 3); else
    a ValueError.

    Returns ``intra``, the mean of `mean_cosine` over labels that have so many members; ``inter``, that of the centroids
    of all labels; ``difference``, intra minus inter, greater is better. All in ``[-1, 1]``, the difference in ``[-2,
    2]``.
    """
    vectors, names = np.asarray(embeddings, dtype=np.float64), np.asarray(labels)
    if vectors.ndim != 2 or names.shape != vectors.shape[:1]:
        raise ValueError(
            f"labels: got shapes {vectors.shape} and {names.shape}, expected (N, D) and (N,); give each vector a label"
        )
    distinct, codes, counts = np.unique(names, return_inverse=True, return_counts=True)
    if len(distinct) < 2:
        raise ValueError(f"labels: got {len(distinct)} distinct, expected at least two; add vectors of another label")
    large = np.flatnonzero(counts >= max(min_members, 2))
    if not len(large):
        raise ValueError(f"labels: got none with {min_members} vectors, expected at least one; add vectors")
    members = np.split(np.argsort(codes, kind="stable"), np.cumsum(counts)[:-1])
    intra = float(np.mean([mean_cosine(vectors[members[code]]) for code in large]))
    inter = mean_cosine(np.stack([vectors[rows].mean(axis=0) for rows in members]))
    return {"intra": intra, "inter": inter, "difference": intra - inter}
