"""The interaction as the paper writes it (equations 1 to 3): n x n matrices, one dialogue and one speaker at a time."""

from __future__ import annotations

import torch
from torch import Tensor


def reference_representations(
    hidden: Tensor, mask: Tensor, role_ids: Tensor, turn_ids: Tensor, num_roles: int, window: int
) -> tuple[Tensor, Tensor]:
    own = torch.zeros(hidden.shape[0], num_roles, hidden.shape[2], dtype=hidden.dtype)
    cross = torch.zeros_like(own)
    for b in range(hidden.shape[0]):
        near = (turn_ids[b][:, None] - turn_ids[b][None, :]).abs() <= window
        for role in range(num_roles):
            a = ((role_ids[b] == role) & mask[b].bool()).to(hidden.dtype)
            rest = ((role_ids[b] != role) & mask[b].bool()).to(hidden.dtype)
            ea, eb = hidden[b] * a[:, None], hidden[b] * rest[:, None]  # (L, D)
            w = (ea @ eb.T) * near  # (L, L) rows: own tokens, columns: the others' tokens
            own[b, role] = ea.sum(0) / a.sum().clamp(min=1)
            cross[b, role] = (w.T @ ea).sum(0)  # the sum over the others' positions; the mean differs by a factor
    return own, cross
