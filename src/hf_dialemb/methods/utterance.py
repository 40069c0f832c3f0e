"""Utterance encoders.

The pooled tokens of a backbone, contrastive heads for training, and `encode_utterances`.

Letters of shapes: B pairs, N utterances, L tokens, D width of the backbone and of the embedding.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase, initialization
from transformers.utils.generic import ModelOutput

from ..modeling.modeling_dual_encoder import encoder_without_pooler, mean_of_tokens
from .backbone_model import BackboneModel
from .batching import any_shape, embeddings, in_parts
from .config import UtteranceConfig
from .layout import Truncation, framed, text_ids, utterance_template
from .losses import precise

_ROWS = 32  # utterances of like length that are encoded together, padded to the longest of them


@dataclass
class UtteranceOutput(ModelOutput):
    """Output of an utterance encoder; of training batches without token vectors and layers."""

    loss: Tensor | None = None  # of training batches, a scalar
    pooler_output: Tensor | None = (
        None  # embeddings, (N, D); of the anchors (B, D) for training batches
    )
    last_hidden_state: Tensor | None = None  # token vectors, (N, L, D)
    similarities: Tensor | None = (
        None  # of training batches, the cosines of anchors and candidates, (B, B, 1)
    )
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


class UtteranceEncoder(BackboneModel):
    """A backbone, its pooled token vectors, and one contrastive head per objective.

    A head is Linear(D, D) - ReLU - Linear(D, projection_size), both without bias (DSE, section 4;
    Dialog2Flow, section 3.1). It serves training only: embeddings are taken before it.
    """

    config: UtteranceConfig

    def __init__(self, config: UtteranceConfig, objectives: Iterable[str] = ("pairs",)) -> None:
        super().__init__(config)
        self.encoder = encoder_without_pooler(config.encoder_config)
        self.heads = nn.ModuleDict()
        if config.projection_size is not None:
            self.heads.update(
                {name: _head(config.hidden_size, config.projection_size) for name in objectives}
            )
        self.post_init()

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)  # type: ignore[no-untyped-call]
        if isinstance(module, nn.Linear) and any(module is part for part in self.heads.modules()):
            # torch's own, as in the released programs
            initialization.kaiming_uniform_(module.weight, a=math.sqrt(5))

    @staticmethod
    def prepare_tokenizer(tokenizer: PreTrainedTokenizerBase, config: UtteranceConfig) -> None:
        """Set the chat template, which joins messages to one text, and the length limit."""
        prompts = [text for text in (config.prompts or {}).values() if text]
        tokenizer.chat_template = utterance_template(tokenizer, prompts, config.prompt)
        tokenizer.model_max_length = config.longest_text
        tokenizer.truncation_side = "right"

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        return_dict: bool | None = None,
        **kwargs: object,
    ) -> UtteranceOutput | tuple[Any, ...]:
        """Embed utterances (N, L), or compute the loss of B examples of S utterances (B, S, L).

        The mask is 1 for real tokens; None means all. ``kwargs`` hold the rest of a training batch,
        or arguments of the backbone.
        """
        # peft names all that there are
        kwargs = {name: value for name, value in kwargs.items() if value is not None}
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        if input_ids.dim() == 3:
            output = self.contrast(input_ids, mask, **kwargs)
        else:
            for name in ("output_hidden_states", "output_attentions"):
                if getattr(self.config, name):
                    kwargs.setdefault(name, True)
            encoded = self.encoder(input_ids=input_ids, attention_mask=mask, **kwargs)
            states = encoded.last_hidden_state
            layers = (encoded.hidden_states, encoded.attentions)
            output = UtteranceOutput(None, self.pool(states, mask), states, None, *layers)
        return output.to_tuple() if return_dict is False else output

    def contrast(
        self, input_ids: Tensor, attention_mask: Tensor, **kwargs: object
    ) -> UtteranceOutput:
        """Compute the loss of a training batch (B, S, L).

        ``kwargs`` are what the method's ``collate`` adds.
        """
        raise NotImplementedError

    def embed(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Embed utterances (N, L), padded on the right, to (N, D) float32 or float64, in parts.

        With ``mini_batch_size``, a part's activations are computed again in the backward pass
        (gradient caching), so that memory does not grow with the number of utterances.
        """
        return self.in_parts(  # type: ignore[no-any-return]
            lambda words, mask: self.pool(self.states_of(words, mask), mask),
            input_ids,
            attention_mask,
        )

    def in_parts(
        self, work: Callable[..., Any], input_ids: Tensor, attention_mask: Tensor, *more: Tensor
    ) -> Any:
        """Call ``work`` with the arguments of `states_of` for parts of like length of N texts.

        See `embed`.
        """
        size = self.config.mini_batch_size or _ROWS
        again = self.config.mini_batch_size is not None
        # Words are looked up once, as the gradient of every look-up is as large as the table.
        words = input_ids if again else self.get_input_embeddings()(input_ids)
        return in_parts(self, work, attention_mask, size, words, attention_mask, *more, again=again)

    def states_of(self, words: Tensor, attention_mask: Tensor) -> Tensor:
        """Run the backbone over token ids (N, L) or their vectors (N, L, D), with a mask (N, L)."""
        given = (
            {"input_ids": words}
            if words.dim() == 2
            else {"inputs_embeds": words[:, : attention_mask.shape[1]]}
        )
        with any_shape():
            return self.encoder(**given, attention_mask=attention_mask).last_hidden_state  # type: ignore[no-any-return]

    def pool(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Pool token vectors (N, L, D) by their mask (N, L) to embeddings (N, D)."""
        if self.config.pooling == "cls":
            return hidden[:, 0].float()
        if (
            self.config.pooling == "lasttoken"
        ):  # the last of ones, as padding may stand on either side
            place = mask.shape[1] - 1 - mask.flip(-1).argmax(-1)
            return hidden[torch.arange(len(mask), device=mask.device), place].float()
        return mean_of_tokens(hidden, mask)

    def project(self, embeddings: Tensor, objective: str = "pairs") -> Tensor:
        """Map embeddings (N, D) to unit vectors (N, projection_size) through a head."""
        if objective in self.heads:
            head: Any = self.heads[objective]
            embeddings = head(embeddings.to(head[0].weight.dtype))
        return nn.functional.normalize(precise(embeddings))


def nested(embeddings: Tensor, dims: Iterable[int] | None) -> list[Tensor]:
    """Return embeddings (N, D), and of each size a copy with its first dimensions alone.

    A loss of all teaches embeddings that can be cut there (Matryoshka; Kusupati et al., 2022).
    """
    places = torch.arange(embeddings.shape[-1], device=embeddings.device)
    return [embeddings, *(embeddings * (places < size) for size in dims or ())]


def positives_first(similarities: Tensor) -> Tensor:
    """Move the diagonal of (B, B) to the front: (B, B, 1), so that sample 0 is the positive."""
    count = len(similarities)
    others = similarities[~torch.eye(count, dtype=torch.bool, device=similarities.device)].view(
        count, count - 1
    )
    return torch.cat([similarities.diagonal().unsqueeze(1), others], dim=1).unsqueeze(-1)


def _head(width: int, size: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(width, width, bias=False), nn.ReLU(), nn.Linear(width, size, bias=False)
    )


def encode_utterances(
    model: Any,
    tokenizer: PreTrainedTokenizerBase,
    utterances: Sequence[str],
    batch_size: int = 32,
    show_progress: bool | None = None,
    prompt: str | None = None,
) -> np.ndarray:
    """Embed N utterances, (N, D) float32; cut long ones, and log a warning.

    They are cut on the right, or on the side that the tokenizer names. The prompt stands before
    each; None is the model's default.
    """
    limit = model.config.longest_text
    before = model.config.prompt if prompt is None else prompt
    keep = "end" if tokenizer.truncation_side == "left" else "start"
    ids = text_ids([before + text for text in utterances], tokenizer, limit, keep)

    def lay_out(rows: list[int], count: Truncation) -> dict[str, Tensor]:
        count.unit = "texts"
        return framed([ids[row] for row in rows], tokenizer, limit, count, keep)

    lengths = [min(len(row) + 2, limit) for row in ids]
    return embeddings(
        model, lengths, lay_out, batch_size, show_progress, f"; the model reads {limit} tokens"
    )
