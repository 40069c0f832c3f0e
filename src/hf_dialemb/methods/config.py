"""Settings that methods share: of encoders, of dialogues or of utterances, and of rankers of responses."""

from dataclasses import fields
from typing import Any, ClassVar, Literal

from huggingface_hub.dataclasses import strict
from transformers import AutoConfig, PreTrainedConfig
from transformers.configuration_utils import SubConfigSpec

from ..dialogue import ROLES
from ..errors import InputError, unknown_name
from ..ranges import ABOVE_ZERO as ABOVE_ZERO
from ..ranges import Range as Range
from ..ranges import Ranges as Ranges
from ..ranges import check_range as check_range
from ..ranges import check_ranges as check_ranges

Kind = Literal["dialogues", "utterances", "responses"]
"""What a model reads: whole dialogues, single utterances, or contexts with responses to choose from."""

# Settings that the backbone, the corpus or the members decide.
_DERIVED = {"encoder_config", "marker_ids", "vocab_size", "opening_tokens", "closing_tokens", "members"}
_LONGEST = 512  # tokens that an encoder reads where nothing else is said and its backbone has positions for more
# What transformers itself passes when it copies a config, beside the fields of PreTrainedConfig.
_LOADER_KEYS = {
    "auto_map", "model_type", "_name_or_path", "name_or_path", "attn_implementation", "torch_dtype", "num_labels",
    "_attn_implementation", "_commit_hash", "adapter_kwargs",
}  # fmt: skip


@strict
class MethodConfig(PreTrainedConfig):
    """What the settings of all methods share: a misspelt name is an error, and so is a number out of its range.

    Attributes:
        kind: What the model reads.
        limits: Which settings say how much of it.
        ranges: What numbers may be, of the settings that a class has itself; None is always allowed.

    Raises:
        InputError: A name is misspelt or a value is out of range.
    """

    kind: ClassVar[Kind]
    limits: ClassVar[tuple[str, ...]] = ("max_tokens",)
    ranges: ClassVar[Ranges] = {}

    def __post_init__(self, **kwargs: Any) -> None:  # noqa: ANN401 - whatever a config file holds
        base = {field.name for field in fields(PreTrainedConfig)}
        # A saved config (it names the version) was checked when it was made, and holds keys that transformers added.
        for name in kwargs if self.transformers_version is None else ():
            if name not in _LOADER_KEYS | base:
                raise unknown_name(f"setting of {type(self).__name__}", name, own_settings(type(self)))
        super().__post_init__(**kwargs)  # type: ignore[no-untyped-call]
        for owner in reversed(type(self).__mro__):
            check_ranges(self, vars(owner).get("ranges", {}))


@strict
class EncoderConfig(MethodConfig):
    """Settings of every encoder.

    Attributes:
        encoder_config: The backbone's own config.
        max_tokens: Longest sequence in tokens; the rest is cut and counted.
        frozen_layers: Backbone layers, from the bottom, that do not learn; above 0 the embedding tables do not learn
            either.
    """

    sub_configs_defaults: ClassVar[dict[str, Any]] = {"encoder_config": SubConfigSpec(AutoConfig, model_type="bert")}
    ranges: ClassVar[Ranges] = {"max_tokens": Range(8), "frozen_layers": Range(0)}

    encoder_config: dict[str, Any] | PreTrainedConfig | None = None
    max_tokens: int = 512
    frozen_layers: int = 0

    @property
    def longest_text(self) -> int:
        """Where an encoder cuts what it reads, in tokens."""
        return self.max_tokens

    def fit(self, limit: int | None, backbone: str) -> None:
        """Fits lengths to the positions of a backbone, None for any number; an `InputError` says what is too long."""
        name = "max_tokens" if self.longest_text == self.max_tokens else "encoding_tokens"
        check_positions(name, self.longest_text, limit, backbone)

    @property
    def hidden_size(self) -> int:
        """Width D of the embedding."""
        return int(self.encoder_config.hidden_size)  # type: ignore[union-attr]


@strict
class DialogueConfig(EncoderConfig):
    """Settings of every dialogue encoder, beside those of `EncoderConfig`.

    Attributes:
        num_roles: Speakers that the model tells apart, 1 to 5.
        marker_ids: Token ids of the speakers' markers in rendered dialogues.
        max_turns: Only the last so many turns are read (PLATO: 15); None reads all.
        keep: Which end of a dialogue that is too long stays.
        whole_turns: Cut between turns where possible; False cuts at the token (the released program).
        wrapped: Open and close the sequence with the tokenizer's special tokens ([CLS], [SEP]); PLATO: False.
        opening_tokens: How many tokens open a sequence; None, of older checkpoints, means 1 if ``wrapped``.
        closing_tokens: And how many close it.
        end_of_utterance: A vocabulary token after each turn (PLATO: ``[unused1]``); None for none.
        position_layout: Count positions along the sequence, or afresh in each utterance (PLATO).
        turn_order: Number turns upwards from 0, or downwards to 1 for the last (PLATO).
        num_turn_embeddings: Rows of the turn table; later turns share the last row.
        role_alignment: ``"official"`` repeats the released program's error: beyond ``max_turns`` the roles of the kept
            turns are read from the start of the dialogue.
        pooling: Sum of the speakers' means (dial2vec, equation 4), or the mean of all tokens.
    """

    kind: ClassVar[Kind] = "dialogues"
    limits: ClassVar[tuple[str, ...]] = ("max_tokens", "num_roles")
    ranges: ClassVar[Ranges] = {
        "num_roles": Range(1, len(ROLES)), "max_turns": Range(1), "num_turn_embeddings": Range(1)
    }  # fmt: skip

    num_roles: int = 2
    marker_ids: list[int] | None = None
    max_turns: int | None = None
    keep: Literal["start", "end"] = "start"
    whole_turns: bool = True
    wrapped: bool = True
    opening_tokens: int | None = None
    closing_tokens: int | None = None
    end_of_utterance: str | None = None
    position_layout: Literal["sequence", "utterance"] = "sequence"
    turn_order: Literal["ascending", "descending"] = "ascending"
    num_turn_embeddings: int = 64
    role_alignment: Literal["fixed", "official"] = "fixed"
    pooling: Literal["interlocutor", "mean"] = "interlocutor"


@strict
class UtteranceConfig(EncoderConfig):
    """Settings of every utterance encoder, beside those of `EncoderConfig`.

    Attributes:
        max_tokens: Where training cuts texts.
        encoding_tokens: Where the encoder cuts what it reads afterwards, such as whole dialogues; None means
            ``max_tokens``. A new training sets it to what the backbone has positions for, at most 512.
        pooling: What the vector of an utterance is: the mean of its tokens', or that of the first, ``[CLS]``.
        projection_size: Width of the contrastive head's output (both DSE and Dialog2Flow: 128); None contrasts the
            embeddings themselves. Heads are for training alone and are not exported.
        chunk_size: Gradient caching: activations of so many utterances are in memory at once, the others are computed
            again in the backward pass; the gradients are the same. None keeps all.
    """

    kind: ClassVar[Kind] = "utterances"
    ranges: ClassVar[Ranges] = {"projection_size": Range(1), "chunk_size": Range(1)}

    max_tokens: int = 64
    encoding_tokens: int | None = None
    pooling: Literal["mean", "cls"] = "mean"
    projection_size: int | None = 128
    chunk_size: int | None = None

    def __post_init__(self, **kwargs: Any) -> None:  # noqa: ANN401
        super().__post_init__(**kwargs)
        check_range("encoding_tokens", self.encoding_tokens, self.max_tokens)

    @property
    def longest_text(self) -> int:
        """Where an encoder cuts what it reads, in tokens."""
        return self.encoding_tokens or self.max_tokens

    def fit(self, limit: int | None, backbone: str) -> None:
        """Fits lengths to the positions of a backbone; see `EncoderConfig.fit`."""
        super().fit(limit, backbone)
        if self.encoding_tokens is None:
            self.encoding_tokens = max(self.max_tokens, min(_LONGEST, limit or _LONGEST))


@strict
class RankerConfig(MethodConfig):
    """Settings of every ranker of responses.

    Attributes:
        max_context_tokens: Of a context the last so many tokens are read, the marks of its speakers among them; the
            rest is cut and counted.
        max_response_tokens: Of a response the first so many are read.
        num_candidates: K, among how many responses the true one is to be found in training (20 on MultiWOZ, 10 on
            Ubuntu).
        responses: Which turns are responses: what the assistant says, every turn but the first, or the last turn alone.
            What comes before them in the dialogue is their context.
        granularity: From which segment of the other responses, ordered by their similarity to the true one, the
            negatives are drawn (section 3.3): 1 is the closest, for the highest granularity, and ``num_granularities``
            the furthest, for the highest abstraction. None draws them from all.
        num_granularities: L, the number of segments, all of one size.
    """

    kind: ClassVar[Kind] = "responses"
    limits: ClassVar[tuple[str, ...]] = ("max_context_tokens", "max_response_tokens")
    ranges: ClassVar[Ranges] = {
        "max_context_tokens": Range(8), "max_response_tokens": Range(8), "num_candidates": Range(2),
        "num_granularities": Range(1),
    }  # fmt: skip

    max_context_tokens: int = 160
    max_response_tokens: int = 160
    num_candidates: int = 20
    responses: Literal["assistant", "any", "last"] = "any"
    granularity: int | None = None
    num_granularities: int = 5

    def __post_init__(self, **kwargs: Any) -> None:  # noqa: ANN401
        super().__post_init__(**kwargs)
        check_range("granularity", self.granularity, 1, self.num_granularities)


def check_positions(name: str, value: int, limit: int | None, backbone: str) -> None:
    """Raises InputError where a backbone has fewer positions than are to be read; None is any number of them."""
    if limit is not None and value > limit:
        raise InputError(f"{name}: got {value}, expected at most {limit}, the positions of '{backbone}'")


def own_settings(config_class: type) -> list[str]:
    """Returns the names of a config's settings that a user may set: those of our classes, without the derived ones."""
    base = {field.name for field in fields(PreTrainedConfig)} | _DERIVED
    return [field.name for field in fields(config_class) if field.name not in base]
