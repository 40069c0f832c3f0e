"""Many sequences through a model a part at a time, those of like length together, so that padding stays small."""

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from tqdm.auto import tqdm
from transformers import PreTrainedModel

from .layout import Truncation

logger = logging.getLogger(__name__)

LayOut = Callable[[list[int], Truncation], dict[str, Tensor]]
"""Makes a batch of some rows, and counts what was dropped."""


def outputs(
    model: PreTrainedModel, lengths: Sequence[int], lay_out: LayOut, size: int, show_progress: bool, limits: str = ""
) -> Iterator[tuple[np.ndarray, Any, dict[str, Tensor]]]:
    """Runs a model in evaluation mode, so many rows at once, the longest first; warns of what was cut, by ``limits``.

    Yields:
        Which rows went through it together (n,), what came out, and what went in.
    """
    order = np.argsort(-np.asarray(lengths, dtype=np.int64), kind="stable")
    count, training = Truncation(), model.training
    model.train(False)
    for start in tqdm(range(0, len(order), size), desc="encode", unit="batch", disable=not show_progress):
        rows = order[start : start + size]
        batch = {name: value.to(model.device) for name, value in lay_out(rows.tolist(), count).items()}
        with torch.inference_mode():
            output = model(**batch)
        yield rows, output, batch
    model.train(training)
    if count.truncated:
        logger.warning("%s%s.", count, limits)


def embeddings(
    model: PreTrainedModel,
    lengths: Sequence[int],
    lay_out: LayOut,
    size: int,
    show_progress: bool = False,
    limits: str = "",
) -> np.ndarray:
    """Embeds N rows, (N, D) float32; see `outputs`."""
    result = np.zeros((len(lengths), model.config.hidden_size), dtype=np.float32)
    for rows, output, _ in outputs(model, lengths, lay_out, size, show_progress, limits):
        result[rows] = output.pooler_output.float().cpu().numpy()
    return result


def in_parts(work: Callable[..., Any], mask: Tensor, size: int, *tensors: Tensor, again: bool = False) -> Any:  # noqa: ANN401
    """Calls ``work(*tensors)`` on parts of like length, and puts what it returns back into the rows' order.

    It takes ``size`` rows of the tensors, and returns a tensor, or several, of as many. The mask (N, L), padded on the
    right, is 1 for real tokens; tensors of its shape are cut to the longest of a part. With ``again`` activations are
    dropped and computed again in the backward pass (gradient caching), so that memory does not grow with N.
    """
    lengths = mask.sum(-1)
    order = lengths.argsort(descending=True, stable=True)
    if again and torch.is_grad_enabled():
        work = partial(checkpoint, work, use_reentrant=False)
    parts = []
    for rows in order.split(size):
        length = max(1, int(lengths[rows[0]]))
        parts.append(work(*(each[rows, :length] if each.shape == mask.shape else each[rows] for each in tensors)))
    back = order.argsort()
    if isinstance(parts[0], Tensor):
        return torch.cat(parts)[back]
    return tuple(torch.cat(part)[back] for part in zip(*parts, strict=True))
