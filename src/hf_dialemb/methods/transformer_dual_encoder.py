"""Transformer dual encoder: any backbone reads contexts and responses; it is trained as `dual_encoder` is."""

from collections.abc import Sequence
from typing import Self

from huggingface_hub.dataclasses import strict
from transformers import PreTrainedTokenizerBase

from ..dialogue import ROLES, Dialogue
from ..modeling import configuration_dual_encoder as settings
from ..modeling import modeling_dual_encoder as published
from .backbone_model import load_backbone
from .config import check_positions
from .dual_encoder import TowerRanker, TowerRankerConfig, collate
from .layout import UNLIMITED
from .markers import add_markers, ranking_template, special_tokens_around
from .method import Method
from .ranker import RankingExamples


@strict
class TransformerDualEncoderConfig(settings.TransformerDualEncoderConfig, TowerRankerConfig):
    """Settings of the dual encoder of transformers, as published."""


class TransformerDualEncoderModel(TowerRanker, published.TransformerDualEncoderModel):
    """The means of a backbone's tokens."""

    config: TransformerDualEncoderConfig

    @classmethod
    def build(
        cls, backbone: str | None, dialogues: Sequence[Dialogue], dropout: float | None = None, **settings: object
    ) -> tuple[Self, PreTrainedTokenizerBase]:
        """Build an untrained model around any encoder that `AutoModel` loads; see `MethodModel`."""
        assert backbone is not None, "settings without a backbone are refused before"
        pretrained = load_backbone(backbone, dropout)
        tokenizer = pretrained.tokenizer
        config = TransformerDualEncoderConfig(encoder_config=pretrained.encoder.config, **settings)  # type: ignore[arg-type]
        for name in config.limits:
            check_positions(name, getattr(config, name), pretrained.positions, backbone)
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


METHOD = Method(
    "transformer_dual_encoder",
    TransformerDualEncoderConfig,
    TransformerDualEncoderModel,
    RankingExamples,
    collate,
    min_turns=2,
    title="Dual encoder of transformers",
    paper="mehri-eskenazi-2019-multi",
    suite="mgt",
    what=(
        "A pretrained encoder reads a context and a response; the product of their vectors is the score. In training "
        "the true response is to be found among others."
    ),
)
