"""Configuration of Dial2Vec."""

from typing import Any, ClassVar, Literal

from transformers import AutoConfig, PreTrainedConfig


class Dial2VecConfig(PreTrainedConfig):
    """Settings of `Dial2VecModel`.

    Attributes:
        encoder_config: The configuration of the pretrained encoder.
        max_tokens: Longest sequence that the encoder reads; longer dialogues are cut.
        num_roles: Number of speakers that the model tells apart, R.
        marker_ids: Token ids of the speakers' markers, in the order of the roles.
        keep: Which end of a dialogue stays if it is too long.
        whole_turns: Whether to cut between turns where possible.
        wrapped: Whether special tokens, such as ``[CLS]`` and ``[SEP]``, open and close a sequence.
        opening_tokens: Number of tokens that open a sequence; None, in older checkpoints, means 1 if ``wrapped``.
        closing_tokens: Number of tokens that close a sequence; None as above.
        position_layout: Whether positions are counted along the sequence, or afresh in each turn (PLATO).
        turn_order: Whether turns are numbered upwards from 0, or downwards to 1 for the last (PLATO).
        num_turn_embeddings: Rows of the turn table; later turns share the last row.
        pooling: Sum of the speakers' means (equation 4 of the paper), or the mean of all tokens.
    """

    model_type = "dialemb-dial2vec"
    sub_configs: ClassVar[dict[str, Any]] = {"encoder_config": AutoConfig}

    encoder_config: dict[str, Any] | PreTrainedConfig | None = None
    max_tokens: int = 512
    num_roles: int = 2
    marker_ids: list[int] | None = None
    keep: Literal["start", "end"] = "start"
    whole_turns: bool = True
    wrapped: bool = True
    opening_tokens: int | None = None
    closing_tokens: int | None = None
    position_layout: Literal["sequence", "utterance"] = "sequence"
    turn_order: Literal["ascending", "descending"] = "ascending"
    num_turn_embeddings: int = 64
    pooling: Literal["interlocutor", "mean"] = "interlocutor"

    def __post_init__(self, **kwargs: Any) -> None:
        if not isinstance(self.encoder_config, PreTrainedConfig):
            self.encoder_config = AutoConfig.for_model(**{"model_type": "bert", **(self.encoder_config or {})})
        super().__post_init__(**kwargs)

    @property
    def hidden_size(self) -> int:
        """Width D of the embedding."""
        return int(self.encoder_config.hidden_size)  # type: ignore[union-attr]
