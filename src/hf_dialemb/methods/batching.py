"""Many sequences through a model, those of like length together, so that padding stays small."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint
from tqdm.auto import tqdm
from transformers import PreTrainedModel

from .layout import Truncation

logger = logging.getLogger(__name__)

TOKENS = 16
"""Tokens that a row of a batch stands for.

A batch holds more shorter texts, or fewer longer ones.
"""

_BATCH_COST = 4  # a batch costs about this part of the most tokens of a batch, besides its own

LayOut = Callable[[list[int], Truncation], dict[str, Tensor]]
"""Makes a batch of some rows, and counts what was dropped."""


def batches(lengths: Sequence[int], most: int) -> list[np.ndarray]:
    """Divide rows into batches of at most ``most`` tokens with padding, the longest rows first.

    A longer row is a batch by itself. A much shorter row begins the next batch if padding costs
    more than a batch. Each batch is the numbers of its rows, (n,) int64.
    """
    counts = np.asarray(lengths, dtype=np.int64)
    order = np.argsort(-counts, kind="stable")
    falling = counts[order]
    parts = []
    start = 0
    while start < len(order):
        rows = falling[start : start + max(1, most // max(1, int(falling[start])))]
        # padding saved if the next batch begins at a row
        saved = (rows[0] - rows) * np.arange(len(rows), 0, -1)
        first = int(saved.argmax())
        parts.append(
            order[start : start + (first if saved[first] > most // _BATCH_COST else len(rows))]
        )
        start += len(parts[-1])
    return parts


def outputs(
    model: PreTrainedModel,
    lengths: Sequence[int],
    lay_out: LayOut,
    size: int,
    show_progress: bool | None,
    limits: str = "",
) -> Iterator[tuple[np.ndarray, Any, dict[str, Tensor]]]:
    """Run a model in evaluation mode, the longest rows first.

    Log a warning, ending in ``limits``, if some were cut.

    ``lengths`` are the tokens of the rows, estimated; a batch holds ``size`` rows of `TOKENS`
    tokens. If ``show_progress`` is None, only a terminal shows a bar, after three seconds. Yield
    the rows of a batch (n,), the model's output and its input.
    """
    count = Truncation()
    training = model.training
    model.train(False)
    parts = batches(lengths, size * tokens_of_row(model.device))
    shown: dict[str, Any] = {"disable": None, "delay": 3, "leave": False}
    if show_progress is not None:
        shown = {"disable": not show_progress}
    for rows in tqdm(parts, desc="encode", unit="batch", **shown):
        batch = lay_out(rows.tolist(), count)
        for name in batch:
            batch[name] = batch[name].to(model.device)
        with torch.inference_mode(), any_shape():
            output = model(**batch)
        yield rows, output, batch
    model.train(training)
    if count.truncated:
        logger.warning("%s%s.", count, limits)


def any_shape() -> AbstractContextManager[None]:
    """Return a context without cuDNN's attention.

    Its plan for every new shape takes longer than the batch.
    """
    return sdpa_kernel(
        [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
    )


def tokens_of_row(device: torch.device) -> int:
    """Return how many tokens a row of a batch stands for.

    A processor's cache is small; its matrix units (AMX) and accelerators want more at once.
    """
    if device.type != "cpu":
        return 32 * TOKENS
    if torch.is_autocast_enabled("cpu") and torch.cpu._is_amx_tile_supported():
        return 3 * TOKENS
    return TOKENS


def embeddings(
    model: PreTrainedModel,
    lengths: Sequence[int],
    lay_out: LayOut,
    size: int,
    show_progress: bool | None,
    limits: str = "",
) -> np.ndarray:
    """Embed N rows, (N, D) float32; see `outputs`."""
    vectors = np.zeros((len(lengths), model.config.hidden_size), dtype=np.float32)
    waiting: list[tuple[np.ndarray, Tensor]] = []
    for rows, output, _ in outputs(model, lengths, lay_out, size, show_progress, limits):
        for before, part in waiting:  # an accelerator reads this batch while the next is laid out
            vectors[before] = part.cpu().numpy()
        waiting = [(rows, output.pooler_output.float())]
    for rows, part in waiting:
        vectors[rows] = part.cpu().numpy()
    return vectors


def is_sharded(model: nn.Module) -> bool:
    """Return whether several processes hold parts of the model's weights (FSDP, ZeRO-3).

    All of them then have to run each layer equally often, as they gather its weights together.
    """
    if not (dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1):
        return False
    from torch.distributed.fsdp import FSDPModule, FullyShardedDataParallel

    wrapped = any(
        isinstance(part, FSDPModule | FullyShardedDataParallel) for part in model.modules()
    )
    return wrapped or any(hasattr(parameter, "ds_id") for parameter in model.parameters())


def in_parts(
    model: nn.Module,
    work: Callable[..., Any],
    mask: Tensor,
    size: int,
    *tensors: Tensor,
    again: bool = False,
) -> Any:
    """Call ``work(*tensors)`` on parts of like length; return its results in the rows' order.

    A part has ``size`` rows of `TOKENS` tokens, by the mask (N, L), padded on the right. Tensors
    have N rows; those of the mask's shape are cut to the longest row of a part. ``work`` returns a
    tensor, or several, of as many rows. With ``again`` the activations of a part, then of ``size``
    rows, are computed again in the backward pass (gradient caching), so that memory does not grow
    with N. If the model `is_sharded`, there are as many parts in all processes, and one unless
    ``again``.
    """
    lengths = mask.sum(-1)
    order = lengths.argsort(descending=True, stable=True)
    if again and torch.is_grad_enabled():
        work = partial(checkpoint, work, use_reentrant=False)
    results = []
    for rows in _parts(model, order, lengths, size, again):
        rows = rows if len(rows) else order[:1]  # not used, as it comes after all others
        length = max(1, int(lengths[rows[0]]))
        cut = (
            tensor[rows, :length] if tensor.shape == mask.shape else tensor[rows]
            for tensor in tensors
        )
        results.append(work(*cut))
    back = order.argsort()
    if isinstance(results[0], Tensor):
        return torch.cat(results)[back]
    return tuple(torch.cat(part)[back] for part in zip(*results, strict=True))


def _parts(
    model: nn.Module, order: Tensor, lengths: Tensor, size: int, again: bool
) -> Iterable[Tensor]:
    """Divide the rows, given from the longest to the shortest, into the parts of `in_parts`."""
    if not is_sharded(model):
        most = size * tokens_of_row(order.device)
        return (
            order.split(size) if again else map(torch.from_numpy, batches(lengths.tolist(), most))
        )
    count = torch.tensor(-(-len(order) // size) if again else 1, device=order.device)
    if again:
        dist.all_reduce(count, dist.ReduceOp.MAX)
    return order.tensor_split(int(count))
