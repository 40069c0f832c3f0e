"""Many sequences through a model a part at a time, those of like length together, so that padding stays small."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from tqdm.auto import tqdm


def batches_by_length(
    lengths: Sequence[int], size: int, doing: str = "encode", show_progress: bool = False
) -> Iterator[np.ndarray]:
    """Yields the rows of each batch, (n,) int64, the longest first; of equally long ones the earlier first."""
    order = np.argsort(-np.asarray(lengths, dtype=np.int64), kind="stable")
    for start in tqdm(range(0, len(order), size), desc=doing, unit="batch", disable=not show_progress):
        yield order[start : start + size]


def in_parts(work: Callable[..., Any], mask: Tensor, size: int, *tensors: Tensor, again: bool = False) -> Any:  # noqa: ANN401
    """Calls ``work(*tensors)`` on parts of like length, and puts what it returns back into the rows' order.

    Args:
        work: Takes rows of ``tensors``; returns a tensor, or several, whose first dimension is theirs.
        mask: 1 for real tokens, (N, L), padded on the right.
        size: Rows of a part.
        *tensors: Of N rows; those of the mask's shape are cut to the longest of a part.
        again: Whether activations are dropped and computed again in the backward pass (gradient caching), so that
            memory does not grow with N.

    Returns:
        What ``work`` returns, for all rows.
    """
    lengths = mask.sum(-1)
    order = lengths.argsort(descending=True, stable=True)
    parts = []
    for rows in order.split(size):
        length = max(1, int(lengths[rows[0]]))
        part = [tensor[rows, :length] if tensor.shape == mask.shape else tensor[rows] for tensor in tensors]
        kept = again and torch.is_grad_enabled()
        parts.append(checkpoint(work, *part, use_reentrant=False) if kept else work(*part))
    back = order.argsort()
    if isinstance(parts[0], Tensor):
        return torch.cat(parts)[back]
    return tuple(torch.cat(part)[back] for part in zip(*parts, strict=True))
