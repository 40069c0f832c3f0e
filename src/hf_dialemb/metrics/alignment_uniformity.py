"""Adjusted alignment and uniformity on the unit sphere (dial2vec, section 5.3.3, equations 7 to 9).

Lower is better.
"""

import numpy as np
from numpy.typing import ArrayLike

from .vectors import BLOCK, finite_vectors, labelled_vectors, unit_vectors


def alignment_uniformity(
    embeddings: ArrayLike, labels: ArrayLike | None = None
) -> dict[str, float]:
    """Compute how vectors lie on the unit sphere (dial2vec, section 5.3.3). Lower is better.

    Alignment is the mean squared distance of same-label pairs, and needs labels. Uniformity is the
    logarithm of the mean Gaussian kernel of all pairs. Vectors are brought to length 1 first; a
    zero vector stays zero. Constant vectors have alignment 0, the best, but uniformity 0, the
    worst, and adjusted alignment 0: look at all of them. A label with one member counts for
    separation and uniformity only.
    """
    scores = {} if labels is None else alignment(embeddings, labels)
    return {**scores, "uniformity": uniformity(embeddings)}


def alignment(embeddings: ArrayLike, labels: ArrayLike) -> dict[str, float]:
    """Compute the mean squared distance of same-label pairs (equation 7), adjusted (equation 8).

    No pair is ever formed: over n vectors with squared norms adding up to Q and vectors adding up
    to S, squared distances of ordered pairs add up to ``2 n Q - 2 |S|^2``. Unlike in dial2vec's
    program, none pairs with itself.

    Returns ``"alignment"`` and ``"separation"``, the mean squared distances of same-label and
    different-label pairs in ``[0, 4]``, and ``"adjusted_alignment"``, the first minus the second.
    """
    given, codes = labelled_vectors(embeddings, labels, pairs=True)
    vectors = unit_vectors(given)
    sizes = np.bincount(codes)
    squares = np.einsum("nd,nd->n", vectors, vectors)
    sums = np.zeros((len(sizes), vectors.shape[1]))
    np.add.at(sums, codes, vectors)
    within = 2 * sizes @ np.bincount(codes, weights=squares) - 2 * np.einsum("kd,kd->", sums, sums)
    whole = sums.sum(axis=0)
    across = 2 * len(vectors) * squares.sum() - 2 * whole @ whole - within
    # Rounding can leave a sum of squares slightly below zero when all vectors of a label are equal.
    near = max(0.0, float(within)) / int((sizes * (sizes - 1)).sum())
    far = max(0.0, float(across)) / (len(vectors) ** 2 - int((sizes**2).sum()))
    return {"adjusted_alignment": near - far, "alignment": near, "separation": far}


def uniformity(embeddings: ArrayLike) -> float:
    """Compute ``log E exp(-2 |x - y|^2)`` over pairs of dialogues (equation 9), in ``[-8, 0]``.

    Takes finite vectors ``(N, D)``, N >= 2, and L2-normalises them. Memory is ``O(N)``.
    """
    vectors = unit_vectors(finite_vectors(embeddings))
    squares = np.einsum("nd,nd->n", vectors, vectors)
    total = 0.0
    for start in range(0, len(vectors), BLOCK):
        # A pair is needed once: a block meets only itself and what comes after it.
        stop = min(start + BLOCK, len(vectors))
        kernel = vectors[start:stop] @ vectors[start:].T
        kernel *= 2
        kernel -= squares[start:stop, None]
        kernel -= squares[None, start:]
        np.minimum(kernel, 0.0, out=kernel)
        kernel *= 2
        np.exp(kernel, out=kernel)
        np.fill_diagonal(kernel, 0.0)
        total += float(kernel[:, : stop - start].sum()) + 2 * float(kernel[:, stop - start :].sum())
    return float(np.log(total / (len(vectors) * (len(vectors) - 1))))
