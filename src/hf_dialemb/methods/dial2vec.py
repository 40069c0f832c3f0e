"""dial2vec.

Dialogue embeddings guided by the two speakers (Liu et al., EMNLP 2022, arXiv:2210.15332).

An intact dialogue competes with copies in which random utterances replace one side. Only in the
intact one do the speakers' words fit each other.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from ..dialogue import Dialogue, Turn
from ..errors import InputError
from ..modeling.modeling_dial2vec import DialogueTokens
from ..ranges import ABOVE_ZERO, Range, Ranges
from .backbone_model import autocast_off
from .batching import any_shape, in_parts
from .config import DialogueConfig
from .encoding import DialogueEncoder, DialogueOutput
from .layout import Truncation, tokenize
from .losses import nt_xent, precise
from .method import ABOUT, Examples, Method

_ROWS = 64  # samples of like length that are encoded together


@strict
class Dial2VecConfig(DialogueConfig):
    """Settings of dial2vec, beside those of `DialogueConfig`.

    Attributes:
        loss_temperature: Divides the cosines (section 4.4: 0.2).
        window: Tokens more than this many turns apart do not meet (section 4.4: 10).
        num_negatives: Corrupted copies per dialogue (the program: 9).
        loss_scale: ``"official"`` divides the loss by the number of samples.
    """

    model_type = "dialemb-dial2vec"
    ranges: ClassVar[Ranges] = {
        "loss_temperature": ABOVE_ZERO,
        "window": Range(0),
        "num_negatives": Range(1),
    }

    loss_temperature: float = 0.2
    window: int = 10
    num_negatives: int = 9
    loss_scale: Literal["sum", "official"] = "sum"


class Dial2VecModel(DialogueEncoder):
    """The published model with its interaction and loss, which have no parameters."""

    config: Dial2VecConfig

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        role_ids: Tensor | None = None,
        turn_ids: Tensor | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Embed dialogues (B, L), or compute the loss of samples (B, N, L).

        Samples are the intact dialogue and its corrupted copies, with explicit roles and turns.
        """
        if input_ids.dim() < 3:
            return super().forward(
                input_ids, attention_mask, role_ids, turn_ids, return_dict, **kwargs
            )
        flat = [
            tensor.flatten(0, 1)
            for tensor in (input_ids, attention_mask, role_ids, turn_ids)
            if tensor is not None
        ]
        parts = in_parts(self, self._represent, flat[1], _ROWS, *flat)
        cosines, present, own, pooled = (
            tensor.unflatten(0, input_ids.shape[:2]) for tensor in parts
        )
        official = self.config.loss_scale == "official"
        loss = nt_xent(cosines, present[:, 0], self.config.loss_temperature, official)
        output = DialogueOutput(
            loss=loss, pooler_output=pooled[:, 0], role_embeddings=own[:, 0], similarities=cosines
        )
        return output.to_tuple() if return_dict is False else output

    def _represent(self, *sequences: Tensor) -> tuple[Tensor, ...]:
        """Return cosines, presence and vectors of the speakers, and the embeddings, (n, ...)."""
        tokens = DialogueTokens(*sequences)
        with any_shape():
            hidden = precise(self.encode_tokens(tokens).last_hidden_state)
        with autocast_off(hidden):
            own, cross, present = speaker_representations(
                hidden, *tokens[1:4], self.config.num_roles, self.config.window
            )
            cosines = nn.functional.cosine_similarity(own, cross, dim=-1)  # (n, R)
        return cosines, present, own, self.pool(hidden, tokens)[0]


def speaker_representations(
    hidden: Tensor, mask: Tensor, role_ids: Tensor, turn_ids: Tensor, num_roles: int, window: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Pool each speaker's tokens, and what the others' tokens select from them (equations 1 to 3).

    The paper multiplies every token of one speaker with every token of the other. Only the pooled
    products enter the loss, and

        sum_i sum_j G_ij (h_i . h_j) h_j  =  sum_j (h_j . s_j) h_j,    s_j = sum_i G_ij h_i,

    where ``G_ij`` is 1 if tokens i and j are at most ``window`` turns apart. ``s_j`` is the same
    for all tokens of a
    turn: one scatter-add per turn, one banded sum over turns, one gather. Time and memory are O(L
    D), and the result is exact. With more than two speakers, each meets all the others together
    (one versus rest, section 3).

    Takes token vectors (B, L, D), a mask, and the speaker in [0, R) and the turn, from 0, of each
    token, (B, L) each. Returns the mean vector of each speaker's tokens, (B, R, D); its
    cross-representation, (B, R, D), up to a positive factor, as only its direction enters the loss;
    and which speakers have a token, (B, R) bool. Absent speakers get zeros.
    """
    batch, length, dim = hidden.shape
    turns = int(turn_ids.max()) + 1
    vectors = hidden * mask.unsqueeze(-1).to(hidden.dtype)  # (B, L, D)
    offset = torch.arange(batch, device=hidden.device).unsqueeze(1) * (num_roles * turns)
    # (B * L,) the (dialogue, role, turn) of each token
    cells = (offset + role_ids * turns + turn_ids).reshape(-1)
    sums = hidden.new_zeros(batch * num_roles * turns, dim).index_add(
        0, cells, vectors.reshape(-1, dim)
    )
    sums = sums.view(batch, num_roles, turns, dim)

    # A product with zeros and ones, not "total minus own": a dialogue of one speaker must give
    # exact zeros.
    others = 1 - torch.eye(num_roles, dtype=hidden.dtype, device=hidden.device)
    rest = torch.einsum("rs,bstd->brtd", others, sums)
    prefix = nn.functional.pad(rest.cumsum(dim=2), (0, 0, 1, 0))  # (B, R, T + 1, D)
    turn = torch.arange(turns, device=hidden.device)
    nearby = (
        prefix[:, :, (turn + window + 1).clamp(max=turns)]
        - prefix[:, :, (turn - window).clamp(min=0)]
    )

    partner = nearby.reshape(-1, dim).index_select(0, cells).view(batch, length, dim)
    # (B, L) each token's affinity to what the others say around it
    scores = (vectors * partner).sum(-1)
    roles = nn.functional.one_hot(role_ids, num_roles).transpose(1, 2).to(hidden.dtype)  # (B, R, L)
    cross = torch.bmm(roles * scores.unsqueeze(1), vectors)
    counts = (roles * mask.unsqueeze(1).to(hidden.dtype)).sum(-1)  # (B, R)
    own = sums.sum(2) / counts.clamp(min=1).unsqueeze(-1)
    return own, cross, counts > 0


class Dial2VecExamples(Examples):
    """Intact dialogues with corrupted copies (section 3.1).

    A dialogue gives one example for each speaker, whose turns stay in the copies, as in the
    released data.
    """

    def __init__(self, dialogues: Sequence[Dialogue], config: Dial2VecConfig, seed: int) -> None:
        if len(dialogues) < 2:
            raise InputError(
                f"dial2vec draws negatives from other dialogues: got {len(dialogues)}, expected at "
                "least 2"
            )
        self.dialogues = list(dialogues)
        items = []  # (dialogue, role whose turns stay)
        self.pools: dict[str, list[tuple[int, str]]] = {}  # by role: (dialogue, text)
        for index, dialogue in enumerate(self.dialogues):
            name = dialogue.id or index
            roles = dialogue.roles
            if len(roles) < 2:
                raise InputError(
                    f"dialogue '{name}' has one speaker ('{roles[0]}'): dial2vec needs two or "
                    "more; remove it, or leave out --strict"
                )
            items += [(index, role) for role in roles]
            for turn in dialogue.turns:
                self.pools.setdefault(turn.role, []).append((index, turn.content))
        super().__init__(items, config=config, seed=seed)
        self.everything = [item for pool in self.pools.values() for item in pool]

    def length(self, index: int) -> int:
        """Return the dialogue's length in characters."""
        return sum(len(turn.content) for turn in self.dialogues[self.items[index][0]].turns)

    def example(self, epoch: int, index: int) -> list[Dialogue]:
        """Return 1 + ``num_negatives`` dialogues: the intact one, then its corrupted copies."""
        number, kept = self.items[index]
        samples = [dialogue := self.dialogues[number]]
        generator = np.random.default_rng([self.seed, epoch, index])
        for _ in range(self.config.num_negatives):
            turns = [
                turn if turn.role == kept else self._replace(turn, number, generator)
                for turn in dialogue.turns
            ]
            samples.append(Dialogue(tuple(turns), dialogue.id))
        return samples

    def _replace(self, turn: Turn, number: int, generator: np.random.Generator) -> Turn:
        pool = self.pools[turn.role]
        for attempt in range(1000):
            source, content = pool[generator.integers(len(pool))]
            if source != number:
                return Turn(turn.role, content)
            if attempt == 100:  # the role is rare in other dialogues: any other speaker serves
                pool = self.everything
        raise InputError(
            f"dialogue '{self.dialogues[number].id or number}' holds nearly all turns: add other "
            "dialogues"
        )


def collate(
    examples: list[list[Dialogue]],
    tokenizer: PreTrainedTokenizerBase,
    config: Dial2VecConfig,
    count: Truncation,
) -> dict[str, Tensor]:
    """Lay out B examples of N samples: `tokenize`'s batch, each tensor (B, N, L)."""
    batch = tokenize(
        [sample for samples in examples for sample in samples], tokenizer, config, count
    )
    return {name: tensor.unflatten(0, (len(examples), -1)) for name, tensor in batch.items()}


METHOD = Method(
    "dial2vec",
    Dial2VecConfig,
    Dial2VecModel,
    Dial2VecExamples,
    collate,
    min_turns=2,
    min_speakers=2,
    **ABOUT["dial2vec"],
)
