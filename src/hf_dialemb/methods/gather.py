"""Rows of all processes, with gradient: every process contrasts its anchors with everybody's candidates."""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


class _GatherRows(torch.autograd.Function):
    """All-gather whose backward pass gives each process the sum of all processes' gradients for its own rows."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:  # noqa: ANN401 - autograd's own context
        ctx.count = len(rows)
        gathered = [torch.empty_like(rows) for _ in range(dist.get_world_size())]
        dist.all_gather(gathered, rows.contiguous())
        return torch.cat(gathered)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:  # noqa: ANN401
        gradient = gradients[0].contiguous()
        dist.all_reduce(gradient)
        start = dist.get_rank() * int(ctx.count)
        return gradient[start : start + ctx.count]


def gather_rows(rows: Tensor, enabled: bool = True) -> tuple[Tensor, int]:
    """Concatenates the rows (n, ...) of all W processes to (W * n, ...); returns the place of the own first row too.

    With a loss that is the mean over a process's own anchors, and gradients averaged over processes as DDP and FSDP
    do, a run on W processes has the gradients of one process with all W batches. Without ``enabled``, as in evaluation,
    where processes do not run in step, the rows are given back.
    """
    if not (enabled and dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1):
        return rows, 0
    gathered = _GatherRows.apply(rows)  # type: ignore[no-untyped-call]
    return gathered, dist.get_rank() * len(rows)
