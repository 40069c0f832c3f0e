"""Configuration of Dial2Vec, and what it shares with other models around a pretrained encoder."""

from typing import Any, ClassVar, Literal

from transformers import AutoConfig, PreTrainedConfig


class BackboneConfig(PreTrainedConfig):
    """Settings of any model around a pretrained encoder.

    Attributes:
        encoder_config: The configuration of the pretrained encoder.
    """

    sub_configs: ClassVar[dict[str, Any]] = {"encoder_config": AutoConfig}

    encoder_config: dict[str, Any] | PreTrainedConfig | None = None

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


class Dial2VecConfig(BackboneConfig):
    """Settings of `Dial2VecModel`.

    Attributes:
        max_tokens: Maximum number of tokens that the encoder reads; longer dialogues are cut.
        num_roles: Number R of speakers that the model distinguishes.
        marker_ids: Token ids of the markers that name the speakers, in the order of role ids 0 to R
            - 1.
        keep: Which end of a dialogue is kept if the dialogue is too long.
        whole_turns: Whether to cut between turns, and within a turn only if no whole turn fits.
        wrapped: Whether special tokens, such as ``[CLS]`` and ``[SEP]``, open and close a sequence.
        opening_tokens: Number of tokens that open a sequence; None, in older checkpoints, means 1
            if ``wrapped``.
        closing_tokens: Number of tokens that close a sequence; None means the same as for
            ``opening_tokens``.
        position_layout: ``"sequence"`` counts positions along the sequence, ``"utterance"`` within
            each turn (PLATO).
        turn_order: ``"ascending"`` numbers turns from 0, ``"descending"`` counts down to 1 at the
            last turn (PLATO).
        num_turn_embeddings: Number of turn embeddings; turns with higher numbers share the last.
        pooling: ``"interlocutor"`` is the sum of the speakers' means (equation 4 of the paper),
            ``"mean"`` the mean of all tokens.
    """

    model_type = "dialemb-dial2vec"

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
