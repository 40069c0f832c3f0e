"""Settings that methods share.

Of encoders of dialogues or utterances, and of rankers of responses.
"""

import logging
from dataclasses import fields
from typing import Any, ClassVar, Literal

from huggingface_hub.dataclasses import strict
from transformers import PreTrainedConfig

from ..dialogue import ROLES
from ..errors import InputError, unknown_name
from ..modeling.configuration_dial2vec import BackboneConfig, Dial2VecConfig
from ..ranges import Range, Ranges, check_range, check_ranges
from ..storage.sentence_modules import SentenceModules

logger = logging.getLogger(__name__)

Kind = Literal["dialogues", "utterances", "responses"]
"""What a model reads.

Whole dialogues, single utterances, or contexts with responses to choose from.
"""

_BASE = {field.name for field in fields(PreTrainedConfig)}
# Settings that the backbone, the corpus or the members decide.
_DERIVED = {
    "encoder_config",
    "marker_ids",
    "vocab_size",
    "opening_tokens",
    "closing_tokens",
    "members",
    "prompts",
    "default_prompt_name",
}
_LONGEST = 512  # tokens that an encoder reads by default if its backbone has positions for more
# Keywords that transformers adds when it copies a config, beside the fields of PreTrainedConfig.
_LOADER_KEYS = {
    "auto_map",
    "model_type",
    "_name_or_path",
    "name_or_path",
    "attn_implementation",
    "torch_dtype",
    "num_labels",
    "_attn_implementation",
    "_commit_hash",
    "adapter_kwargs",
}


@strict
class MethodConfig(PreTrainedConfig):
    """Base of the settings of all methods.

    Raise InputError if a name is misspelt or a number out of range.

    Attributes:
        kind: What the model reads.
        limits: Names of the settings that say how much of it.
        ranges: Allowed numbers of the settings that a class adds; None is always allowed.
    """

    kind: ClassVar[Kind]
    limits: ClassVar[tuple[str, ...]] = ("max_tokens",)
    ranges: ClassVar[Ranges] = {}

    def __post_init__(self, **kwargs: Any) -> None:
        # A saved config names the version; it was checked when it was made, and transformers may
        # have added keys.
        unknown = kwargs.keys() - _LOADER_KEYS - _BASE
        if unknown and self.transformers_version is None:
            kind = f"setting of {type(self).__name__}"
            raise unknown_name(kind, min(unknown), own_settings(type(self)))
        super().__post_init__(**kwargs)  # type: ignore[no-untyped-call]
        for owner in reversed(type(self).__mro__):
            check_ranges(self, vars(owner).get("ranges", {}))


@strict
class EncoderConfig(MethodConfig, BackboneConfig):
    """Settings of every encoder.

    Attributes:
        max_tokens: Longest sequence in tokens; the rest is cut and counted.
        frozen_layers: Number of backbone layers, from the bottom, that do not learn; above 0 the
            embedding tables do not learn either.
    """

    ranges: ClassVar[Ranges] = {"max_tokens": Range(8), "frozen_layers": Range(0)}

    max_tokens: int = 512
    frozen_layers: int = 0

    @property
    def longest_text(self) -> int:
        """Where an encoder cuts what it reads, in tokens."""
        return getattr(self, "encoding_tokens", None) or self.max_tokens

    def fit(self, limit: int | None, backbone: str) -> None:
        """Fit lengths to the positions of a backbone, None for any number.

        Raise InputError if one is too long.
        """
        check_positions("max_tokens", self.max_tokens, limit, backbone)

    def take_over(self, modules: SentenceModules, backbone: str) -> None:
        """Take over how a backbone makes vectors.

        Log a warning for what the method does in its own way.
        """
        warn_of_modules(modules, backbone, self.model_type)


@strict
class DialogueConfig(Dial2VecConfig, EncoderConfig):
    """Settings of every dialogue encoder.

    Those that the published model reads, and those of its input.

    Attributes:
        max_turns: Number of last turns that are read (PLATO: 15); None reads all.
        end_of_utterance: A vocabulary token after each turn (PLATO: ``[unused1]``); None for none.
    """

    kind: ClassVar[Kind] = "dialogues"
    limits: ClassVar[tuple[str, ...]] = ("max_tokens", "num_roles")
    ranges: ClassVar[Ranges] = {
        "num_roles": Range(1, len(ROLES)),
        "max_turns": Range(1),
        "num_turn_embeddings": Range(1),
    }

    max_turns: int | None = None
    end_of_utterance: str | None = None


@strict
class UtteranceConfig(EncoderConfig):
    """Settings of every utterance encoder, beside those of `EncoderConfig`.

    Attributes:
        max_tokens: Where training cuts texts.
        encoding_tokens: Where the encoder cuts texts afterwards, such as whole dialogues; None
            means ``max_tokens``. A new training sets it to the backbone's positions, at most 512.
        pooling: The vector of an utterance: the ``mean`` of its tokens' vectors, that of the first
            (``cls``) or of the last (``lasttoken``). None takes over the backbone's pooling, or the
            mean if its folder names none.
        projection_size: Width of the contrastive head's output (DSE and Dialog2Flow: 128); None
            contrasts the embeddings themselves. Heads serve training only and are not exported.
        mini_batch_size: Gradient caching: number of utterances whose activations are in memory at
            once. The others are computed again in the backward pass; the gradients are the same.
            None keeps all.
        prompts: Texts that may stand before an utterance, by name, as the backbone has them.
        default_prompt_name: Which of them stands before every utterance; None for none.
    """

    kind: ClassVar[Kind] = "utterances"
    ranges: ClassVar[Ranges] = {"projection_size": Range(1), "mini_batch_size": Range(1)}

    max_tokens: int = 64
    encoding_tokens: int | None = None
    pooling: Literal["mean", "cls", "lasttoken"] | None = None
    projection_size: int | None = 128
    mini_batch_size: int | None = None
    prompts: dict[str, str] | None = None
    default_prompt_name: str | None = None

    def __post_init__(self, **kwargs: Any) -> None:
        super().__post_init__(**kwargs)
        check_range("encoding_tokens", self.encoding_tokens, self.max_tokens)

    @property
    def prompt(self) -> str:
        """The text before every utterance."""
        return (self.prompts or {}).get(self.default_prompt_name or "", "")

    def prompt_of(self, *names: str) -> str:
        """Return the text of the first of some prompts that there is, or the default."""
        known = self.prompts or {}
        return next((known[name] for name in names if name in known), self.prompt)

    def take_over(self, modules: SentenceModules, backbone: str) -> None:
        """Take over prompts, and the pooling unless the settings name one."""
        self.pooling = self.pooling or modules.pooling or "mean"  # type: ignore[assignment]
        self.prompts = modules.prompts
        self.default_prompt_name = modules.default_prompt_name

    def fit(self, limit: int | None, backbone: str) -> None:
        """Fit lengths to the positions of a backbone; see `EncoderConfig.fit`."""
        super().fit(limit, backbone)
        check_positions("encoding_tokens", self.longest_text, limit, backbone)
        for size in getattr(self, "matryoshka_dims", None) or ():
            check_range("matryoshka_dims", size, 1, self.hidden_size)
        if self.encoding_tokens is None:
            self.encoding_tokens = max(self.max_tokens, min(_LONGEST, limit or _LONGEST))


@strict
class RankerConfig(MethodConfig):
    """Settings of every ranker of responses.

    Attributes:
        max_context_tokens: Number of last tokens of a context that are read, speaker markers
            included; the rest is cut and counted.
        max_response_tokens: Number of first tokens of a response that are read.
        num_candidates: K, the number of responses in training, the true one included (MultiWOZ 20,
            Ubuntu 10).
        responses: Which turns are responses: the assistant's, every turn but the first, or the last
            turn only. The turns before are the context.
        granularity: The segment of the other responses, ordered by similarity to the true one, that
            negatives are drawn from (section 3.3): from 1, the closest, to ``num_granularities``,
            the furthest. None draws from all.
        num_granularities: L, the number of segments, all of one size.
    """

    kind: ClassVar[Kind] = "responses"
    limits: ClassVar[tuple[str, ...]] = ("max_context_tokens", "max_response_tokens")
    ranges: ClassVar[Ranges] = {
        "max_context_tokens": Range(8),
        "max_response_tokens": Range(8),
        "num_candidates": Range(2),
        "num_granularities": Range(1),
    }

    max_context_tokens: int = 160
    max_response_tokens: int = 160
    num_candidates: int = 20
    responses: Literal["assistant", "any", "last"] = "any"
    granularity: int | None = None
    num_granularities: int = 5

    def __post_init__(self, **kwargs: Any) -> None:
        super().__post_init__(**kwargs)
        check_range("granularity", self.granularity, 1, self.num_granularities)


def check_positions(name: str, value: int, limit: int | None, backbone: str) -> None:
    """Raise InputError if a backbone has fewer positions than are read.

    None is any number of positions.
    """
    if limit is not None and value > limit:
        raise InputError(
            f"{name}: got {value}, expected at most {limit}, the positions of '{backbone}'"
        )


def warn_of_modules(modules: SentenceModules, backbone: str, model_type: str) -> None:
    """Log a warning where a backbone has a pooling or prompts that a method does not use."""
    if str(modules):
        method = model_type.removeprefix("dialemb-")
        logger.warning(
            "%s pools tokens in its own way and reads no prompts: '%s' loses its %s.",
            method,
            backbone,
            modules,
        )


def own_settings(config_class: type) -> list[str]:
    """Return the names of a config's settings that a user may set.

    Without transformers' own and the derived ones.
    """
    return [field.name for field in fields(config_class) if field.name not in _BASE | _DERIVED]
