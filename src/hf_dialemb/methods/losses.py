"""Contrastive losses: tensors in, a scalar out; no model, tokenizer or state.

Everything is computed in float32, or in float64 for float64 inputs. Letters of shapes: A anchors, C
candidates.
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def nt_xent(
    similarities: Tensor, present: Tensor, temperature: float, divide_by_samples: bool = False
) -> Tensor:
    """Compute dial2vec's loss: an intact dialogue among corrupted ones (equations 5 and 6).

    The loss is summed over speakers and averaged over dialogues: log N per speaker if nothing is
    learnt.

    The similarities (B, N, R) are cosines of each sample's self- and cross-representation; sample 0
    is the intact one. Absent speakers of it, by ``present`` (B, R) bool, do not count. The released
    program divides the loss by N.
    """
    negative_log = -torch.log_softmax(precise(similarities) / temperature, dim=1)[:, 0]  # (B, R)
    loss = (negative_log * present).sum(dim=1).mean()
    return loss / similarities.shape[1] if divide_by_samples else loss


def pair_contrastive(
    similarities: Tensor, own: Tensor, positive: Tensor, temperature: float, weights: str = "hard"
) -> Tensor:
    """Contrast pairs, with negatives weighted by their nearness (DSE, section 3.2).

    With e_ij = exp(s_ij / t) and the weight a_ij = e_ij / mean over i's negatives k of e_ik
    (equation 2), anchor i with positive p costs -log e_ip / (e_ip + N_i), where

    - ``"hard"``: N_i = sum over negatives of a_ij e_ij, as the released program computes it;
    - ``"printed"``: e_ip + N_i becomes the sum over all j but i of exp(a_ij s_ij / t), as equation
      1 is printed;
    - ``"plain"``: N_i = sum over negatives of e_ij, which is NT-Xent.

    Return the mean over anchors, 0 without negatives. The weight a_ij is differentiated, as in the
    released program.

    Args:
        similarities: Cosines of anchors and candidates, (A, C).
        own: The candidate that is the anchor itself and does not count, (A,) int64.
        positive: The positive of each anchor, (A,) int64; all other candidates are negatives.
        temperature: Divides the cosines (DSE: 0.05).
        weights: The kind of weight.
    """
    logits = precise(similarities) / temperature
    rows = torch.arange(len(logits), device=logits.device)
    excluded = torch.zeros_like(logits, dtype=torch.bool)
    excluded[rows, own] = True
    true = logits[rows, positive]  # (A,)
    is_negative = ~excluded
    is_negative[rows, positive] = False
    count = is_negative.sum(-1, keepdim=True).to(logits.dtype)
    if bool(count.min() == 0):
        return true.sum() * 0
    negatives = logits.masked_fill(~is_negative, -torch.inf)
    log_weights = logits - (torch.logsumexp(negatives, -1, keepdim=True) - count.log())  # log a_ij
    if weights == "printed":
        scaled = (log_weights.exp() * logits).masked_fill(excluded, -torch.inf)
        return (torch.logsumexp(scaled, -1) - true).mean()
    if weights == "hard":
        negatives = (logits + log_weights).masked_fill(~is_negative, -torch.inf)
    return (torch.logaddexp(torch.logsumexp(negatives, -1), true) - true).mean()


def target_contrastive(similarities: Tensor, targets: Tensor, temperature: float) -> Tensor:
    """Compute the cross entropy of similarities and targets, both (A, C).

    Dialog2Flow, equations 1, 2 and 5.

    The rows of the targets sum to 1. The temperature divides the cosines.
    """
    return (
        -(targets * torch.log_softmax(precise(similarities) / temperature, dim=-1)).sum(-1).mean()
    )


def soft_targets(label_similarities: Tensor, shared: Tensor, temperature: float) -> Tensor:
    """Return targets (A, C) that grow with the likeness of labels.

    Rows sum to 1 (Dialog2Flow, equation 4).

    ``label_similarities`` (A, C) are cosines of labels; ``shared`` (A, C) says which candidates
    carry the anchor's label, whose likeness is 1. Towards temperature 0 the targets become
    `hard_targets`.
    """
    likeness = precise(label_similarities).masked_fill(shared, 1.0)
    return torch.softmax(likeness / temperature, dim=-1)


def hard_targets(shared: Tensor, like: Tensor) -> Tensor:
    """Return equal targets (A, C) for all candidates of the anchor's label.

    Rows sum to 1 (equation 1).

    ``shared`` (A, C) says which candidates carry the anchor's label, at least one; ``like`` has the
    wanted precision.
    """
    return shared.to(precise(like).dtype) / shared.sum(-1, keepdim=True)


def precise(tensor: Tensor) -> Tensor:
    """Return a tensor in float32, or unchanged in float64."""
    return tensor if tensor.dtype == torch.float64 else tensor.float()


class _GatherRows(torch.autograd.Function):
    """All-gather whose backward pass sums all processes' gradients for the own rows."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        ctx.count = len(rows)
        gathered = [torch.empty_like(rows) for _ in range(dist.get_world_size())]
        dist.all_gather(gathered, rows.contiguous())
        return torch.cat(gathered)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        gradient = gradients[0].contiguous()
        dist.all_reduce(gradient)
        start = dist.get_rank() * int(ctx.count)
        return gradient[start : start + ctx.count]


def gather_rows(rows: Tensor, enabled: bool = True) -> tuple[Tensor, int]:
    """Concatenate the rows (n, ...) of all W processes, with gradient, to (W n, ...).

    Return the rows, and the place of this process's first row. A loss that is the mean over a
    process's own anchors then has, on W processes, the gradients of one process with all batches.
    Evaluation disables it, as processes do not run in step.
    """
    if not (
        enabled and dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
    ):
        return rows, 0
    gathered = _GatherRows.apply(rows)  # type: ignore[no-untyped-call]
    return gathered, dist.get_rank() * len(rows)
