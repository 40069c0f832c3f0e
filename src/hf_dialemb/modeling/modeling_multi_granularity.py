"""Multi-granularity ensemble of rankers (Mehri and Eskenazi, EMNLP 2019, arXiv:1908.09890).

The probability of a response is the mean of the members' probabilities (equation 7). If all members
embed, the ensemble does: the members' unit vectors, side by side. The cosine of two such vectors is
the mean of the members' cosines.

Shapes: B contexts, K candidate responses of each, N texts, L and M tokens, D width.
"""

import copy
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig

from .configuration_dual_encoder import TowerRankerConfig
from .modeling_dual_encoder import (
    DualEncoderModel,
    Ranker,
    RankingOutput,
    TransformerDualEncoderModel,
)

MEMBERS = {
    "dialemb-dual-encoder": DualEncoderModel,
    "dialemb-transformer-dual-encoder": TransformerDualEncoderModel,
}
"""What a member may be, by the type in its configuration."""


class MultiGranularityConfig(PreTrainedConfig):
    """Settings of `MultiGranularityModel`.

    Attributes:
        members: The configurations of the members, each with its ``model_type``.
        marker_ids: The members' markers: one for each speaker, and last that of a response.
        max_context_tokens: Number of last tokens of a context that the members read.
        max_response_tokens: Number of first tokens of a response that the members read.
    """

    model_type = "dialemb-multi-granularity"

    members: list[dict[str, Any]] | None = None
    marker_ids: list[int] | None = None
    max_context_tokens: int = 160
    max_response_tokens: int = 160

    @staticmethod
    def member_class(model_type: str) -> Any:
        """Return the class of a member."""
        return MEMBERS[model_type]

    @property
    def member_configs(self) -> list[TowerRankerConfig]:
        """The configurations of the members, as objects."""
        configs = copy.deepcopy(self.members or [])
        return [
            self.member_class(str(config.get("model_type"))).config_class.from_dict(config)
            for config in configs
        ]

    @property
    def hidden_size(self) -> int:
        """Width D of the embedding: the sum of the members' widths, 0 if they embed nothing."""
        return sum(getattr(config, "hidden_size", 0) for config in self.member_configs)


class MultiGranularityModel(Ranker):
    """Rankers that share a tokenizer, in one checkpoint."""

    config: MultiGranularityConfig
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_flex_attn = True
    _supports_attention_backend = True

    def __init__(self, config: MultiGranularityConfig) -> None:
        attention = config._attn_implementation  # None unless it was requested
        super().__init__(config)
        members = config.member_configs
        for member in members:
            if attention is not None and member.sub_configs:
                member._attn_implementation = attention
        self.members: Any = nn.ModuleList(
            config.member_class(member.model_type)(member) for member in members
        )
        self.embeds = all(member.embeds for member in self.members)  # type: ignore[misc]
        self.post_init()

    def get_input_embeddings(self) -> Any:
        """Return the first member's table; the others have their own."""
        return self.members[0].get_input_embeddings()

    def rank(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        candidate_ids: Tensor,
        candidate_mask: Tensor,
    ) -> RankingOutput:
        """Score candidates (B, K, M) of contexts (B, L) by the logarithms of probabilities."""
        texts = input_ids, attention_mask, candidate_ids, candidate_mask
        scores, contexts = zip(*(member.score(*texts) for member in self.members), strict=True)
        member_logits = torch.stack([score.float() for score in scores], dim=1)
        embeddings = side_by_side(contexts) if self.embeds else None
        return RankingOutput(log_mean_probability(member_logits), embeddings, member_logits)

    def embed(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Embed texts, (N, L) to unit vectors (N, D)."""
        if not self.embeds:
            return super().embed(input_ids, attention_mask)
        return side_by_side([member.embed(input_ids, attention_mask) for member in self.members])


def log_mean_probability(member_logits: Tensor) -> Tensor:
    """Average the members' probabilities (equation 7), (B, members, K) to logarithms (B, K)."""
    return member_logits.log_softmax(-1).logsumexp(1) - math.log(member_logits.shape[1])


def side_by_side(embeddings: Sequence[Tensor]) -> Tensor:
    """Concatenate embeddings, each of length 1 / sqrt(members), to unit vectors (N, D)."""
    units = [nn.functional.normalize(vectors, dim=-1) for vectors in embeddings]
    return torch.cat(units, dim=-1) / math.sqrt(len(units))
