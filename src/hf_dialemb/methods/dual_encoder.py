"""Dual encoders.

A context and a response are vectors, and their product is the score (Lowe et al., 2015).

As in Multi-Granularity Representations of Dialog (Mehri and Eskenazi, EMNLP 2019, arXiv:1908.09890,
section 3.1), they learn to find the true response among K. One reads words by LSTMs, the other by
any pretrained encoder.
"""

from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Self

from huggingface_hub.dataclasses import strict
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from ..dialogue import ROLES, Dialogue
from ..modeling import configuration_dual_encoder as settings
from ..modeling import modeling_dual_encoder as published
from ..ranges import ABOVE_ZERO, Range, Ranges
from .backbone_model import load_backbone
from .batching import in_parts
from .config import RankerConfig, check_positions, warn_of_modules
from .layout import UNLIMITED, Truncation, add_markers, ranking_template, special_tokens_around
from .method import ABOUT, Method
from .ranker import (
    Ranker,
    RankingExample,
    RankingExamples,
    context_ids,
    response_ids,
    with_candidates,
)
from .vocabulary import MARKS, WordRanker

_ROWS = 64  # texts of like length that are encoded together, padded to the longest of them


@strict
class TowerRankerConfig(RankerConfig, settings.TowerRankerConfig):
    """Settings of every ranker of two towers, as published."""

    ranges: ClassVar[Ranges] = {"loss_temperature": ABOVE_ZERO}


class TowerRanker(Ranker, published.TowerRanker):
    """A ranker of two towers that encodes texts of like length together."""

    config: TowerRankerConfig
    multiplies: ClassVar[bool] = True

    def encode_many(self, input_ids: Tensor, attention_mask: Tensor, tower: str) -> Tensor:
        """Embed any number of texts, (N, L) to (N, D) float32.

        ``tower`` is "context" or "response".
        """
        encode = partial(self.encode_texts, tower=tower)
        vectors = in_parts(self, encode, attention_mask, _ROWS, input_ids, attention_mask)
        return vectors.float()  # type: ignore[no-any-return]


@strict
class DualEncoderConfig(settings.DualEncoderConfig, TowerRankerConfig):
    """Settings of the dual encoder of words; the defaults are those for MultiWOZ."""

    ranges: ClassVar[Ranges] = {"embedding_size": Range(1), "hidden_size": Range(1)}


class DualEncoderModel(TowerRanker, WordRanker, published.DualEncoderModel):
    """Two LSTMs over the words of a corpus."""

    config: DualEncoderConfig

    @staticmethod
    def prepare_tokenizer(tokenizer: PreTrainedTokenizerBase, config: DualEncoderConfig) -> None:
        """Set the chat template and note the markers; see `WordRanker`."""
        config.marker_ids = tokenizer.convert_tokens_to_ids(list(MARKS))  # type: ignore[assignment]
        tokenizer.chat_template = ranking_template(tokenizer, config.marker_ids)  # type: ignore[arg-type]
        tokenizer.model_max_length = UNLIMITED


@strict
class TransformerDualEncoderConfig(settings.TransformerDualEncoderConfig, TowerRankerConfig):
    """Settings of the dual encoder of transformers, as published."""


class TransformerDualEncoderModel(TowerRanker, published.TransformerDualEncoderModel):
    """The means of a backbone's tokens."""

    config: TransformerDualEncoderConfig

    @classmethod
    def build(
        cls,
        backbone: str | None,
        dialogues: Sequence[Dialogue],
        dropout: float | None = None,
        **settings: object,
    ) -> tuple[Self, PreTrainedTokenizerBase]:
        """Build an untrained model around any encoder that `AutoModel` loads; see `MethodModel`."""
        pretrained = load_backbone(
            str(backbone), dropout, bool(settings.pop("trust_remote_code", False))
        )
        tokenizer = pretrained.tokenizer
        config = TransformerDualEncoderConfig(encoder_config=pretrained.encoder.config, **settings)  # type: ignore[arg-type]
        for name in config.limits:
            check_positions(name, getattr(config, name), pretrained.positions, str(backbone))
        warn_of_modules(pretrained.modules, str(backbone), config.model_type)
        config.marker_ids = add_markers(tokenizer, len(ROLES) + 1)
        tokenizer.chat_template = ranking_template(tokenizer, config.marker_ids)
        tokenizer.model_max_length = UNLIMITED
        config.opening_tokens, config.closing_tokens = map(len, special_tokens_around(tokenizer))
        tokenizer.truncation_side = "left"
        pretrained.make_room()
        model = cls(config)
        pretrained.fill(*filter(None, (model.encoder, model.response_encoder)))
        model.train(False)
        return model, tokenizer


def collate(
    examples: list[RankingExample],
    tokenizer: PreTrainedTokenizerBase,
    config: TowerRankerConfig,
    count: Truncation,
) -> dict[str, Tensor]:
    """Lay out B contexts (B, L) and the K candidates of each (B, K, M); see `context_ids`."""
    *speakers, marker = config.marker_ids or []
    contexts = [example.context for example in examples]
    batch = context_ids(
        contexts, tokenizer, speakers[: len(ROLES)], config.max_context_tokens, count
    )
    texts = [text for example in examples for text in example.candidates]
    candidates = response_ids(texts, tokenizer, marker, config.max_response_tokens, count)
    return with_candidates(batch, candidates)


METHOD = Method(
    "dual_encoder",
    DualEncoderConfig,
    DualEncoderModel,
    RankingExamples,
    collate,
    min_turns=2,
    from_scratch=True,
    **ABOUT["dual_encoder"],
)
TRANSFORMER_METHOD = Method(
    "transformer_dual_encoder",
    TransformerDualEncoderConfig,
    TransformerDualEncoderModel,
    RankingExamples,
    collate,
    min_turns=2,
    **ABOUT["transformer_dual_encoder"],
)
