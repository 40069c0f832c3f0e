"""Multi-granularity ensemble: L trained rankers answer together (Mehri and Eskenazi, EMNLP 2019, arXiv:1908.09890).

Each member learnt to tell the true response from others of one granularity (section 3.3); the probability of a response
is the mean of the members' probabilities (equation 7). Members may as well differ in their seed or checkpoint alone.

Where all members embed, the ensemble does: the members' unit vectors, one after the other. The cosine of two such
vectors is the mean of the members' cosines, so that a vector index ranks by that: an approximation of equation 7, in
which a member that scores by dot products also heeds how long vectors are.
"""

import copy
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from transformers import AutoConfig, AutoTokenizer, PreTrainedTokenizerBase

from ..checkpoints.pretrained import load_pretrained, resolve_backbone
from ..errors import InputError
from ..papers.methods.deep_attention_matching import METHOD as DEEP_ATTENTION_MATCHING
from .backbone_model import AnyAttention
from .config import RankerConfig, own_settings
from .dual_encoder import METHOD as DUAL_ENCODER
from .layout import Truncation
from .method import Method
from .ranker import Ranker, RankingExample, RankingOutput
from .ranking_examples import RankingExamples
from .transformer_dual_encoder import METHOD as TRANSFORMER_DUAL_ENCODER

MEMBERS: dict[str, Method] = {
    method.config_class.model_type: method
    for method in (DUAL_ENCODER, TRANSFORMER_DUAL_ENCODER, DEEP_ATTENTION_MATCHING)
}
"""What a member may be, by the type in its config."""

_LAYOUT = ("marker_ids", "max_context_tokens", "max_response_tokens", "max_turns", "max_turn_tokens")


@strict
class MultiGranularityConfig(RankerConfig):
    """The settings of an ensemble are its members'; what `RankerConfig` holds is taken from the first of them.

    ``members`` are the members' own configs, each with its ``model_type``.

    Raises:
        InputError: There is no member, one is of an unknown type, or they lay out contexts and responses in different
            ways.
    """

    model_type = "dialemb-multi-granularity"

    members: list[dict[str, Any]] | None = None
    marker_ids: list[int] | None = None

    def __post_init__(self, **kwargs: object) -> None:
        super().__post_init__(**kwargs)
        if not self.members:
            raise InputError(
                "members: got none, expected the folders of trained rankers; train them one by one and assemble them "
                "with MultiGranularityModel.from_members, or let `dialemb ensemble` do both"
            )
        first, *others = self.member_configs
        for config in others:
            if MEMBERS[config.model_type].collate is not MEMBERS[first.model_type].collate:
                raise InputError(
                    f"members: got {MEMBERS[first.model_type].name} and {MEMBERS[config.model_type].name}, expected "
                    "rankers that take contexts in one form, as the one takes a text and the other turns; make an "
                    "ensemble of each"
                )
            for name in _LAYOUT:
                one, other = (getattr(each, name, None) for each in (first, config))
                if one != other:
                    raise InputError(
                        f"members: got {name} {one} and {other}, expected the same in all; train them with the same "
                        "settings"
                    )
        for name in [*own_settings(RankerConfig), "marker_ids"]:
            if name != "granularity":
                setattr(self, name, getattr(first, name, None))

    @property
    def member_configs(self) -> list[RankerConfig]:
        """The configs of the members."""
        configs = []
        for settings in self.members or ():
            config_class: Any = _method(str(settings.get("model_type"))).config_class
            configs.append(config_class.from_dict(copy.deepcopy(settings)))
        return configs

    @property
    def hidden_size(self) -> int:
        """Width D of the embedding, the members' widths together; 0 where they embed nothing."""
        return sum(getattr(config, "hidden_size", 0) for config in self.member_configs)


@dataclass
class MultiGranularityOutput(RankingOutput):
    """As logits the logarithms of the candidates' probabilities (equation 7), and the members' own scores (B, L, K)."""

    member_logits: Tensor | None = None


class MultiGranularityModel(AnyAttention, Ranker):
    """L rankers that share a tokenizer, in one checkpoint."""

    config: MultiGranularityConfig

    def __init__(self, config: MultiGranularityConfig) -> None:
        attention = config._attn_implementation  # None unless it was asked for
        super().__init__(config)
        members = config.member_configs
        for each in members:
            if attention is not None and each.sub_configs:  # has a backbone
                each._attn_implementation = attention
        self.members = nn.ModuleList(_method(each.model_type).model_class(each) for each in members)
        self.embeds = all(member.embeds for member in self.members)  # type: ignore[misc]
        self.post_init()  # type: ignore[no-untyped-call]

    @classmethod
    def from_members(cls, paths: Sequence[str]) -> tuple[Self, PreTrainedTokenizerBase]:
        """Assembles trained rankers in evaluation mode from their folders or Hub ids, that of granularity 1 first.

        Raises:
            InputError: There is no member, one cannot be read or is no base ranker, or their tokenizers or settings
                do not fit together.
        """
        members: list[Any] = []
        tokenizers: list[PreTrainedTokenizerBase] = []
        for path in paths:
            folder = resolve_backbone(path)
            method = _method(load_pretrained(AutoConfig, folder).model_type, f"'{path}'")
            members.append(load_pretrained(method.model_class, folder))
            tokenizers.append(load_pretrained(AutoTokenizer, folder))
            first, other = tokenizers[0], tokenizers[-1]
            if _rules(first) != _rules(other):
                raise InputError(
                    f"members: got different tokenizers in '{paths[0]}' ({len(first):,} tokens) and '{path}' "
                    f"({len(other):,} tokens), expected one for all; train them on the same dialogues with the same "
                    "vocabulary or backbone"
                )
        model = cls(MultiGranularityConfig(members=[member.config.to_diff_dict() for member in members]))
        for place, member in zip(model.members, members, strict=True):
            place.load_state_dict(member.state_dict())
        model.train(False)
        return model, tokenizers[0]

    def get_input_embeddings(self) -> Any:  # noqa: ANN401 - a module
        """Returns the first member's table; the others have their own."""
        return self.members[0].get_input_embeddings()  # type: ignore[operator]

    def rank(
        self, input_ids: Tensor, attention_mask: Tensor, candidate_ids: Tensor, candidate_mask: Tensor
    ) -> MultiGranularityOutput:
        """See `Ranker`."""
        texts = input_ids, attention_mask, candidate_ids, candidate_mask
        scores, contexts = zip(*(member.score(*texts) for member in self.members), strict=True)  # type: ignore[operator]
        member_logits = torch.stack([score.float() for score in scores], dim=1)  # (B, L, K)
        logits = log_mean_probability(member_logits)
        return MultiGranularityOutput(
            loss=self.ranking_loss(logits),
            logits=logits,
            pooler_output=join(contexts) if self.embeds else None,
            similarities=logits.detach().unsqueeze(-1),
            member_logits=member_logits,
        )

    def embed(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """See `Ranker`; (N, L) to unit vectors (N, D), whose products are the means of the members' cosines."""
        return join([member.embed(input_ids, attention_mask) for member in self.members])  # type: ignore[operator]


def log_mean_probability(member_logits: Tensor) -> Tensor:
    """Averages the probabilities of L members (equation 7): scores (B, L, K) to the logarithm of the mean, (B, K)."""
    return member_logits.log_softmax(-1).logsumexp(1) - math.log(member_logits.shape[1])


def join(embeddings: Sequence[Tensor]) -> Tensor:
    """Puts the embeddings (N, D_l) of L members side by side, each of length 1 / sqrt(L), to (N, sum of D_l)."""
    units = [nn.functional.normalize(vectors, dim=-1) for vectors in embeddings]
    return torch.cat(units, dim=-1) / math.sqrt(len(units))


def _method(model_type: str, place: str = "members") -> Method:
    if model_type not in MEMBERS:
        raise InputError(
            f"{place}: got a model of type {model_type}, expected one of {', '.join(MEMBERS)}; choose a checkpoint of "
            f"{', '.join(method.name for method in MEMBERS.values())}"
        )
    return MEMBERS[model_type]


def _rules(tokenizer: PreTrainedTokenizerBase) -> dict[str, Any]:
    """Returns all that decides how a tokenizer reads a text, without what it was last asked to cut and pad."""
    backend: Any = tokenizer.backend_tokenizer
    rules: dict[str, Any] = json.loads(backend.to_str())
    return {name: rule for name, rule in rules.items() if name not in ("truncation", "padding")}


def collate(
    examples: list[RankingExample],
    tokenizer: PreTrainedTokenizerBase,
    config: MultiGranularityConfig,
    count: Truncation,
) -> dict[str, Tensor]:
    """Lays out contexts and candidates as every member does."""
    first = config.member_configs[0]
    return MEMBERS[first.model_type].collate(examples, tokenizer, first, count)


METHOD = Method(
    "multi_granularity",
    MultiGranularityConfig,
    MultiGranularityModel,
    RankingExamples,
    collate,
    min_turns=2,
    from_scratch=True,
    trained=False,
    title="Multi-granularity ensemble",
    paper="mehri-eskenazi-2019-multi",
    suite="mgt",
    what=(
        "Several rankers of responses answer together: the probability of a response is the mean of theirs. Members "
        "learnt from negatives at one distance from the true response each, or differ in their seed or checkpoint "
        "alone. The vector of a context or a response is the members' unit vectors, one after the other, whose cosine "
        "is the mean of theirs."
    ),
)
