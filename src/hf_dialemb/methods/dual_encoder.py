"""Dual encoder: a context and a response are vectors, and their product is the score (Lowe et al., 2015).

As in Multi-Granularity Representations of Dialog (Mehri and Eskenazi, EMNLP 2019, arXiv:1908.09890, section 3.1):
two one-layer LSTMs over words, each with a word table of its own, and the dot product of their last states. It learns
to find the true response among K. `TowerRanker` holds what any two encoders need to serve so.
"""

from functools import partial
from typing import ClassVar, Literal

import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from ..dialogue import ROLES
from .backbone_model import autocast_off
from .batching import in_parts
from .config import ABOVE_ZERO, Range, Ranges, RankerConfig
from .layout import UNLIMITED, Truncation
from .markers import ranking_template
from .method import Method
from .ranker import Ranker, RankingExample, candidates_of, context_ids, response_ids, with_candidates
from .ranking_examples import RankingExamples
from .words import MARKS, WordRanker

_ROWS = 64  # texts of like length that are encoded together, each such part padded to its own longest


@strict
class TowerRankerConfig(RankerConfig):
    """Settings of every ranker of two towers, beside those of `RankerConfig`.

    Attributes:
        score: The dot product of context and response, as in the paper, or their cosine.
        loss_temperature: Divides the scores (the paper: 1).
        marker_ids: Token ids of the marks: one for each speaker, and last that of a response.
        opening_tokens: How many tokens of the tokenizer's own stand before each sequence, such as ``[CLS]``.
        closing_tokens: And how many after it.
    """

    ranges: ClassVar[Ranges] = {"loss_temperature": ABOVE_ZERO}

    score: Literal["dot", "cosine"] = "dot"
    loss_temperature: float = 1.0
    marker_ids: list[int] | None = None
    opening_tokens: int = 0
    closing_tokens: int = 0


class TowerRanker(Ranker):
    """An encoder of contexts and one of responses."""

    config: TowerRankerConfig
    multiplies: ClassVar[bool] = True

    def encode_texts(self, input_ids: Tensor, attention_mask: Tensor, tower: str) -> Tensor:
        """Embeds texts of like length, padded on the right, (N, L) to (N, D); ``tower``: "context" or "response"."""
        raise NotImplementedError

    def score(
        self, input_ids: Tensor, attention_mask: Tensor, candidate_ids: Tensor, candidate_mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """See `Ranker`."""
        contexts = self._embed_all(*_left_aligned(input_ids, attention_mask), "context")  # (B, D)
        candidates = _left_aligned(candidate_ids.flatten(0, 1), candidate_mask.flatten(0, 1))
        responses = self._embed_all(*candidates, "response")
        return self.product(contexts, responses.unflatten(0, candidate_ids.shape[:2])), contexts

    def product(self, contexts: Tensor, responses: Tensor) -> Tensor:
        """Multiplies contexts (B, D) with responses of their own (B, K, D) to scores (B, K)."""
        if self.config.score == "cosine":
            contexts, responses = nn.functional.normalize(contexts, dim=-1), nn.functional.normalize(responses, dim=-1)
        with autocast_off(contexts):  # scores in half precision would tie
            return torch.einsum("bd,bkd->bk", contexts, responses) / self.config.loss_temperature

    def embed(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """See `Ranker`; contexts and responses may come mixed, longer than the limits, and padded on either side."""
        assert self.config.marker_ids is not None
        input_ids, attention_mask = _left_aligned(input_ids, attention_mask)
        is_response = ((input_ids == self.config.marker_ids[-1]) & attention_mask.bool()).any(-1)  # (N,)
        input_ids, attention_mask = self._cut(input_ids, attention_mask, is_response)
        if torch.compiler.is_exporting():  # a graph holds both ways
            response, context = (self.encode_texts(input_ids, attention_mask, name) for name in ("response", "context"))
            return torch.where(is_response.unsqueeze(-1), response, context)
        parts, rows = [], []
        for tower, chosen in (("response", is_response), ("context", ~is_response)):
            if chosen.any():
                parts.append(self._embed_all(input_ids[chosen], attention_mask[chosen], tower))
                rows.append(chosen.nonzero().squeeze(-1))
        return torch.cat(parts)[torch.cat(rows).argsort()]

    def _cut(self, input_ids: Tensor, attention_mask: Tensor, is_response: Tensor) -> tuple[Tensor, Tensor]:
        """Cuts sequences (N, L) as `context_ids` and `response_ids` do, which leaves theirs as they are."""
        config = self.config
        limits = config.max_context_tokens, config.max_response_tokens
        length = attention_mask.sum(-1, keepdim=True)
        kept = torch.where(is_response, limits[1], limits[0]).unsqueeze(-1).minimum(length)  # (N, 1)
        head = torch.where(is_response.unsqueeze(-1), kept - config.closing_tokens, config.opening_tokens)
        # Not a slice: that would tie an exported graph to texts on one side of the limit.
        place = torch.arange(torch.sym_min(input_ids.shape[1], max(limits)), device=input_ids.device)
        source = torch.where(place < head, place, place + length - kept).clamp(max=input_ids.shape[1] - 1)
        return input_ids.gather(1, source), (place < kept).to(attention_mask.dtype)

    def _embed_all(self, input_ids: Tensor, attention_mask: Tensor, tower: str) -> Tensor:
        encode = partial(self.encode_texts, tower=tower)
        vectors: Tensor = in_parts(encode, attention_mask, _ROWS, input_ids, attention_mask)
        return vectors.float()


def _left_aligned(input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
    """Moves padding (N, L) to the right, wherever it stands; an exported graph takes padding on the right alone."""
    if torch.compiler.is_exporting() or not (attention_mask.diff(dim=-1) > 0).any():
        return input_ids, attention_mask
    order = attention_mask.argsort(dim=-1, descending=True, stable=True)
    return input_ids.gather(-1, order), attention_mask.gather(-1, order)


@strict
class DualEncoderConfig(TowerRankerConfig):
    """Settings of the dual encoder of words, beside those of `TowerRankerConfig`; the defaults are those for MultiWOZ.

    Attributes:
        vocabulary_size: How many words it knows, with those for padding, unknown words and speakers (MultiWOZ 1,261,
            Ubuntu 10,002).
        vocab_size: How many it knows after the corpus was counted.
        embedding_size: Width of a word's vector (MultiWOZ 50, Ubuntu 300).
        hidden_size: D, width of the LSTMs' states.
    """

    model_type = "dialemb-dual-encoder"
    ranges: ClassVar[Ranges] = {"embedding_size": Range(1), "hidden_size": Range(1)}

    vocabulary_size: int = 1_261
    vocab_size: int | None = None
    embedding_size: int = 50
    hidden_size: int = 150


class WordTower(nn.Module):
    """A word table and a one-layer LSTM; the embedding is the state after the last word (equations 1 and 2)."""

    def __init__(self, config: DualEncoderConfig) -> None:
        super().__init__()
        self.words = nn.Embedding(config.vocab_size or config.vocabulary_size, config.embedding_size)
        self.reader = nn.LSTM(config.embedding_size, config.hidden_size, batch_first=True)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Reads texts (N, L), padded on the right, and returns their last states (N, D)."""
        states, _ = self.reader(self.words(input_ids))  # padded, not packed: on CPUs this way is several times faster
        last = (attention_mask.sum(-1) - 1).clamp(min=0)
        found: Tensor = states.gather(1, last[:, None, None].expand(-1, 1, states.shape[-1])).squeeze(1)
        return found


class DualEncoderModel(TowerRanker, WordRanker):
    """Two LSTMs over words of the corpus."""

    config: DualEncoderConfig

    def __init__(self, config: DualEncoderConfig) -> None:
        super().__init__(config)
        self.context = WordTower(config)
        self.response = WordTower(config)
        self.post_init()  # type: ignore[no-untyped-call]

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Draws as torch itself does: transformers' own way would leave an LSTM as it is, and shrink the words."""
        if isinstance(module, nn.Embedding | nn.LSTM) and not all(
            getattr(parameter, "_is_hf_initialized", False) for parameter in module.parameters()
        ):
            module.reset_parameters()

    @staticmethod
    def prepare_tokenizer(tokenizer: PreTrainedTokenizerBase, config: DualEncoderConfig) -> None:
        """See `WordRanker`."""
        config.marker_ids = tokenizer.convert_tokens_to_ids(list(MARKS))  # type: ignore[assignment]
        tokenizer.chat_template = ranking_template(tokenizer, config.marker_ids)  # type: ignore[arg-type]
        tokenizer.model_max_length = UNLIMITED

    def get_input_embeddings(self) -> nn.Module:
        """Returns the word table of contexts; responses have one of their own."""
        return self.context.words

    def encode_texts(self, input_ids: Tensor, attention_mask: Tensor, tower: str) -> Tensor:
        """See `TowerRanker`."""
        reader = self.context if tower == "context" else self.response
        states: Tensor = reader(input_ids, attention_mask)
        return states


def collate(
    examples: list[RankingExample], tokenizer: PreTrainedTokenizerBase, config: TowerRankerConfig, count: Truncation
) -> dict[str, Tensor]:
    """Lays out B contexts (B, L) and the K candidates of each (B, K, M); see `context_ids` and `candidates_of`."""
    assert config.marker_ids is not None
    *speakers, marker = config.marker_ids
    contexts = [example.context for example in examples]
    batch = context_ids(contexts, tokenizer, speakers[: len(ROLES)], config.max_context_tokens, count)
    found = response_ids(candidates_of(examples), tokenizer, marker, config.max_response_tokens, count)
    return with_candidates(batch, found)


METHOD = Method(
    "dual_encoder",
    DualEncoderConfig,
    DualEncoderModel,
    RankingExamples,
    collate,
    min_turns=2,
    from_scratch=True,
    title="Dual encoder",
    paper="mehri-eskenazi-2019-multi",
    suite="mgt",
    what=(
        "Two LSTMs over words read a context and a response; the product of their last states is the score. In "
        "training the true response is to be found among others."
    ),
)
