"""Rankers of responses: the model with its loss, and how contexts and responses become sequences.

Letters of shapes: B contexts, K candidate responses of each, N texts, L and M tokens.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from ..dialogue import ROLES, Turn
from ..errors import InputError
from ..modeling import modeling_dual_encoder as published
from .backbone_model import MethodModel
from .config import RankerConfig
from .layout import Truncation, framed, token_ids

_REMEMBERED = 1 << 17  # texts whose token ids are kept
_KNOWN: WeakKeyDictionary[PreTrainedTokenizerBase, dict[str, list[int]]] = WeakKeyDictionary()

RESPONSE = "response"
"""The name of the marker of a response, beside the roles."""


class RankingExample(NamedTuple):
    """The turns of a context, at least one, and responses to choose from, the true one first."""

    context: tuple[Turn, ...]
    candidates: tuple[str, ...]


@dataclass
class RankingOutput(published.RankingOutput):
    """Output of a ranker for contexts with candidates, the true one first.

    Attributes:
        loss: Cross entropy of the true candidate (equation 6), a scalar.
        similarities: The scores without gradient, (B, K, 1).
    """

    loss: Tensor | None = None
    similarities: Tensor | None = None


def embeds_nothing(model: object) -> InputError:
    """Return the error for a ranker that has no vectors."""
    return InputError(
        f"{type(model).__name__} scores a context and a response together, and embeds neither; rank candidates with it "
        "(dialemb rank --model FOLDER), or choose a dual encoder"
    )


class Ranker(MethodModel, published.Ranker):
    """A ranker with its loss.

    ``multiplies`` says whether a score is the product of two vectors, divided by ``loss_temperature``.
    """

    config: RankerConfig
    multiplies: ClassVar[bool] = False

    def rank(
        self, input_ids: Tensor, attention_mask: Tensor, candidate_ids: Tensor, candidate_mask: Tensor
    ) -> RankingOutput:
        """Score candidates (B, K, M) of contexts (B, L), and compute the loss."""
        output = super().rank(input_ids, attention_mask, candidate_ids, candidate_mask)
        assert output.logits is not None
        loss, similarities = self.ranking_loss(output.logits.float()), output.logits.detach().unsqueeze(-1)
        return RankingOutput(loss=loss, similarities=similarities, **output)

    def embed(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Embed contexts and responses, (N, L) to (N, D)."""
        if not self.embeds:
            raise embeds_nothing(self)
        return super().embed(input_ids, attention_mask)

    def ranking_loss(self, logits: Tensor) -> Tensor:
        """Compute the cross entropy of the first of K candidates (equation 6) from scores (B, K)."""
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
