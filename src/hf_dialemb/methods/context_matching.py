"""Matching-guided embeddings without the token by token matrices (DialogueCSE, section 4).

The paper multiplies every token u_i of a context turn with every token r_j of a candidate response. Only the mean over
the turn's tokens is used of the result, and

    1/n sum_i sum_j (u_i . r_j) r_j  =  sum_j (u . r_j) r_j,    u = 1/n sum_i u_i,

so the mean vector of the turn says all: time and memory are O(L D) for a candidate, and the result is exact. It is
linear in u too, so the mean over turns (equation 7) needs no more than the mean of their vectors.
"""

import torch
from torch import Tensor


def matching_guided(tokens: Tensor, mask: Tensor, turns: Tensor) -> Tensor:
    """Pools what context turns select from a candidate response (equations 3 and 4).

    Of candidates' tokens (N, L, D), their mask (N, L), and the mean token vectors of each one's context turns
    (N, C, D), makes refined embeddings, averaged over the turns' tokens, (N, C, D); zeros give zeros.
    """
    tokens = tokens * mask.unsqueeze(-1).to(tokens.dtype)
    scores = torch.bmm(turns, tokens.transpose(1, 2)) * tokens.shape[-1] ** -0.5  # (N, C, L)
    return torch.bmm(scores, tokens)


def mean_of_turns(turns: Tensor, present: Tensor) -> Tensor:
    """Averages the turns that are present (equation 7, before matching), (B, C, D) to (B, 1, D); zeros without any."""
    weights = present.to(turns.dtype).unsqueeze(1)  # (B, 1, C)
    return torch.bmm(weights, turns) / weights.sum(-1, keepdim=True).clamp(min=1)


def turn_weights(scores: Tensor, present: Tensor) -> Tensor:
    """Normalises scores (..., C) to sum to 1 over the turns that are present (equation 6); all alike without any."""
    return torch.softmax(scores.masked_fill(~present, torch.finfo(scores.dtype).min), dim=-1)
