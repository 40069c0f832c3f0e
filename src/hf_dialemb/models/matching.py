"""Self- and cross-representations of a dialogue's speakers, without the n x n matrices (dial2vec, equations 1 to 3).

The paper multiplies every token of one speaker with every token of the other. Only the pooled products enter the loss,
and

    sum_i sum_j G_ij (h_i . h_j) h_j  =  sum_j (h_j . s_j) h_j,    s_j = sum_i G_ij h_i,

where ``G_ij`` is 1 when tokens i and j lie at most ``window`` turns apart. ``s_j`` is the same for all tokens of a
turn: one scatter-add per turn, one banded sum over turns, one gather. Time and memory are O(L D), and the result is
exact.
"""

import torch
from torch import Tensor


def speaker_representations(
    hidden: Tensor, mask: Tensor, role_ids: Tensor, turn_ids: Tensor, num_roles: int, window: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Pools what each speaker says, and what the others' words select from it.

    With more than two speakers each one stands against all the others (one versus rest, section 3).

    Takes token vectors (B, L, D), their mask (B, L), and of each token the speaker in [0, R) and the turn from 0, both
    (B, L) int64. Tokens more than ``window`` turns apart do not meet.

    Returns:
        The mean vector of each speaker's own tokens, (B, R, D); its cross-representation, (B, R, D), defined up to a
        positive factor (only its direction enters the loss); which speakers have a token, (B, R) bool. Absent speakers
        get zeros.
    """
    batch, length, dim = hidden.shape
    turns = int(turn_ids.max()) + 1
    vectors = hidden * mask.unsqueeze(-1).to(hidden.dtype)  # (B, L, D)
    offset = torch.arange(batch, device=hidden.device).unsqueeze(1) * (num_roles * turns)
    cells = (offset + role_ids * turns + turn_ids).reshape(-1)  # (B * L,) the (dialogue, role, turn) of each token
    sums = hidden.new_zeros(batch * num_roles * turns, dim).index_add(0, cells, vectors.reshape(-1, dim))
    sums = sums.view(batch, num_roles, turns, dim)

    # A product with zeros and ones, not "total minus own": a dialogue of one speaker must give exact zeros.
    others = 1 - torch.eye(num_roles, dtype=hidden.dtype, device=hidden.device)
    rest = torch.einsum("rs,bstd->brtd", others, sums)
    prefix = torch.nn.functional.pad(rest.cumsum(dim=2), (0, 0, 1, 0))  # (B, R, T + 1, D)
    turn = torch.arange(turns, device=hidden.device)
    nearby = prefix[:, :, (turn + window + 1).clamp(max=turns)] - prefix[:, :, (turn - window).clamp(min=0)]

    partner = nearby.reshape(-1, dim).index_select(0, cells).view(batch, length, dim)
    scores = (vectors * partner).sum(-1)  # (B, L) each token's affinity to what the others say around it
    roles = torch.nn.functional.one_hot(role_ids, num_roles).transpose(1, 2).to(hidden.dtype)  # (B, R, L)
    cross = torch.bmm(roles * scores.unsqueeze(1), vectors)
    counts = (roles * mask.unsqueeze(1).to(hidden.dtype)).sum(-1)  # (B, R)
    own = sums.sum(2) / counts.clamp(min=1).unsqueeze(-1)
    return own, cross, counts > 0
