"""Whitening: a linear map that makes embeddings uncorrelated and of one variance (Su et al., 2021, arXiv:2103.15316).

DialogueCSE compares itself with it (section 5.2.1). With the mean m and the covariance U S U^T of a corpus' embeddings,
an embedding x becomes (x - m) U S^(-1/2). As a linear layer it follows a sentence-transformers model like any other of
its modules, so what is saved needs no code of this package.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..dialogue import Dialogue
from ..errors import InputError

logger = logging.getLogger(__name__)

_SMALLEST = 1e-10  # of the largest variance; what lies below is rounding


def fit_whitening(
    vectors: NDArray[Any], dimensions: int | None = None, *, only_varying: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Finds what makes the covariance of embeddings (N, D) the identity: a mean (D,) and a matrix (D, dimensions).

    So many directions of the greatest variance are kept, 1 to D, by default all. Where the vectors vary in fewer, these
    are kept, at least one, if ``only_varying``; else it is refused.
    """
    vectors = np.asarray(vectors, dtype=np.float64)
    kept = vectors.shape[1] if dimensions is None else dimensions
    if not 1 <= kept <= vectors.shape[1]:
        raise InputError(f"dimensions: got {kept}, expected 1 to {vectors.shape[1]}, the width of the embeddings")
    mean = vectors.mean(axis=0)
    directions, variances, _ = np.linalg.svd((vectors - mean).T @ (vectors - mean) / len(vectors), hermitian=True)
    varying = int((variances > _SMALLEST * variances[0]).sum())
    if only_varying:
        kept = min(kept, max(varying, 1))
    if kept > varying:
        raise InputError(
            f"dimensions: got {kept}, but {len(vectors)} embeddings vary in {varying} directions; give more texts, or "
            f"at most {varying} dimensions"
        )
    return mean, directions[:, :kept] / np.sqrt(variances[:kept])


def apply_whitening(
    vectors: NDArray[Any], mean: NDArray[np.float64], matrix: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Whitens embeddings (N, D) by what `fit_whitening` found; returns (N, K) float32."""
    return ((np.asarray(vectors, dtype=np.float64) - mean) @ matrix).astype(np.float32)


@dataclass(frozen=True)
class InputWhitenedEncoder:
    """An encoder whose vectors are whitened by what they themselves are, so that those of two calls do not compare."""

    encoder: Any  # an Encoder, perhaps of utterances too
    name: str

    fitted_on_input: ClassVar[bool] = True

    def encode(self, dialogues: Sequence[Dialogue]) -> NDArray[np.float32]:
        """Returns one whitened vector per dialogue, (N, K) float32; K are the directions that the vectors vary in."""
        return self.whiten(self.encoder.encode(dialogues))

    def encode_utterances(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Returns one whitened vector per text, (N, K) float32."""
        return self.whiten(self.encoder.encode_utterances(texts))

    def whiten(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Fits on vectors of the encoder and whitens them, (N, D) to (N, K).

        N vectors vary in N - 1 directions at most; a warning says when there are no more, as then all become equally
        far from each other.
        """
        try:
            mean, matrix = fit_whitening(vectors, only_varying=True)
        except InputError:
            raise InputError(
                f"model '{self.name}': got vectors that are all the same, expected some to whiten; give more dialogues"
            ) from None
        if matrix.shape[1] == len(vectors) - 1:
            few = "model '%s': %d vectors are too few to whiten, all become equally far from each other; give more"
            logger.warning(few, self.name, len(vectors))
        return apply_whitening(vectors, mean, matrix)


def add_whitening(model: Any, mean: NDArray[np.float64], matrix: NDArray[np.float64]) -> None:  # noqa: ANN401
    """Appends what `fit_whitening` found to a ``SentenceTransformer``, in place, as a linear layer."""
    import torch
    from sentence_transformers.sentence_transformer.modules import Dense

    layer = Dense(matrix.shape[0], matrix.shape[1], activation_function=torch.nn.Identity())
    with torch.no_grad():
        layer.linear.weight.copy_(torch.from_numpy(matrix.T))
        layer.linear.bias.copy_(torch.from_numpy(-mean @ matrix))
    model.append(layer.to(model.device))
