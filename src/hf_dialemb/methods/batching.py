"""Many sequences through a model a part at a time, those of like length together, so that padding stays small."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint
from tqdm.auto import tqdm
from transformers import PreTrainedModel

from .layout import Truncation

logger = logging.getLogger(__name__)

TOKENS = 16
"""How many a row of a batch stands for: of shorter texts more go through a model at once, of longer ones fewer."""

_BATCH_COST = 4  # a batch takes about as long as this part of the most tokens of one, besides its own

LayOut = Callable[[list[int], Truncation], dict[str, Tensor]]
"""Makes a batch of some rows, and counts what was dropped."""


def batches(lengths: Sequence[int], most: int) -> list[np.ndarray]:
    """Parts rows of so many tokens into batches, the longest first, each of at most ``most`` tokens with its padding.

    A row that is longer is a batch by itself; one that is much shorter begins the next, where padding would cost more
    than another batch. What comes out says which rows are in each, (n,) int64.
    """
    counts = np.asarray(lengths, dtype=np.int64)
    order = np.argsort(-counts, kind="stable")
    falling = counts[order]
    found, start = [], 0
    while start < len(order):
        rows = falling[start : start + max(1, most // max(1, int(falling[start])))]
        saved = (rows[0] - rows) * np.arange(len(rows), 0, -1)  # padding, if the next batch begins at each
        first = int(saved.argmax())
        found.append(order[start : start + (first if saved[first] > most // _BATCH_COST else len(rows))])
        start += len(found[-1])
    return found


def outputs(
    model: PreTrainedModel, lengths: Sequence[int], lay_out: LayOut, size: int, show_progress: bool, limits: str = ""
) -> Iterator[tuple[np.ndarray, Any, dict[str, Tensor]]]:
    """Runs a model in evaluation mode, the longest rows first; warns of what was cut, by ``limits``.

    The lengths are in tokens, or about. As many tokens go through at once as ``size`` rows of `TOKENS` hold.

    Yields:
        Which rows went through it together (n,), what came out, and what went in.
    """
    count, training = Truncation(), model.training
    model.train(False)
    parts = batches(lengths, size * tokens_of_row(model.device))
    # Otherwise a terminal shows what takes longer than seconds, and nothing else does.
    shown = {"disable": False} if show_progress else {"disable": None, "delay": 3, "leave": False}
    for rows in tqdm(parts, desc="encode", unit="batch", **shown):
        batch = {name: value.to(model.device) for name, value in lay_out(rows.tolist(), count).items()}
        with torch.inference_mode(), any_shape():
            output = model(**batch)
        yield rows, output, batch
    model.train(training)
    if count.truncated:
        logger.warning("%s%s.", count, limits)


def any_shape() -> AbstractContextManager[None]:
    """Leaves out cuDNN's attention, which makes a plan for every new shape, and that takes longer than the batch."""
    return sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH])


def tokens_of_row(device: torch.device) -> int:
    """Says how many tokens a row of a batch stands for.

    A processor's cache is small; its matrix units (AMX), and an accelerator, want more at once.
    """
    if device.type != "cpu":
        return 32 * TOKENS
    return (3 if torch.is_autocast_enabled("cpu") and torch.cpu._is_amx_tile_supported() else 1) * TOKENS


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
    found: list[tuple[np.ndarray, Tensor]] = []
    for rows, output, _ in outputs(model, lengths, lay_out, size, show_progress, limits):
        for before, vectors in found:  # an accelerator reads this batch while the next is laid out
            result[before] = vectors.cpu().numpy()
        found = [(rows, output.pooler_output.float())]
    for rows, vectors in found:
        result[rows] = vectors.cpu().numpy()
    return result


def in_parts(work: Callable[..., Any], mask: Tensor, size: int, *tensors: Tensor, again: bool = False) -> Any:  # noqa: ANN401
    """Calls ``work(*tensors)`` on parts of like length, and puts what it returns back into the rows' order.

    It takes rows of as many tokens as ``size`` rows of `TOKENS` have, and returns a tensor, or several, of as many
    rows. The mask (N, L), padded on the right, is 1 for real tokens; tensors of its shape are cut to the longest of a
    part. With ``again`` a part is of ``size`` rows, whose activations are dropped and computed again in the backward
    pass (gradient caching), so that memory does not grow with N.
    """
    lengths = mask.sum(-1)
    order = lengths.argsort(descending=True, stable=True)
    if again and torch.is_grad_enabled():
        work = partial(checkpoint, work, use_reentrant=False)
    parts = []
    most = size * tokens_of_row(mask.device)
    for rows in order.split(size) if again else map(torch.from_numpy, batches(lengths.tolist(), most)):
        length = max(1, int(lengths[rows[0]]))
        parts.append(work(*(each[rows, :length] if each.shape == mask.shape else each[rows] for each in tensors)))
    back = order.argsort()
    if isinstance(parts[0], Tensor):
        return torch.cat(parts)[back]
    return tuple(torch.cat(part)[back] for part in zip(*parts, strict=True))
