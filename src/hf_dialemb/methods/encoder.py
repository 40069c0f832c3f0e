"""What every dialogue encoder shares: a backbone that reads roles and turns, pooling, and `encode`.

Letters of shapes: B dialogues, N samples of a dialogue, L tokens, R roles, D width of the backbone and of the
embedding.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase
from transformers import initialization as init
from transformers.utils.generic import ModelOutput

from ..dialogue import Dialogue
from ..errors import InputError
from .backbone_model import BackboneModel, position_offset
from .batching import LayOut, embeddings, outputs
from .config import DialogueConfig
from .layout import UNLIMITED, Truncation, tokenize
from .markers import add_markers, chat_template, wrapping


@dataclass
class DialogueOutput(ModelOutput):
    """What a dialogue encoder returns.

    Attributes:
        loss: Training loss, a scalar; only for training batches.
        pooler_output: Dialogue embeddings, (B, D); of the intact dialogues for training batches.
        role_embeddings: One embedding per speaker, (B, R, D); zeros for absent speakers.
        last_hidden_state: Token vectors, (B, L, D); zeros at markers and padding; None for training batches.
        similarities: Cosines that enter the loss, (B, N, R); only for training batches.
        hidden_states: The backbone's layers, when asked for, as its ``attentions``.
    """

    loss: Tensor | None = None
    pooler_output: Tensor | None = None
    role_embeddings: Tensor | None = None
    last_hidden_state: Tensor | None = None
    similarities: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


class DialogueEncoder(BackboneModel):
    """A backbone that reads dialogues: token, position, turn and role embeddings in, pooled embeddings out.

    The turn and role tables start at zero, so an untrained encoder equals its backbone. ``center`` (D,), a stored
    vector that is taken off every dialogue embedding, starts at zero too.
    """

    config: DialogueConfig
    center: Tensor

    def __init__(self, config: DialogueConfig) -> None:
        super().__init__(config)
        width = cast("nn.Embedding", self.get_input_embeddings()).weight.shape[-1]
        if width != config.hidden_size:
            raise InputError(
                f"backbone: got word vectors of {width} numbers and states of {config.hidden_size}, expected as many "
                "of both, as vectors of roles and turns are added to those of words; name another backbone"
            )
        self.turn_embeddings = nn.Embedding(config.num_turn_embeddings, config.hidden_size)
        self.role_embeddings = nn.Embedding(config.num_roles, config.hidden_size)
        self.register_buffer("center", torch.zeros(config.hidden_size))
        self.post_init()  # type: ignore[no-untyped-call]

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)  # type: ignore[no-untyped-call]
        if module is self.turn_embeddings or module is self.role_embeddings:
            init.zeros_(module.weight)
        elif module is self:
            init.zeros_(self.center)

    @staticmethod
    def prepare_tokenizer(tokenizer: PreTrainedTokenizerBase, config: DialogueConfig) -> None:
        """Adds markers and chat template, notes the markers' ids, and refuses an unknown ``end_of_utterance``."""
        config.marker_ids = add_markers(tokenizer, config.num_roles)
        token = config.end_of_utterance
        if token is not None:
            if token not in tokenizer.get_vocab():
                raise InputError(
                    f"end_of_utterance: '{token}' is not in the tokenizer's vocabulary; expected one of its tokens"
                )
            tokenizer.add_special_tokens({"extra_special_tokens": [token]}, replace_extra_special_tokens=False)
        frame = [int(config.wrapped and bool(token)) for token in wrapping(tokenizer)]
        config.opening_tokens, config.closing_tokens = frame
        set_template(tokenizer, config)

    def encode_tokens(
        self, input_ids: Tensor, attention_mask: Tensor, role_ids: Tensor, turn_ids: Tensor, **kwargs: object
    ) -> Any:  # noqa: ANN401 - the backbone's own output class
        """Runs the backbone over sequences without markers, padded on the right, with explicit roles and turns.

        All are (B, L) int64, turns from 0; what else is given is passed to the backbone, whose output is returned.
        """
        mask = attention_mask.long()
        row = turn_ids
        if self.config.turn_order == "descending":
            row = (turn_ids * mask).amax(-1, keepdim=True) + 1 - turn_ids
        row = row.clamp(min=0, max=self.config.num_turn_embeddings - 1)
        vectors = self.get_input_embeddings()(input_ids) + self.turn_embeddings(row) + self.role_embeddings(role_ids)
        if self.config.position_layout == "utterance":
            kwargs["position_ids"] = _positions_in_utterance(turn_ids) + position_offset(self.config.encoder_config)
        return self.encoder(inputs_embeds=vectors, attention_mask=attention_mask, **kwargs)

    def read(
        self, input_ids: Tensor, attention_mask: Tensor | None, role_ids: Tensor | None, turn_ids: Tensor | None,
        **kwargs: object,
    ) -> tuple[Any, Tensor, Tensor, Tensor | None]:  # fmt: skip
        """Encodes rendered or explicit sequences.

        Returns:
            The backbone's output, of rendered sequences for the T tokens that count alone, T at most ``max_tokens``;
            the mask of those that count (B, T); their role ids (B, T); and of rendered sequences where the tokens of
            ``input_ids`` stand in it, (B, L), T for those that do not.
        """
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask.long()
        if role_ids is not None and turn_ids is not None:
            return self.encode_tokens(input_ids, mask, role_ids, turn_ids, **kwargs), mask, role_ids, None
        kwargs.pop("token_type_ids", None)  # stock tokenizers make them, of one kind for all that a template renders
        kept, roles, turns = self._cut(*read_markers(input_ids, mask, list(self.config.marker_ids or [])))
        destination = kept_first(kept)
        # Not min(): that would tie an exported graph to dialogues on one side of the limit.
        length = torch.sym_min(input_ids.shape[1], self.config.max_tokens)

        def forwards(values: Tensor) -> Tensor:
            return torch.zeros_like(values).scatter(1, destination, values)[:, :length]

        ids, counted, roles, turns = map(forwards, (input_ids, kept, roles, turns))
        output = self.encode_tokens(ids, counted, roles, turns, **kwargs)
        return output, counted, roles, torch.where(kept.bool(), destination, length)

    def _cut(self, kept: Tensor, roles: Tensor, turns: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Cuts dialogues as `tokenize` does, so that a rendered one of any length gives the same embedding."""
        config = self.config
        given = config.opening_tokens, config.closing_tokens
        opening, closing = (int(config.wrapped) if count is None else count for count in given)
        rank, total = kept.cumsum(-1) - 1, kept.sum(-1, keepdim=True)
        frame = kept.bool() & ((rank < opening) | (rank >= total - closing))
        body = kept.bool() & ~frame
        body = body & fitting(body, turns, config.max_tokens - opening - closing, config.keep, config.whole_turns)
        turns = numbered(body, turns)
        # What frames a dialogue is said by who speaks next to it.
        length = body.shape[1]
        first = torch.where(body.any(-1, keepdim=True), body.int().argmax(-1, keepdim=True), 0)
        last = torch.where(body.any(-1, keepdim=True), length - 1 - body.int().flip(-1).argmax(-1, keepdim=True), 0)
        beside = torch.where(rank < opening, roles.gather(1, first), roles.gather(1, last))
        return (body | frame).long(), torch.where(frame, beside, roles), turns

    def pool(self, hidden: Tensor, mask: Tensor, role_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Pools token vectors (equation 4), and takes off what all dialogues of the training corpus have in common.

        The vectors are (B, L, D), their mask and roles (B, L); returns dialogues' (B, D) and speakers' (B, R, D).
        """
        roles = nn.functional.one_hot(role_ids, self.config.num_roles).transpose(1, 2) * mask.unsqueeze(1)  # (B, R, L)
        sums = torch.bmm(roles.to(hidden.dtype), hidden)
        counts = roles.sum(-1, keepdim=True).to(hidden.dtype)  # (B, R, 1)
        speakers = sums / counts.clamp(min=1)
        if self.config.pooling == "mean":
            return sums.sum(1) / counts.sum(1).clamp(min=1) - self.center, speakers
        return speakers.sum(1) - self.center, speakers


# Rendered dialogues are read by tensors alone: published models do so without their tokenizer, and graphs hold it.


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
    """Says which tokens (B, L) stay of dialogues that may be too long, as `tokenize` cuts.

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
    return nn.functional.pad(hidden, (0, 0, 0, 1)).gather(1, indices)


def kept_first(kept: Tensor) -> Tensor:
    """Returns where each token goes, (B, L), so that kept ones stand first, in order, and all others after them."""
    return torch.where(kept.bool(), kept.cumsum(-1) - 1, kept.sum(-1, keepdim=True) + (1 - kept).cumsum(-1) - 1)


def _positions_in_utterance(turn_ids: Tensor) -> Tensor:
    position = torch.arange(turn_ids.shape[1], device=turn_ids.device).expand_as(turn_ids)
    starts = torch.nn.functional.pad(turn_ids[:, 1:] != turn_ids[:, :-1], (1, 0), value=True)
    return position - torch.cummax(torch.where(starts, position, 0), dim=-1)[0]


def set_template(tokenizer: PreTrainedTokenizerBase, config: DialogueConfig) -> None:
    """Gives the tokenizer the chat template that belongs to a config, and no limit: the model cuts by itself."""
    tokenizer.chat_template = chat_template(
        tokenizer, list(config.marker_ids or []), config.end_of_utterance or "", config.wrapped, config.max_turns
    )
    tokenizer.model_max_length = UNLIMITED
    side = "right" if config.keep == "start" else "left"  # for those who cut before
    tokenizer.truncation_side = tokenizer.init_kwargs["truncation_side"] = side  # the file holds what is in both


def encode(
    model: DialogueEncoder,
    tokenizer: PreTrainedTokenizerBase,
    dialogues: Sequence[Dialogue],
    batch_size: int = 32,
    show_progress: bool = False,
) -> np.ndarray:
    """Embeds N dialogues, (N, D) float32; those too long are cut as the config says, counted, and warned of."""
    return embeddings(model, *_inputs(model, tokenizer, dialogues), batch_size, show_progress, _limits(model))


def encode_speakers(
    model: DialogueEncoder, tokenizer: PreTrainedTokenizerBase, dialogues: Sequence[Dialogue], batch_size: int = 32
) -> tuple[np.ndarray, np.ndarray]:
    """Embeds each speaker of N dialogues (section 5.3.1), which are cut as in `encode`.

    Returns float32 embeddings (N, R, D), in the order of the roles, zeros for absent ones; and how many tokens each is
    the mean of, (N, R) int64.
    """
    config, inputs = model.config, _inputs(model, tokenizer, dialogues)
    result = np.zeros((len(dialogues), config.num_roles, config.hidden_size), dtype=np.float32)
    counts = np.zeros(result.shape[:2], dtype=np.int64)
    for rows, output, batch in outputs(model, *inputs, batch_size, False, _limits(model)):
        result[rows] = output.role_embeddings.float().cpu().numpy()
        roles = nn.functional.one_hot(batch["role_ids"], config.num_roles) * batch["attention_mask"].unsqueeze(-1)
        counts[rows] = roles.sum(1).cpu().numpy()
    return result, counts


def _inputs(
    model: DialogueEncoder, tokenizer: PreTrainedTokenizerBase, dialogues: Sequence[Dialogue]
) -> tuple[list[int], LayOut]:
    def lay_out(rows: list[int], count: Truncation) -> dict[str, Tensor]:
        return tokenize([dialogues[row] for row in rows], tokenizer, model.config, count)

    texts = (sum(len(turn.content) for turn in dialogue.turns) for dialogue in dialogues)
    return [min(1 + characters // 4, model.config.max_tokens) for characters in texts], lay_out  # tokens, about


def _limits(model: DialogueEncoder) -> str:
    return f"; max_tokens is {model.config.max_tokens}, keep is '{model.config.keep}'"
