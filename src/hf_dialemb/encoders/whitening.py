"""Whitening.

A linear map that makes embeddings uncorrelated and of one variance (Su et al., 2021,
arXiv:2103.15316).

DialogueCSE compares itself with it (section 5.2.1). With the mean m and the covariance U S U^T of a
corpus' embeddings, an embedding x becomes (x - m) U S^(-1/2). Appended to a sentence-transformers
model it is a linear layer.
"""

import logging
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

logger = logging.getLogger(__name__)

_SMALLEST = 1e-10  # of the largest variance; what lies below is rounding


def fit_whitening(
    vectors: NDArray[Any], dimensions: int | None = None, *, only_varying: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Fit the mean (D,) and the matrix (D, dimensions) that bring the covariance of embeddings (N,
    D) to the identity.

    The directions of the greatest variance stay, by default all D. With ``only_varying``,
    directions without variance go, down to one; otherwise they are refused.
    """
    vectors = np.asarray(vectors, dtype=np.float64)
    kept = vectors.shape[1] if dimensions is None else dimensions
    if not 1 <= kept <= vectors.shape[1]:
        raise InputError(
            f"dimensions: got {kept}, expected 1 to {vectors.shape[1]}, the width of the embeddings"
        )
    mean = vectors.mean(axis=0)
    directions, variances, _ = np.linalg.svd(
        (vectors - mean).T @ (vectors - mean) / len(vectors), hermitian=True
    )
    varying = int((variances > _SMALLEST * variances[0]).sum())
    if only_varying:
        kept = min(kept, max(varying, 1))
    if kept > varying:
        raise InputError(
            f"dimensions: got {kept}, but {len(vectors)} embeddings vary in {varying} directions; "
            "give more texts, or "
            f"at most {varying} dimensions"
        )
    return mean, directions[:, :kept] / np.sqrt(variances[:kept])


def apply_whitening(
    vectors: NDArray[Any], mean: NDArray[np.float64], matrix: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Whiten embeddings (N, D) by the mean and matrix of `fit_whitening`; return (N, K) float32."""
    return ((np.asarray(vectors, dtype=np.float64) - mean) @ matrix).astype(np.float32)


def whitened(vectors: NDArray[np.float32], name: str) -> NDArray[np.float32]:
    """Whiten vectors (N, D) of an encoder by themselves, (N, K) for the K directions in which they
    vary.

    N vectors vary in N - 1 directions at most. With no more, all become equally far from each
    other, and a warning says so.
    """
    try:
        mean, matrix = fit_whitening(vectors, only_varying=True)
    except InputError:
        raise InputError(
            f"model '{name}': got vectors that are all the same, expected some to whiten; give "
            "more dialogues"
        ) from None
    if matrix.shape[1] == len(vectors) - 1:
        few = (
            "model '%s': %d vectors are too few to whiten, all become equally far from each "
            "other; give more"
        )
        logger.warning(few, name, len(vectors))
    return apply_whitening(vectors, mean, matrix)


def add_whitening(model: Any, mean: NDArray[np.float64], matrix: NDArray[np.float64]) -> None:
    """Append the whitening of `fit_whitening` to a ``SentenceTransformer``, in place, as a linear
    layer.
    """
    import torch
    from sentence_transformers.sentence_transformer.modules import Dense

    layer = Dense(matrix.shape[0], matrix.shape[1], activation_function=torch.nn.Identity())
    with torch.no_grad():
        layer.linear.weight.copy_(torch.from_numpy(matrix.T))
        layer.linear.bias.copy_(torch.from_numpy(-mean @ matrix))
    model.append(layer.to(model.device))
