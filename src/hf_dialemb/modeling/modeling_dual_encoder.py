"""Dual encoders: the score is the product of a context's vector and a response's.

`DualEncoderModel` is the model of Lowe et al. (2015) as in Multi-Granularity Representations of
Dialog (Mehri and Eskenazi, EMNLP 2019, arXiv:1908.09890, section 3.1): two one-layer LSTMs over
words. `TransformerDualEncoderModel` takes the mean token vector of a pretrained encoder instead.

Shapes: B contexts, K candidate responses of each, N texts, L and M tokens, D width.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from transformers import AutoModel, AutoModelForTextEncoding, PreTrainedModel
from transformers.utils.generic import ModelOutput

from .configuration_dual_encoder import (
    DualEncoderConfig,
    TowerRankerConfig,
    TransformerDualEncoderConfig,
)


@dataclass
class RankingOutput(ModelOutput):
    """Output of a ranker.

    Attributes:
        logits: Scores of the candidates, (B, K); their softmax is the probability. None without
            candidates.
        pooler_output: Embeddings, (N, D); of the contexts, (B, D), if there are candidates.
        member_logits: Scores of the members of an ensemble, (B, members, K).
    """

    logits: Tensor | None = None
    pooler_output: Tensor | None = None
    member_logits: Tensor | None = None


class Ranker(PreTrainedModel):
    """A model that scores candidate responses of a context.

    ``embeds`` says whether contexts and responses have vectors of their own; otherwise they are
    only scored together.
    """

    embeds: ClassVar[bool] = True

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        candidate_ids: Tensor | None = None,
        candidate_mask: Tensor | None = None,
        return_dict: bool | None = None,
        token_type_ids: Tensor | None = None,
        **kwargs: None,
    ) -> RankingOutput | tuple[Any, ...]:
        """Score candidates, or embed contexts and responses.

        Args:
            input_ids: Contexts (B, L) int64; without candidates, texts (N, L), where the marker of
                a response makes a text a response, and all others are contexts.
            attention_mask: 1 for real tokens, in the shape of ``input_ids``; None means all.
            candidate_ids: Candidate responses, (B, K, M) int64.
            candidate_mask: 1 for real tokens, (B, K, M); None means all.
            return_dict: False returns a tuple.
            token_type_ids: Ignored; some tokenizers make them.
            **kwargs: None for all; peft names arguments that other models have.
        """
        if unknown := [name for name, value in kwargs.items() if value is not None]:
            raise TypeError(
                f"forward: got {', '.join(unknown)}, expected texts and their candidates alone"
            )
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        if candidate_ids is None:
            output = RankingOutput(pooler_output=self.embed(input_ids, mask))
        else:
            if candidate_mask is None:
                candidate_mask = torch.ones_like(candidate_ids)
            output = self.rank(input_ids, mask, candidate_ids, candidate_mask)
        return output.to_tuple() if return_dict is False else output

    def rank(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        candidate_ids: Tensor,
        candidate_mask: Tensor,
    ) -> RankingOutput:
        """Score candidates (B, K, M) of contexts (B, L)."""
        logits, contexts = self.score(input_ids, attention_mask, candidate_ids, candidate_mask)
        return RankingOutput(logits=logits, pooler_output=contexts)

    def score(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        candidate_ids: Tensor,
        candidate_mask: Tensor,
    ) -> tuple[Tensor, Tensor | None]:
        """Return scores (B, K), and the embeddings of the contexts (B, D) if the model has them."""
        raise NotImplementedError

    def embed(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Embed contexts and responses, (N, L) to (N, D)."""
        raise NotImplementedError(
            f"{type(self).__name__} scores a context and a response together and embeds neither"
        )


class TowerRanker(Ranker):
    """An encoder of contexts and one of responses."""

    config: TowerRankerConfig

    def encode_texts(self, input_ids: Tensor, attention_mask: Tensor, tower: str) -> Tensor:
        """Embed texts padded on the right, (N, L) to (N, D), by the tower of this name."""
        raise NotImplementedError

    def encode_many(self, input_ids: Tensor, attention_mask: Tensor, tower: str) -> Tensor:
        """Embed any number of texts as `encode_texts` does, in float32."""
        return self.encode_texts(input_ids, attention_mask, tower).float()

    def score(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        candidate_ids: Tensor,
        candidate_mask: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Return scores (B, K) and the embeddings of the contexts (B, D)."""
        contexts = self.encode_many(*padded_right(input_ids, attention_mask), "context")
        candidates = padded_right(candidate_ids.flatten(0, 1), candidate_mask.flatten(0, 1))
        responses = self.encode_many(*candidates, "response").unflatten(0, candidate_ids.shape[:2])
        return self.product(contexts, responses), contexts

    def product(self, contexts: Tensor, responses: Tensor) -> Tensor:
        """Multiply contexts (B, D) with their responses (B, K, D) to scores (B, K)."""
        if self.config.score == "cosine":
            contexts = nn.functional.normalize(contexts, dim=-1)
            responses = nn.functional.normalize(responses, dim=-1)
        # Scores in half precision would tie.
        with torch.autocast(contexts.device.type, enabled=False):
            return torch.einsum("bd,bkd->bk", contexts, responses) / self.config.loss_temperature

    def embed(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Embed contexts and responses, mixed and padded on either side, (N, L) to (N, D)."""
        input_ids, attention_mask = padded_right(input_ids, attention_mask)
        marker = (self.config.marker_ids or [-1])[-1]
        is_response = ((input_ids == marker) & attention_mask.bool()).any(-1)  # (N,)
        input_ids, attention_mask = self._cut(input_ids, attention_mask, is_response)
        if torch.compiler.is_exporting():  # a graph holds both towers
            response = self.encode_texts(input_ids, attention_mask, "response")
            context = self.encode_texts(input_ids, attention_mask, "context")
            return torch.where(is_response.unsqueeze(-1), response, context)
        parts = []
        rows = []
        for tower, chosen in (("response", is_response), ("context", ~is_response)):
            if chosen.any():
                parts.append(self.encode_many(input_ids[chosen], attention_mask[chosen], tower))
                rows.append(chosen.nonzero().squeeze(-1))
        return torch.cat(parts)[torch.cat(rows).argsort()]

    def _cut(
        self, input_ids: Tensor, attention_mask: Tensor, is_response: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Cut contexts at their start and responses at their end, between the special tokens."""
        config = self.config
        limits = config.max_context_tokens, config.max_response_tokens
        length = attention_mask.sum(-1, keepdim=True)  # (N, 1)
        kept = torch.where(is_response, limits[1], limits[0]).unsqueeze(-1).minimum(length)
        head = torch.where(
            is_response.unsqueeze(-1), kept - config.closing_tokens, config.opening_tokens
        )
        # Not a slice, which would tie an exported graph to texts on one side of the limit.
        place = torch.arange(
            torch.sym_min(input_ids.shape[1], max(limits)), device=input_ids.device
        )
        source = torch.where(place < head, place, place + length - kept).clamp(
            max=input_ids.shape[1] - 1
        )
        return input_ids.gather(1, source), (place < kept).to(attention_mask.dtype)


class WordTower(nn.Module):
    """A word table and a one-layer LSTM, whose last state is the embedding (equations 1 and 2)."""

    def __init__(self, config: DualEncoderConfig) -> None:
        super().__init__()
        vocabulary_size = config.vocab_size or config.vocabulary_size
        self.words = nn.Embedding(vocabulary_size, config.embedding_size)
        self.reader = nn.LSTM(config.embedding_size, config.hidden_size, batch_first=True)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Read texts (N, L), padded on the right, and return their last states (N, D)."""
        states, _ = self.reader(self.words(input_ids))
        last = (attention_mask.sum(-1) - 1).clamp(min=0)
        return states.gather(1, last[:, None, None].expand(-1, 1, states.shape[-1])).squeeze(1)


class DualEncoderModel(TowerRanker):
    """Two LSTMs over words, each with a word table of its own."""

    config: DualEncoderConfig

    def __init__(self, config: DualEncoderConfig) -> None:
        super().__init__(config)
        self.context = WordTower(config)
        self.response = WordTower(config)
        self.post_init()

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Draw weights as torch does; transformers would leave an LSTM and shrink the words."""
        loaded = [getattr(weight, "_is_hf_initialized", False) for weight in module.parameters()]
        if isinstance(module, nn.Embedding | nn.LSTM) and not all(loaded):
            module.reset_parameters()

    def get_input_embeddings(self) -> nn.Module:
        """Return the word table of contexts; responses have their own."""
        return self.context.words

    def encode_texts(self, input_ids: Tensor, attention_mask: Tensor, tower: str) -> Tensor:
        """Embed texts, (N, L) to (N, D); see `TowerRanker`."""
        reader = self.context if tower == "context" else self.response
        return reader(input_ids, attention_mask)


class TransformerDualEncoderModel(TowerRanker):
    """One pretrained encoder for both sides, or one for each; a text is the mean of its tokens."""

    config: TransformerDualEncoderConfig
    base_model_prefix = "backbone"
    supports_gradient_checkpointing = True
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_flex_attn = True
    _supports_attention_backend = True

    def __init__(self, config: TransformerDualEncoderConfig) -> None:
        super().__init__(config)
        self.encoder = encoder_without_pooler(config.encoder_config)
        separate = config.towers == "separate"
        self.response_encoder = encoder_without_pooler(config.encoder_config) if separate else None
        self.post_init()

    def get_input_embeddings(self) -> Any:
        """Return the token table of the encoder of contexts."""
        return self.encoder.get_input_embeddings()

    def encode_texts(self, input_ids: Tensor, attention_mask: Tensor, tower: str) -> Tensor:
        """Embed texts, (N, L) to (N, D); see `TowerRanker`."""
        encoder = self.encoder
        if tower == "response" and self.response_encoder is not None:
            encoder = self.response_encoder
        hidden = encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        return mean_of_tokens(hidden, attention_mask)


def encoder_without_pooler(config: Any) -> Any:
    """Build the encoder of a configuration without a decoder and without a pooler."""
    alone = (config.architectures or [""])[0].endswith("EncoderModel")
    encoder = (AutoModelForTextEncoding if alone else AutoModel).from_config(config)
    if getattr(encoder, "pooler", None) is not None:
        encoder.pooler = None
    return encoder


def mean_of_tokens(hidden: Tensor, mask: Tensor) -> Tensor:
    """Average token vectors (N, L, D) by a mask (N, L) to (N, D); no token gives zeros."""
    hidden = hidden if hidden.dtype == torch.float64 else hidden.float()
    weights = mask.to(hidden.dtype)
    # Not a matrix product, which autocast would compute in half precision.
    return (hidden * weights.unsqueeze(-1)).sum(1) / weights.sum(-1, keepdim=True).clamp(min=1)


def padded_right(input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
    """Move padding (N, L) to the right; an exported graph takes padding on the right only."""
    if torch.compiler.is_exporting() or not (attention_mask.diff(dim=-1) > 0).any():
        return input_ids, attention_mask
    order = attention_mask.argsort(dim=-1, descending=True, stable=True)
    return input_ids.gather(-1, order), attention_mask.gather(-1, order)
