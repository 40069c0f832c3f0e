"""Configurations of the dual encoders."""

from typing import Any, ClassVar, Literal

from transformers import AutoConfig, PreTrainedConfig


class TowerRankerConfig(PreTrainedConfig):
    """Settings of any ranker of two towers, one for contexts and one for responses.

    Attributes:
        max_context_tokens: Number of last tokens of a context that are read.
        max_response_tokens: Number of first tokens of a response that are read.
        score: Whether a score is the dot product of context and response, or their cosine.
        loss_temperature: Divides the scores.
        marker_ids: Token ids of the markers: one for each speaker, and last that of a response.
        opening_tokens: Number of special tokens, such as ``[CLS]``, before each sequence.
        closing_tokens: Number of special tokens after each sequence.
    """

    max_context_tokens: int = 160
    max_response_tokens: int = 160
    score: Literal["dot", "cosine"] = "dot"
    loss_temperature: float = 1.0
    marker_ids: list[int] | None = None
    opening_tokens: int = 0
    closing_tokens: int = 0


class DualEncoderConfig(TowerRankerConfig):
    """Settings of `DualEncoderModel`, beside those of `TowerRankerConfig`.

    Attributes:
        vocabulary_size: Largest number of words, with the entries for padding, unknown words and
            markers (MultiWOZ 1,261, Ubuntu 10,002).
        vocab_size: Number of words after the corpus was counted.
        embedding_size: Width of a word's vector (MultiWOZ 50, Ubuntu 300).
        hidden_size: Width D of the LSTMs' states.
    """

    model_type = "dialemb-dual-encoder"

    vocabulary_size: int = 1_261
    vocab_size: int | None = None
    embedding_size: int = 50
    hidden_size: int = 150


class TransformerDualEncoderConfig(TowerRankerConfig):
    """Settings of `TransformerDualEncoderModel`, beside those of `TowerRankerConfig`.

    Attributes:
        encoder_config: The configuration of the pretrained encoder.
        towers: Whether contexts and responses share an encoder, or have one each.
    """

    model_type = "dialemb-transformer-dual-encoder"
    sub_configs: ClassVar[dict[str, Any]] = {"encoder_config": AutoConfig}

    encoder_config: dict[str, Any] | PreTrainedConfig | None = None
    max_response_tokens: int = 64
    score: Literal["dot", "cosine"] = "cosine"
    loss_temperature: float = 0.05
    towers: Literal["shared", "separate"] = "shared"

    def __post_init__(self, **kwargs: Any) -> None:
        if not isinstance(self.encoder_config, PreTrainedConfig):
            self.encoder_config = AutoConfig.for_model(
                **{"model_type": "bert", **(self.encoder_config or {})}
            )
        super().__post_init__(**kwargs)

    @property
    def hidden_size(self) -> int:
        """Width D of the embedding."""
        config: Any = self.encoder_config
        return int(getattr(config, "hidden_size", None) or config.encoder.hidden_size)
