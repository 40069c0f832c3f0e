"""Anisotropy within and between labels (Dialog2Flow, section 5.1): mean cosines, in linear time."""

import numpy as np
from numpy.typing import ArrayLike

from .vectors import finite_vectors, labelled_vectors, require, unit_vectors


def mean_cosine(embeddings: ArrayLike) -> float:
    """Compute the mean cosine of all pairs of distinct vectors ``(N, D)``, in ``[-1, 1]``.

    The sum over pairs is the squared length of the sum of the directions, so no N x N matrix is
    built. A zero vector has cosine 0 with everything.
    """
    units = unit_vectors(finite_vectors(embeddings))
    total = units.sum(axis=0)
    own = (units**2).sum()  # 1 for each vector but those of length 0
    return float((total @ total - own) / (len(units) * (len(units) - 1)))


def anisotropy(embeddings: ArrayLike, labels: ArrayLike, min_members: int = 3) -> dict[str, float]:
    """Compute how alike vectors are within labels, and how alike the labels' centroids are.

    The measure of Dialog2Flow, section 5.1.

    Cosines keep their sign, as in the paper's program; its text says absolute values. A zero vector
    has cosine 0 with everything. Constant vectors have ``intra`` and ``inter`` 1. Labels with fewer
    than ``min_members`` vectors count for ``inter`` only.
    """
    vectors, codes = labelled_vectors(np.asarray(embeddings, dtype=np.float64), labels)
    counts = np.bincount(codes)
    large = np.flatnonzero(counts >= max(min_members, 2))
    require(
        len(large) > 0, "labels", f"none with {min_members} vectors", "at least one; add vectors"
    )
    members = np.split(np.argsort(codes, kind="stable"), np.cumsum(counts)[:-1])
    intra = float(np.mean([mean_cosine(vectors[members[code]]) for code in large]))
    inter = mean_cosine(np.stack([vectors[rows].mean(axis=0) for rows in members]))
    return {"intra": intra, "inter": inter, "difference": intra - inter}
