"""Rendered dialogues, as chat templates write them: who says what by markers, and cut as dialogues themselves are.

All of it works on tensors alone: published models need it without their tokenizer, and exported graphs hold it.
Letters of shapes: B dialogues, L tokens.
"""

import torch
from torch import Tensor


def read_markers(input_ids: Tensor, mask: Tensor, markers: list[int]) -> tuple[Tensor, Tensor, Tensor]:
    """Derives role and turn ids from the markers, whose token ids are in the order of the roles; all is (B, L) int64.

    Returns:
        Which tokens are no markers and no padding; role ids; turn ids from 0. Tokens before the first marker belong to
        the first turn; without any marker everything is turn 0 of role 0.
    """
    table = torch.tensor(markers, device=input_ids.device)
    is_marker = (input_ids.unsqueeze(-1) == table).any(-1) & mask.bool()
    kept = (mask.bool() & ~is_marker).long()
    turns = (is_marker.long().cumsum(-1) - 1).clamp(min=0)
    role = (input_ids.unsqueeze(-1) == table).long().argmax(-1)  # (B, L) meaningful at markers
    # Each turn has one marker, whose role all its tokens look up.
    of_turn = torch.zeros_like(turns).scatter_add(1, turns, torch.where(is_marker, role, 0))
    return kept, of_turn.gather(1, turns), turns


def fitting(body: Tensor, turns: Tensor, budget: int, keep: str, whole_turns: bool) -> Tensor:
    """Says which tokens (B, L) stay of dialogues that may be too long, as `hf_dialemb.models.layout.tokenize` cuts.

    Of the ``body`` (B, L), somebody's words in turns that count upwards, so many stay as the budget has, from the end
    that ``keep`` names. ``whole_turns`` that do not fit go as a whole; a single one beyond the budget is cut.
    """
    count, total = body.long().cumsum(-1), body.long().sum(-1, keepdim=True)
    place = count - 1 if keep == "start" else total - count  # from the end that stays
    fits = place < budget
    if not whole_turns:
        return fits
    lengths = torch.zeros_like(turns).scatter_add(1, turns, body.long())  # (B, L) by turn
    ends = lengths.cumsum(-1)
    near, far = (ends - lengths, ends) if keep == "start" else (total - ends, total - ends + lengths)
    return fits & ((far.gather(1, turns) <= budget) | (near.gather(1, turns) == 0))


def numbered(body: Tensor, turns: Tensor) -> Tensor:
    """Numbers the turns that still have words from 0, (B, L) int64; what is between them counts with the one before."""
    lengths = torch.zeros_like(turns).scatter_add(1, turns, body.long())
    return ((lengths > 0).long().cumsum(-1) - 1).clamp(min=0).gather(1, turns)


def in_order(hidden: Tensor, places: Tensor | None) -> Tensor:
    """Puts vectors (B, T, D) where the places (B, L) of a rendered sequence say, zeros for T; None leaves them."""
    if places is None:
        return hidden
    indices = places.unsqueeze(-1).expand(-1, -1, hidden.shape[-1])
    return torch.nn.functional.pad(hidden, (0, 0, 0, 1)).gather(1, indices)


def kept_first(kept: Tensor) -> Tensor:
    """Returns where each token goes, (B, L), so that kept ones stand first, in order, and all others after them."""
    return torch.where(kept.bool(), kept.cumsum(-1) - 1, kept.sum(-1, keepdim=True) + (1 - kept).cumsum(-1) - 1)
