"""Blocks of Deep Attention Matching: attention without projections, similarity images, and how an image is read.

Letters of shapes: B contexts, K candidate responses of each, T turns of a context, L tokens of a turn, M of a
response, N texts, D width of the word vectors. Masks are boolean. What is masked is not attended to; what
masked tokens themselves attend to never matters, as they have no part in the image.
"""

import math
from itertools import pairwise

import torch
from torch import Tensor, nn

from ...methods.dialogue_cse import turn_weights

_EPSILON = 1e-6  # of layer normalisation in the released program
_CHANNELS = (32, 16)  # of the two convolutions


class AttentiveBlock(nn.Module):
    """What follows attention: residual and layer normalisation, a layer of ReLUs, both again; ``size`` is D."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(size, eps=_EPSILON)
        self.inner = nn.Linear(size, size)
        self.outer = nn.Linear(size, size)
        self.output_norm = nn.LayerNorm(size, eps=_EPSILON)

    def forward(self, queries: Tensor, attended: Tensor) -> Tensor:
        """Joins queries with what they attended to, (..., D) both, to (..., D)."""
        hidden = self.attention_norm(queries + attended)
        output: Tensor = self.output_norm(hidden + self.outer(torch.relu(self.inner(hidden))))
        return output


class SimilarityReader(nn.Module):
    """Two 3-D convolutions, each with ELU and max pooling, over turns, their tokens and those of a response."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        widths = (channels, *_CHANNELS)
        self.convolutions = nn.ModuleList(
            nn.Conv3d(before, after, kernel_size=3, padding=1) for before, after in pairwise(widths)
        )

    def forward(self, image: Tensor) -> Tensor:
        """Reads images (N, C, T, L, M) to features (N, `number_of_features`)."""
        for convolution in self.convolutions:
            image = nn.functional.elu(pool(convolution(image)))  # ELU rises: after the maximum it costs a 27th
        return image.flatten(1)


def number_of_features(turns: int, turn_tokens: int, response_tokens: int) -> int:
    """Counts what `SimilarityReader` makes of an image of T x L x M; 576 for 9 x 50 x 50."""
    return _CHANNELS[-1] * math.prod(math.ceil(size / 9) for size in (turns, turn_tokens, response_tokens))


def pool(image: Tensor) -> Tensor:
    """Takes the maxima of 3 x 3 x 3 cells, (N, C, T, L, M) to (N, C, ceil(T / 3), ceil(L / 3), ceil(M / 3)).

    The padding is TensorFlow's ``SAME``: an odd place more goes to the end.
    """
    padding = tuple(int(size % 3 == 1) for size in image.shape[-3:])  # two places more: one goes to the start
    return nn.functional.max_pool3d(image, 3, padding=padding, ceil_mode=True)


def self_attend(hidden: Tensor, mask: Tensor) -> Tensor:
    """Lets each token of a text attend to all of them, (N, L, D) and a mask (N, L) to (N, L, D)."""
    scores = similarity(hidden, hidden, "nld,nmd->nlm")
    return torch.einsum("nlm,nmd->nld", turn_weights(scores, mask.unsqueeze(1)), hidden)


def cross_attend(turns: Tensor, responses: Tensor, turn_mask: Tensor, response_mask: Tensor) -> tuple[Tensor, ...]:
    """Lets the tokens of every turn attend to those of every candidate, and the other way round.

    Without projections both directions have the same scores, and these are a similarity of the image too.

    Returns:
        Of turns (B, T, L, D) and responses (B, K, M, D): what the turns' tokens take from the candidates
        (B, K, T, L, D), what the candidates' take from the turns (B, K, T, M, D), and the scaled products of their
        vectors (B, K, T, L, M).
    """
    scores = similarity(turns, responses, "btld,bkmd->bktlm")
    to_response = turn_weights(scores, response_mask[:, :, None, None, :])
    to_turn = turn_weights(scores.transpose(-1, -2), turn_mask[:, None, :, None, :])
    from_responses = torch.einsum("bktlm,bkmd->bktld", to_response, responses)
    from_turns = torch.einsum("bktml,btld->bktmd", to_turn, turns)
    return from_responses, from_turns, scores


def similarity(left: Tensor, right: Tensor, equation: str) -> Tensor:
    """Multiplies vectors as an equation of `torch.einsum` says, and divides by the root of their width."""
    return torch.einsum(equation, left, right) / math.sqrt(left.shape[-1])


def positions(length: int, like: Tensor) -> Tensor:
    """Makes sinusoidal positions (Vaswani et al., 2017, section 3.5), (length, D).

    They multiply the word vectors by the root of D; here the positions are divided by it instead, so that similarities
    stay as large as without positions. Width, precision and device are those of ``like`` (..., D).
    """
    size = int(like.shape[-1])
    half = (size + 1) // 2
    rates = 10_000 ** (-2 * torch.arange(half, device=like.device, dtype=torch.float64) / size)
    angles = torch.arange(length, device=like.device, dtype=torch.float64).unsqueeze(1) * rates
    waves = torch.cat([angles.sin(), angles.cos()[:, : size - half]], dim=-1)
    return (waves / math.sqrt(size)).to(like.dtype)


def last_tokens(ids: Tensor, mask: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Keeps at most so many last real tokens of each text, wherever they stand, moved to its start.

    Ids and mask (..., L) become ids and a boolean mask (..., min(L, size)).
    """
    real = mask.bool()
    count = real.sum(-1, keepdim=True)
    order = real.int().argsort(dim=-1, descending=True, stable=True)  # real tokens first, in their order
    place = torch.arange(min(ids.shape[-1], size), device=ids.device) + (count - size).clamp(min=0)
    return ids.gather(-1, order.gather(-1, place)), place < count


def last_turns(ids: Tensor, mask: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Keeps at most so many last turns that have a token, moved to the end; those without one count as absent.

    Ids and mask (B, T, L) become ids and a boolean mask (B, min(T, size), L).
    """
    present = mask.bool().any(-1)
    order = present.int().argsort(dim=1, stable=True)[:, -size:, None].expand(-1, -1, ids.shape[-1])
    return ids.gather(1, order), mask.bool().gather(1, order)
