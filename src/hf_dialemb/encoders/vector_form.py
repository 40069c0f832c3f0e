"""The form of vectors that leave an encoder: their width, length, numbers and container."""

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..metrics.vectors import unit
from ..ranges import check_range

Precision = Literal["float32", "int8", "uint8", "binary", "ubinary"]
"""Types of numbers, by sentence-transformers' names."""


def check_precision(precision: str) -> None:
    """Raise InputError for an unknown type of numbers."""
    if precision not in get_args(Precision):
        raise InputError(
            f"precision: got {precision!r}, expected one of {', '.join(get_args(Precision))}"
        )


def formed(
    vectors: NDArray[np.float32],
    width: int | None,
    normalize: bool,
    precision: Precision,
    as_numpy: bool,
    as_tensor: bool,
) -> Any:
    """Cut vectors (N, D) to their first numbers, scale them to length 1, and give them a form."""
    check_range("truncate_dim", width, 1, vectors.shape[1])
    vectors = vectors[:, :width]
    if normalize:
        vectors = unit(vectors)
    if precision != "float32":
        from sentence_transformers.util import quantize_embeddings

        vectors = quantize_embeddings(vectors, precision)  # type: ignore[assignment]
    if as_numpy and not as_tensor:
        return vectors
    from torch import from_numpy

    tensor = from_numpy(vectors)
    return tensor if as_tensor else list(tensor)
