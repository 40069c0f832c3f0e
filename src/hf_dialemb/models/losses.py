"""Contrastive losses: tensors in, a scalar out; no model, tokenizer or state."""

from __future__ import annotations

import torch
from torch import Tensor


def nt_xent(similarities: Tensor, present: Tensor, temperature: float, divide_by_samples: bool = False) -> Tensor:
    """Normalised temperature-scaled cross entropy of an intact dialogue among corrupted ones (equations 5 and 6).

    Args:
        similarities: Cosines of each sample's self- and cross-representation, (B, N, R); sample 0 is the intact
            dialogue.
        present: Which speakers the intact dialogue has, (B, R) bool; absent ones do not count.
        temperature: Divides the cosines; above 0.
        divide_by_samples: The released program's scale: the loss divided by N.

    Returns:
        The sum over speakers, averaged over dialogues; a float32 (or float64) scalar, log N per speaker when nothing
        is learnt.
    """
    logits = similarities.double() if similarities.dtype == torch.float64 else similarities.float()
    negative_log = -torch.log_softmax(logits / temperature, dim=1)[:, 0]  # (B, R)
    loss = (negative_log * present).sum(dim=1).mean()
    return loss / similarities.shape[1] if divide_by_samples else loss
