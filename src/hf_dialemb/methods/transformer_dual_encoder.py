"""Transformer dual encoder: any backbone reads contexts and responses; what is trained is as for `dual_encoder`."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

from huggingface_hub.dataclasses import strict
from torch import Tensor
from transformers import AutoConfig, PreTrainedConfig, PreTrainedTokenizerBase
from transformers.configuration_utils import SubConfigSpec

from ..dialogue import ROLES, Dialogue
from .backbone_model import AnyAttention, load_backbone, without_pooler
from .config import check_positions
from .dual_encoder import TowerRanker, TowerRankerConfig, collate
from .layout import UNLIMITED
from .markers import add_markers, ranking_template, special_tokens_around
from .method import Method
from .ranking_examples import RankingExamples
from .utterance import mean_of_tokens


@strict
class TransformerDualEncoderConfig(TowerRankerConfig):
    """Settings of the dual encoder of transformers, beside those of `TowerRankerConfig`.

    Attributes:
        encoder_config: The backbone's own config.
        towers: One backbone for contexts and responses, or one for each, both from the same weights.
    """

    model_type = "dialemb-transformer-dual-encoder"
    sub_configs_defaults: ClassVar[dict[str, Any]] = {"encoder_config": SubConfigSpec(AutoConfig, model_type="bert")}

    encoder_config: dict[str, Any] | PreTrainedConfig | None = None
    max_response_tokens: int = 64
    score: Literal["dot", "cosine"] = "cosine"
    loss_temperature: float = 0.05
    towers: Literal["shared", "separate"] = "shared"

    @property
    def hidden_size(self) -> int:
        """Width D of the embedding."""
        return int(self.encoder_config.hidden_size)  # type: ignore[union-attr]


class TransformerDualEncoderModel(AnyAttention, TowerRanker):
    """The means of a backbone's tokens."""

    config: TransformerDualEncoderConfig
    base_model_prefix = "backbone"
    supports_gradient_checkpointing = True

    def __init__(self, config: TransformerDualEncoderConfig) -> None:
        super().__init__(config)
        self.encoder = without_pooler(config)
        self.response_encoder = without_pooler(config) if config.towers == "separate" else None
        self.post_init()  # type: ignore[no-untyped-call]

    @classmethod
    def build(
        cls, backbone: str | None, dialogues: Sequence[Dialogue], dropout: float | None = None, **settings: object
    ) -> tuple[Self, PreTrainedTokenizerBase]:
        """See `MethodModel`; the backbone is any encoder that `AutoModel` loads."""
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

    def get_input_embeddings(self) -> Any:  # noqa: ANN401 - a module
        """Returns the token table of the tower of contexts."""
        return self.encoder.get_input_embeddings()

    def encode_texts(self, input_ids: Tensor, attention_mask: Tensor, tower: str) -> Tensor:
        """See `TowerRanker`."""
        encoder = self.encoder if tower == "context" or self.response_encoder is None else self.response_encoder
        hidden = encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        return mean_of_tokens(hidden, attention_mask)


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
