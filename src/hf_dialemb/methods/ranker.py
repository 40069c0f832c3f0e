"""What every ranker of responses shares: its contract, and how contexts and responses become sequences.

Letters of shapes: B contexts, K candidate responses of each, N texts, L and M tokens, D width of the embedding.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase
from transformers.utils.generic import ModelOutput

from ..dialogue import ROLES, Turn
from ..errors import InputError
from .backbone_model import MethodModel
from .config import RankerConfig
from .layout import Truncation, framed, token_ids

_REMEMBERED = 1 << 17  # texts whose token ids are kept
_KNOWN: WeakKeyDictionary[PreTrainedTokenizerBase, dict[str, list[int]]] = WeakKeyDictionary()

RESPONSE = "response"
"""What is marked in a sequence beside the roles: that it is a response, and no context."""


class RankingExample(NamedTuple):
    """The turns of a context, at least one, and responses to choose from, the true one first."""

    context: tuple[Turn, ...]
    candidates: tuple[str, ...]


@dataclass
class RankingOutput(ModelOutput):
    """What a ranker returns.

    Attributes:
        loss: Cross entropy of the true candidate, the first (equation 6), a scalar; None without candidates.
        logits: Scores of the candidates, (B, K); their softmax over K is the output probability. None without
            candidates.
        pooler_output: Embeddings, (N, D); of the contexts (B, D) where there are candidates. None for rankers that
            embed nothing.
        similarities: The scores without gradient, (B, K, 1); None without candidates.
    """

    loss: Tensor | None = None
    logits: Tensor | None = None
    pooler_output: Tensor | None = None
    similarities: Tensor | None = None


def embeds_nothing(model: object) -> InputError:
    """Makes the error for a ranker that is asked for vectors, and has none."""
    return InputError(
        f"{type(model).__name__} scores a context and a response together, and embeds neither; rank candidates with it "
        "(dialemb rank --model FOLDER), or choose a dual encoder"
    )


class Ranker(MethodModel):
    """Scores candidate responses of a context."""

    config: RankerConfig
    embeds: ClassVar[bool] = True
    """Whether contexts and responses have vectors of their own; otherwise they can be scored together alone."""
    multiplies: ClassVar[bool] = False
    """Whether a score is the product of such vectors, divided by ``loss_temperature``."""

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        candidate_ids: Tensor | None = None,
        candidate_mask: Tensor | None = None,
        return_dict: bool = True,
        token_type_ids: Tensor | None = None,
    ) -> RankingOutput | tuple[Any, ...]:
        """Scores candidates, or embeds contexts and responses.

        Args:
            input_ids: (B, L) int64: contexts; without candidates (N, L), where a sequence with the mark of a response
                is one, and any other a context.
            attention_mask: 1 for real tokens, in the shape of ``input_ids``; None means all.
            candidate_ids: (B, K, M) int64, the true response first.
            candidate_mask: 1 for real tokens, (B, K, M); None means all.
            return_dict: False returns a tuple.
            token_type_ids: Not read; stock tokenizers make them beside the others.
        """
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        if candidate_ids is None:
            output = RankingOutput(pooler_output=self.embed(input_ids, mask))
        else:
            given = torch.ones_like(candidate_ids) if candidate_mask is None else candidate_mask
            output = self.rank(input_ids, mask, candidate_ids, given)
        return output if return_dict else output.to_tuple()

    def rank(
        self, input_ids: Tensor, attention_mask: Tensor, candidate_ids: Tensor, candidate_mask: Tensor
    ) -> RankingOutput:
        """Scores candidates (B, K, M) of contexts (B, L); both masks are given."""
        logits, contexts = self.score(input_ids, attention_mask, candidate_ids, candidate_mask)
        return RankingOutput(
            loss=self.ranking_loss(logits.float()),
            logits=logits,
            pooler_output=contexts,
            similarities=logits.detach().unsqueeze(-1),
        )

    def score(
        self, input_ids: Tensor, attention_mask: Tensor, candidate_ids: Tensor, candidate_mask: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        """Scores candidates (B, K, M) of contexts (B, L), to (B, K); and embeds the contexts (B, D) if it can."""
        raise NotImplementedError

    def embed(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Embeds contexts and responses, (N, L) to (N, D)."""
        raise embeds_nothing(self)

    def ranking_loss(self, logits: Tensor) -> Tensor:
        """Computes the cross entropy of the first of K candidates (equation 6) from scores (B, K)."""
        return nn.functional.cross_entropy(logits, logits.new_zeros(len(logits), dtype=torch.long))


def context_ids(
    contexts: Sequence[Sequence[Turn]],
    tokenizer: PreTrainedTokenizerBase,
    markers: Sequence[int],
    max_tokens: int,
    count: Truncation,
) -> dict[str, Tensor]:
    """Lays out N contexts: before each turn the mark of its speaker; of what is too long the end stays; see `framed`.

    The markers are token ids, in the order of `ROLES`; a role that has none is refused.
    """
    count.unit = "contexts and responses"
    tokens = remembered_ids((turn.content for context in contexts for turn in context), tokenizer)
    rows = []
    for context in contexts:
        row: list[int] = []
        for turn in context:
            role = ROLES.index(turn.role)
            if role >= len(markers):
                raise InputError(
                    f"context: got the role {turn.role}, expected one of {', '.join(ROLES[: len(markers)])}; merge "
                    "speakers"
                )
            row += [markers[role], *tokens[turn.content]]
        rows.append(row)
    return framed(rows, tokenizer, max_tokens, count, "end", marks=1)


def response_ids(
    responses: Sequence[str], tokenizer: PreTrainedTokenizerBase, marker: int, max_tokens: int, count: Truncation
) -> dict[str, Tensor]:
    """Lays out N responses, each after the mark of a response; of what is too long the start stays; see `framed`."""
    count.unit = "contexts and responses"
    tokens = remembered_ids(responses, tokenizer)
    return framed([[marker, *tokens[text]] for text in responses], tokenizer, max_tokens, count, "start", marks=1)


def remembered_ids(texts: Iterable[str], tokenizer: PreTrainedTokenizerBase) -> dict[str, list[int]]:
    """Returns the token ids of texts; those of a corpus come again in every epoch, so they are remembered."""
    distinct = list(dict.fromkeys(texts))
    known = _KNOWN.setdefault(tokenizer, {})
    if len(known) + len(distinct) > _REMEMBERED:
        known.clear()
    missing = [text for text in distinct if text not in known]
    if missing:
        known.update(zip(missing, token_ids(missing, tokenizer), strict=True))
    return {text: known[text] for text in distinct}


def candidates_of(examples: Sequence[RankingExample]) -> list[str]:
    """Lists the candidates of all examples, one after the other; refuses different numbers of them."""
    counts = sorted({len(example.candidates) for example in examples})
    if len(counts) > 1:
        raise InputError(
            f"candidates: got {counts[0]} for one context and {counts[-1]} for another, expected as many for all; "
            "rank them one context at a time"
        )
    return [text for example in examples for text in example.candidates]


def with_candidates(contexts: dict[str, Tensor], candidates: dict[str, Tensor]) -> dict[str, Tensor]:
    """Joins laid out contexts (B, ...) with their candidates, all in one (B K, M), to the arguments of `Ranker`."""
    batch = len(contexts["input_ids"])
    ids, mask = (candidates[name].unflatten(0, (batch, -1)) for name in ("input_ids", "attention_mask"))
    return {**contexts, "candidate_ids": ids, "candidate_mask": mask}
