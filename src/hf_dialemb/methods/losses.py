"""Contrastive losses: tensors in, a scalar out; no model, tokenizer or state.

Everything is computed in float32, or in float64 for inputs of float64. Letters of shapes: A anchors, C candidates.
"""

from typing import Literal

import torch
from torch import Tensor

NegativeWeights = Literal["hard", "printed", "plain"]


def nt_xent(similarities: Tensor, present: Tensor, temperature: float, divide_by_samples: bool = False) -> Tensor:
    """Normalised temperature-scaled cross entropy of an intact dialogue among corrupted ones (equations 5 and 6).

    It is the sum over speakers, averaged over dialogues: log N per speaker when nothing is learnt. The cosines of each
    sample's self- and cross-representation are (B, N, R), sample 0 is the intact one; which speakers that has, (B, R)
    bool, as absent ones do not count. The released program divides by the samples: the loss divided by N.
    """
    negative_log = -torch.log_softmax(precise(similarities) / temperature, dim=1)[:, 0]  # (B, R)
    loss = (negative_log * present).sum(dim=1).mean()
    return loss / similarities.shape[1] if divide_by_samples else loss


def pair_contrastive(
    similarities: Tensor,
    own: Tensor,
    positive: Tensor,
    temperature: float,
    weights: NegativeWeights = "hard",
    weight_gradient: bool = True,
) -> Tensor:
    """Contrastive loss of pairs, negatives weighted by how near they are (DSE, section 3.2).

    With e_ij = exp(s_ij / t) and the weight a_ij = e_ij / mean over i's negatives k of e_ik (equation 2), anchor i with
    positive p costs -log e_ip / (e_ip + N_i), where

    - ``"hard"``: N_i = sum over negatives of a_ij e_ij, as the released program computes it;
    - ``"printed"``: e_ip + N_i becomes the sum over all j but i of exp(a_ij s_ij / t), as equation 1 is printed;
    - ``"plain"``: N_i = sum over negatives of e_ij, which is NT-Xent.

    The similarities are cosines of anchors and candidates, (A, C). Of the candidates ``own`` (A,) int64 is each anchor
    itself, which does not count, and ``positive`` (A,) int64 its positive; all others are negatives. DSE's t is 0.05,
    and its program differentiates a_ij too (``weight_gradient``). Returns the mean over anchors; 0 without negatives.
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
    if not weight_gradient:
        log_weights = log_weights.detach()
    if weights == "printed":
        scaled = (log_weights.exp() * logits).masked_fill(excluded, -torch.inf)
        return (torch.logsumexp(scaled, -1) - true).mean()
    if weights == "hard":
        negatives = (logits + log_weights).masked_fill(~is_negative, -torch.inf)
    return (torch.logaddexp(torch.logsumexp(negatives, -1), true) - true).mean()


def target_contrastive(similarities: Tensor, targets: Tensor, temperature: float) -> Tensor:
    """Cross entropy between what the similarities say and what they should (Dialog2Flow, equations 1, 2 and 5).

    Takes cosines of anchors and candidates, (A, C), and how much each candidate is a positive of each anchor, (A, C),
    rows that sum to 1; the temperature divides the cosines (Dialog2Flow: 0.05).
    """
    return -(targets * torch.log_softmax(precise(similarities) / temperature, dim=-1)).sum(-1).mean()


def soft_targets(label_similarities: Tensor, shared: Tensor, temperature: float) -> Tensor:
    """Targets that grow with the likeness of labels (Dialog2Flow, equation 4), (A, C); rows sum to 1.

    Takes cosines of the anchors' and the candidates' labels, (A, C), and where a candidate carries the anchor's label,
    (A, C) bool: its likeness is 1, whatever other label it was drawn for. The temperature divides the likeness
    (Dialog2Flow: 0.35); towards 0 the targets become `hard_targets`.
    """
    likeness = precise(label_similarities).masked_fill(shared, 1.0)
    return torch.softmax(likeness / temperature, dim=-1)


def hard_targets(shared: Tensor, like: Tensor) -> Tensor:
    """Targets of supervised contrastive learning: all candidates of the anchor's label alike (equation 1).

    ``shared`` (A, C) says which candidates carry the anchor's label, at least one; ``like`` has the wanted precision.
    Rows of the result (A, C) sum to 1.
    """
    counts = shared.sum(-1, keepdim=True)
    return shared.to(precise(like).dtype) / counts


def precise(tensor: Tensor) -> Tensor:
    """Returns a tensor in float32, or as it is in float64."""
    return tensor if tensor.dtype == torch.float64 else tensor.float()
