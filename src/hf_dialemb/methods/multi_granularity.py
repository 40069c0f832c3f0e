"""Multi-granularity ensemble.

Trained rankers answer together (Mehri and Eskenazi, EMNLP 2019, arXiv:1908.09890).

Each member learnt to tell the true response from others of one granularity (section 3.3); members
may also differ in their seed or checkpoint only. An ensemble is assembled of trained members, not
trained itself.
"""

import json
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from huggingface_hub.dataclasses import strict
from torch import Tensor
from transformers import AutoConfig, AutoTokenizer

from ..errors import InputError
from ..modeling import modeling_multi_granularity as published
from ..storage.pretrained import load_pretrained, resolve_backbone
from . import method_of
from .config import RankerConfig, own_settings
from .layout import Truncation
from .method import ABOUT, Method
from .ranker import Ranker, RankingExample, RankingExamples

log_mean_probability = published.log_mean_probability

_LAYOUT = (
    "marker_ids",
    "max_context_tokens",
    "max_response_tokens",
    "max_turns",
    "max_turn_tokens",
)


@strict
class MultiGranularityConfig(RankerConfig, published.MultiGranularityConfig):
    """The settings of an ensemble, those of `RankerConfig` taken from its first member.

    Raise InputError if there is no member, one is of an unknown type, or they lay out texts in
    different ways.
    """

    has_no_defaults_at_init: ClassVar[bool] = (
        True  # transformers makes no empty one to compare with
    )

    def __post_init__(self, **kwargs: object) -> None:
        super().__post_init__(**kwargs)
        if not self.members:
            raise InputError(
                "members: got none, expected the folders of trained rankers; train them one by one "
                "and assemble them "
                "with MultiGranularityModel.from_members, or let `dialemb papers ensemble` do both"
            )
        first, *others = self.member_configs
        for config in others:
            if _layout(config) != _layout(first):
                raise InputError(
                    f"members: got {first.model_type} with {_layout(first)[1:]} and "
                    f"{config.model_type} with {_layout(config)[1:]}, expected rankers that lay "
                    "out texts alike; train them with the same settings"
                )
        for name in {*own_settings(RankerConfig), "marker_ids"} - {"granularity"}:
            setattr(self, name, getattr(first, name, None))

    @staticmethod
    def member_class(model_type: str) -> Any:
        """Return the class of a member, of any method that ranks."""
        return member_method(model_type).model_class


class MultiGranularityModel(Ranker, published.MultiGranularityModel):
    """Rankers that share a tokenizer, in one checkpoint."""

    config: MultiGranularityConfig

    @classmethod
    def from_members(cls, paths: Sequence[str]) -> tuple[Self, Any]:
        """Assemble trained rankers, that of granularity 1 first, for evaluation.

        Raise InputError if there is none, one is no base ranker, or their tokenizers or settings do
        not fit together.
        """
        members: list[Any] = []
        tokenizers: list[Any] = []
        for folder in map(resolve_backbone, paths):
            method = member_method(load_pretrained(AutoConfig, folder).model_type, f"'{folder}'")
            members.append(load_pretrained(method.model_class, folder))
            tokenizers.append(load_pretrained(AutoTokenizer, folder))
            # All that decides how a tokenizer reads a text, without its last truncation and
            # padding.
            texts = (tokenizers[place].backend_tokenizer.to_str() for place in (0, -1))
            first, other = (
                {**json.loads(text), "truncation": None, "padding": None} for text in texts
            )
            if first != other:
                raise InputError(
                    f"members: got different tokenizers in '{paths[0]}' ({len(tokenizers[0]):,} "
                    f"tokens) and '{folder}' ({len(tokenizers[-1]):,} tokens), expected one for "
                    "all; train them on the same dialogues with the same vocabulary or backbone"
                )
        model = cls(
            MultiGranularityConfig(members=[member.config.to_diff_dict() for member in members])
        )
        for place, member in zip(model.members, members, strict=True):
            place.load_state_dict(member.state_dict())
        model.train(False)
        return model, tokenizers[0]


def _layout(config: Any) -> list[Any]:
    """Return what decides how a member lays out texts."""
    settings = [getattr(config, name, None) for name in _LAYOUT]
    return [member_method(config.model_type).collate, *settings]


def member_method(model_type: str, place: str = "members") -> Method:
    """Return the method of a member by the ``model_type`` of its config.

    Raise InputError if it trains no ranker.
    """
    method = method_of(model_type)
    if method is None or method.kind != "responses" or not method.trained:
        raise InputError(
            f"{place}: got a model of type {model_type}, expected a trained ranker of responses, "
            "such as dual_encoder; choose its checkpoint"
        )
    return method


def collate(
    examples: list[RankingExample], tokenizer: Any, config: Any, count: Truncation
) -> dict[str, Tensor]:
    """Lay out contexts and candidates as every member does."""
    first = config.member_configs[0]
    return member_method(first.model_type).collate(examples, tokenizer, first, count)


METHOD = Method(
    "multi_granularity",
    MultiGranularityConfig,
    MultiGranularityModel,
    RankingExamples,
    collate,
    min_turns=2,
    from_scratch=True,
    trained=False,
    **ABOUT["multi_granularity"],
)
