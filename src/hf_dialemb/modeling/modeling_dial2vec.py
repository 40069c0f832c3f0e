"""Dial2Vec.

Dialogue embeddings that distinguish who speaks (Liu et al., EMNLP 2022, arXiv:2210.15332).

The chat template writes a marker token before each turn, which names its speaker. The model infers
speakers and turns from the markers, removes the markers, cuts dialogues that are too long, and adds
turn and speaker embeddings to the token embeddings. A pretrained encoder reads the sum. The
dialogue's embedding is the sum of its speakers' mean vectors.

Shapes: B dialogues, L tokens with markers, T tokens without markers, R speakers, width D.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import AutoModel, AutoModelForTextEncoding, PreTrainedModel, initialization
from transformers.utils.generic import ModelOutput

from .configuration_dial2vec import BackboneConfig, Dial2VecConfig


@dataclass
class Dial2VecOutput(ModelOutput):
    """Output of `Dial2VecModel`.

    Attributes:
        pooler_output: Embeddings of the dialogues, (B, D).
        role_embeddings: Mean token vector of each speaker, (B, R, D); zeros for absent speakers.
        last_hidden_state: Token vectors in the order of ``input_ids``, (B, L, D); zeros at markers
            and padding.
        hidden_states: The encoder's layers, of tokens without markers, if requested.
        attentions: The encoder's attention weights, if requested.
    """

    pooler_output: Tensor | None = None
    role_embeddings: Tensor | None = None
    last_hidden_state: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


class DialogueTokens(NamedTuple):
    """Tokens without markers, padded on the right, with their speakers and turns, all (B, T) int64.

    ``places`` (B, L) int64 holds the new position of each input token, or T if the token was
    dropped; None if no token was moved.
    """

    input_ids: Tensor
    attention_mask: Tensor
    role_ids: Tensor
    turn_ids: Tensor
    places: Tensor | None = None


class EncoderModel(PreTrainedModel):
    """A model around a pretrained encoder, ``encoder``."""

    config: BackboneConfig
    encoder: Any
    base_model_prefix = "backbone"
    supports_gradient_checkpointing = True
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_flex_attn = True
    _supports_attention_backend = True

    def get_input_embeddings(self) -> Any:
        """Return the encoder's table of token embeddings."""
        return self.encoder.get_input_embeddings()

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Replace the encoder's table of token embeddings, and adopt its vocabulary size."""
        self.encoder.set_input_embeddings(value)
        # transformers changes the outer config only, but the encoder's own decides what loads
        self.config.encoder_config.vocab_size = value.num_embeddings  # type: ignore[union-attr]


class Dial2VecModel(EncoderModel):
    """A pretrained encoder with embedding tables for turns and speakers.

    The tables start at zero, so an untrained model computes the same token vectors as its encoder.
    ``center`` (D,) is subtracted from every embedding: the mean embedding of training dialogues, or
    zero if training did not center.
    """

    config: Dial2VecConfig
    center: Tensor

    def __init__(self, config: Dial2VecConfig) -> None:
        super().__init__(config)
        self.encoder = encoder_without_pooler(config.encoder_config)
        # less than ``hidden_size`` in ALBERT and ELECTRA
        width = self.get_input_embeddings().weight.shape[-1]
        self.turn_embeddings = nn.Embedding(config.num_turn_embeddings, width)
        self.role_embeddings = nn.Embedding(config.num_roles, width)
        self.register_buffer("center", torch.zeros(config.hidden_size))
        self.post_init()

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        if module is self.turn_embeddings or module is self.role_embeddings:
            initialization.zeros_(module.weight)
        elif module is self:
            initialization.zeros_(self.center)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        role_ids: Tensor | None = None,
        turn_ids: Tensor | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Dial2VecOutput | tuple[Any, ...]:
        """Embed dialogues.

        Args:
            input_ids: Token ids of the rendered chat template, (B, L) int64.
            attention_mask: 1 for real tokens, (B, L); None means that all tokens are real.
            role_ids: Speaker of each token, (B, L) int64, for sequences without markers; needs
                ``turn_ids`` too.
            turn_ids: Turn of each token, counted from 0, (B, L) int64, for sequences without
                markers.
            return_dict: Whether to return a `Dial2VecOutput` instead of a tuple.
            **kwargs: Arguments for the encoder, such as ``output_hidden_states``.
        """
        # peft passes unset ones as None
        kwargs = {name: value for name, value in kwargs.items() if value is not None}
        for name in ("output_hidden_states", "output_attentions"):
            if getattr(self.config, name):
                kwargs.setdefault(name, True)
        if (role_ids is None) != (turn_ids is None):
            raise ValueError("got role_ids or turn_ids alone, expected both, or neither")
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask.long()
        if role_ids is None or turn_ids is None:
            # tokenizers add them, but they distinguish nothing here
            kwargs.pop("token_type_ids", None)
            tokens = self.read_markers(input_ids, mask)
        else:
            tokens = DialogueTokens(input_ids, mask, role_ids, turn_ids)
        encoded = self.encode_tokens(tokens, **kwargs)
        hidden = encoded.last_hidden_state  # (B, T, D)
        embeddings, speakers = self.pool(hidden, tokens)
        if tokens.places is not None:
            places = tokens.places.unsqueeze(-1).expand(-1, -1, hidden.shape[-1])
            hidden = nn.functional.pad(hidden, (0, 0, 0, 1)).gather(1, places)
        output = Dial2VecOutput(
            embeddings, speakers, hidden, encoded.hidden_states, encoded.attentions
        )
        return output.to_tuple() if return_dict is False else output

    def encode_tokens(self, tokens: DialogueTokens, **kwargs: Any) -> Any:
        """Run the encoder on the sum of token, turn and speaker embeddings."""
        config = self.config
        turns = tokens.turn_ids
        row = turns
        if config.turn_order == "descending":
            row = (turns * tokens.attention_mask).amax(-1, keepdim=True) + 1 - turns
        row = row.clamp(min=0, max=config.num_turn_embeddings - 1)
        vectors = self.get_input_embeddings()(tokens.input_ids)
        vectors = vectors + self.turn_embeddings(row) + self.role_embeddings(tokens.role_ids)
        if config.position_layout == "utterance":
            kwargs["position_ids"] = positions_in_turn(turns) + position_offset(
                config.encoder_config
            )
        return self.encoder(inputs_embeds=vectors, attention_mask=tokens.attention_mask, **kwargs)

    def pool(self, hidden: Tensor, tokens: DialogueTokens) -> tuple[Tensor, Tensor]:
        """Pool token vectors (B, T, D) to embeddings of dialogues (B, D) and speakers (B, R, D)."""
        # (B, R, T)
        roles = nn.functional.one_hot(tokens.role_ids, self.config.num_roles).transpose(1, 2)
        roles = roles * tokens.attention_mask.unsqueeze(1)
        sums = torch.bmm(roles.to(hidden.dtype), hidden)  # (B, R, D)
        counts = roles.sum(-1, keepdim=True).to(hidden.dtype)  # (B, R, 1)
        speakers = sums / counts.clamp(min=1)
        mean = self.config.pooling == "mean"
        pooled = sums.sum(1) / counts.sum(1).clamp(min=1) if mean else speakers.sum(1)
        return pooled - self.center, speakers

    def read_markers(self, input_ids: Tensor, mask: Tensor) -> DialogueTokens:
        """Read speakers and turns off the markers in (B, L), remove these, and cut the rest."""
        roles, turns, kept = speakers_and_turns(input_ids, mask, self.config.marker_ids or [])
        roles, turns, kept = self._cut(roles, turns, kept)
        # Kept tokens move to the front in their order, all others to the back.
        rank = kept.long().cumsum(-1)
        behind = kept.long().sum(-1, keepdim=True) + (~kept).long().cumsum(-1)
        places = torch.where(kept, rank, behind) - 1
        # Not min(), which would tie a graph to dialogues on one side of the limit.
        if torch.jit.is_tracing():  # type: ignore[attr-defined]
            length: Any = torch.as_tensor(input_ids.shape[1]).clamp(max=self.config.max_tokens)
        elif torch.compiler.is_compiling():
            length = torch.sym_min(input_ids.shape[1], self.config.max_tokens)
        else:  # ConvBERT and MobileBERT read padding too, so keep none that no dialogue needs
            length = max(1, int(kept.sum(-1).max()))

        def moved(values: Tensor) -> Tensor:
            return torch.zeros_like(values).scatter(1, places, values)[:, :length]

        ids, counted, roles, turns = map(moved, (input_ids, kept.long(), roles, turns))
        return DialogueTokens(ids, counted, roles, turns, torch.where(kept, places, length))

    def _cut(self, roles: Tensor, turns: Tensor, kept: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Cut dialogues that are too long, and renumber the remaining turns from 0.

        Every tensor is (B, L).
        """
        config = self.config
        limits = config.opening_tokens, config.closing_tokens
        opening, closing = (int(config.wrapped) if limit is None else limit for limit in limits)
        rank = kept.long().cumsum(-1) - 1
        total = kept.long().sum(-1, keepdim=True)
        frame = kept & ((rank < opening) | (rank >= total - closing))
        words = kept & ~frame
        words = words & fitting(
            words, turns, config.max_tokens - opening - closing, config.keep, config.whole_turns
        )
        lengths = words_by_turn(words, turns)
        turns = ((lengths > 0).long().cumsum(-1) - 1).clamp(min=0).gather(1, turns)
        # Opening and closing tokens belong to the speakers next to them.
        some = words.any(-1, keepdim=True)
        first = torch.where(some, words.int().argmax(-1, keepdim=True), 0)
        last = torch.where(
            some, words.shape[1] - 1 - words.int().flip(-1).argmax(-1, keepdim=True), 0
        )
        beside = torch.where(rank < opening, roles.gather(1, first), roles.gather(1, last))
        return torch.where(frame, beside, roles), turns, words | frame


def encoder_without_pooler(config: Any) -> Any:
    """Build a configuration's encoder, without a decoder and without the pooler."""
    alone = (config.architectures or [""])[0].endswith("EncoderModel")
    encoder = (AutoModelForTextEncoding if alone else AutoModel).from_config(config)
    if getattr(encoder, "pooler", None) is not None:
        encoder.pooler = None
    return encoder


def speakers_and_turns(
    input_ids: Tensor, mask: Tensor, markers: list[int]
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the speaker and turn of each token, (B, L) int64, and the mask of non-markers.

    Tokens before the first marker belong to the first turn. Without markers, all tokens are turn 0
    of speaker 0.
    """
    matches = input_ids.unsqueeze(-1) == torch.tensor(markers, device=input_ids.device)  # (B, L, R)
    is_marker = matches.any(-1) & mask.bool()
    turns = (is_marker.long().cumsum(-1) - 1).clamp(min=0)
    role = torch.where(is_marker, matches.long().argmax(-1), 0)
    roles_of_turns = torch.zeros_like(turns).scatter_add(1, turns, role)
    return roles_of_turns.gather(1, turns), turns, mask.bool() & ~is_marker


def fitting(words: Tensor, turns: Tensor, budget: int, keep: str, whole_turns: bool) -> Tensor:
    """Return the mask (B, L) of the words that stay at ``budget`` words a dialogue.

    Words are the tokens other than markers, special tokens and padding. With ``whole_turns``, a
    turn that does not fit is dropped entirely, unless it is the first from that end, which is cut.
    """
    count = words.long().cumsum(-1)
    total = words.long().sum(-1, keepdim=True)
    distance = count - 1 if keep == "start" else total - count
    fits = distance < budget
    if not whole_turns:
        return fits
    lengths = words_by_turn(words, turns)
    ends = lengths.cumsum(-1)
    near = ends - lengths if keep == "start" else total - ends
    far = near + lengths
    return fits & ((far.gather(1, turns) <= budget) | (near.gather(1, turns) == 0))


def words_by_turn(words: Tensor, turns: Tensor) -> Tensor:
    """Count the words of each turn; column t of the result (B, L) is turn t."""
    return torch.zeros_like(turns).scatter_add(1, turns, words.long())


def positions_in_turn(turn_ids: Tensor) -> Tensor:
    """Count positions (B, T) from 0 within each turn."""
    position = torch.arange(turn_ids.shape[1], device=turn_ids.device).expand_as(turn_ids)
    starts = nn.functional.pad(turn_ids[:, 1:] != turn_ids[:, :-1], (1, 0), value=True)
    return position - torch.cummax(torch.where(starts, position, 0), dim=-1)[0]


def position_offset(config: Any) -> int:
    """Return the encoder's first position id.

    ``padding_idx + 1`` in RoBERTa and related models, else 0.
    """
    return config.pad_token_id + 1 if config.model_type in ROBERTA_FAMILY else 0


ROBERTA_FAMILY = {
    "camembert",
    "data2vec-text",
    "ibert",
    "longformer",
    "luke",
    "mpnet",
    "roberta",
    "roberta-prelayernorm",
    "xlm-roberta",
    "xlm-roberta-xl",
    "xmod",
}
