"""Rankers of responses.

The model with its loss, its examples, how texts become sequences, and a trained one's use.

Letters of shapes: B contexts, K candidate responses of each, N texts, L and M tokens.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from tqdm.auto import tqdm
from transformers import AutoModel, AutoTokenizer, PreTrainedTokenizerBase

from ..dialogue import ROLES, Dialogue, Turn, plain, response_places
from ..errors import InputError
from ..modeling import modeling_dual_encoder as published
from ..storage.pretrained import load_pretrained
from . import method_of
from .backbone_model import MethodModel
from .batching import embeddings
from .config import RankerConfig
from .granularity import Segments
from .layout import Truncation, framed, token_ids
from .method import Examples, Method

logger = logging.getLogger(__name__)

_CONTEXTS = 32  # contexts whose candidates are scored at once


class RankingExample(NamedTuple):
    """The turns of a context, at least one, and responses to choose from, the true one first."""

    context: tuple[Turn, ...]
    candidates: tuple[str, ...]


@dataclass
class RankingOutput(published.RankingOutput):
    """Output of a ranker for contexts with candidates, the true one first."""

    loss: Tensor | None = None  # cross entropy of the true candidate (equation 6), a scalar
    similarities: Tensor | None = None  # the scores without gradient, (B, K, 1)


class Ranker(MethodModel, published.Ranker):
    """A ranker with its loss.

    ``multiplies`` says whether a score is the product of two vectors, divided by
    ``loss_temperature``.
    """

    config: RankerConfig
    multiplies: ClassVar[bool] = False

    def rank(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        candidate_ids: Tensor,
        candidate_mask: Tensor,
    ) -> RankingOutput:
        """Score candidates (B, K, M) of contexts (B, L), and compute the loss."""
        output = super().rank(input_ids, attention_mask, candidate_ids, candidate_mask)
        assert output.logits is not None
        loss = nn.functional.cross_entropy(
            output.logits.float(), candidate_ids.new_zeros(len(candidate_ids))
        )
        return RankingOutput(loss=loss, similarities=output.logits.detach().unsqueeze(-1), **output)

    def check_embeds(self) -> None:
        """Raise InputError if the ranker has no vectors."""
        if not self.embeds:
            raise InputError(
                f"{type(self).__name__} scores a context and a response together, and embeds "
                "neither; rank candidates with it (dialemb rank --model FOLDER), or choose a dual "
                "encoder"
            )


class RankingExamples(Examples):
    """Contexts with their true response and K - 1 others, drawn afresh in each epoch (section 3).

    Texts that differ in case and blanks only are one response, so no other response repeats the
    true one. Others are drawn from all distinct responses (equation 8), or with ``granularity``
    from a segment of them (equation 12), each at most once if there are enough.

    Raises:
        InputError: There is no response with a context, or there are too few different ones.
    """

    def __init__(self, dialogues: Sequence[Dialogue], config: RankerConfig, seed: int) -> None:
        self.dialogues = list(dialogues)
        places: dict[str, int] = {}
        self._texts: list[str] = []
        items = []  # dialogue, turn, response
        silent = 0
        for number, dialogue in enumerate(self.dialogues):
            turns = list(response_places(dialogue, config.responses))
            silent += not turns
            for turn in turns:
                text = dialogue.turns[turn].content
                place = places.setdefault(plain(text), len(self._texts))
                if place == len(self._texts):
                    self._texts.append(text)
                items.append((number, turn, place))
        notes = []
        if silent:
            notes.append(f"Left out {silent:,} dialogues without a response that has a context")
        super().__init__(items, notes, config, seed)
        known = len(self._texts)
        if not items:
            raise InputError(
                f"responses: got no response with a context in {len(self.dialogues)} dialogues, "
                "expected at least one; add dialogues, or choose other turns than "
                f"{config.responses!r}"
            )
        if known < config.num_candidates:
            raise InputError(
                f"num_candidates: got {config.num_candidates}, but there are {known} different "
                "responses; lower it or add dialogues"
            )
        if config.granularity is not None and known <= config.num_granularities:
            raise InputError(
                f"num_granularities: got {config.num_granularities}, but each response has "
                f"{known - 1} others, expected at least one for each granularity; lower it or add "
                "dialogues"
            )
        self.response_vectors = np.empty((0, 0), dtype=np.float32)
        self._segments: Segments | None = None

    @property
    def response_texts(self) -> list[str]:
        """The distinct responses in their first form, if their vectors are needed."""
        return [] if self.config.granularity is None else self._texts

    def length(self, index: int) -> int:
        """Return the words of a context, an estimate of its tokens."""
        number, turn, _ = self.items[index]
        words = sum(1 + len(turn.content.split()) for turn in self.dialogues[number].turns[:turn])
        return int(min(words, self.config.max_context_tokens))

    def example(self, epoch: int, index: int) -> RankingExample:
        """Return a context with its true response first, and the others."""
        number, turn, response = self.items[index]
        generator = np.random.default_rng([self.seed, epoch, index])
        count = self.config.num_candidates - 1
        if self.config.granularity is None:
            drawn = generator.choice(len(self._texts) - 1, count, replace=False)
            others = drawn + (drawn >= response)
        else:
            if self._segments is None:
                self._segments = Segments(self.response_vectors, self.config.num_granularities)
            others = self._segments.draw(response, self.config.granularity, count, generator)
        turns = self.dialogues[number].turns
        return RankingExample(
            turns[:turn], (turns[turn].content, *(self._texts[other] for other in others))
        )


def context_ids(
    contexts: Sequence[Sequence[Turn]],
    tokenizer: PreTrainedTokenizerBase,
    markers: Sequence[int],
    max_tokens: int,
    count: Truncation,
) -> dict[str, Tensor]:
    """Lay out N contexts, the marker of its speaker before each turn; a long context keeps its end.

    See `framed`.

    The markers are token ids in the order of `ROLES`; raise InputError for a role without one.
    """
    count.unit = "contexts and responses"
    tokens = ids_of((turn.content for context in contexts for turn in context), tokenizer)
    marks = dict(zip(ROLES, markers, strict=False))
    rows = []
    for context in contexts:
        if unknown := [turn.role for turn in context if turn.role not in marks]:
            raise InputError(
                f"context: got the role {unknown[0]}, expected one of {', '.join(marks)}; merge "
                "speakers"
            )
        rows.append(
            [token for turn in context for token in (marks[turn.role], *tokens[turn.content])]
        )
    return framed(rows, tokenizer, max_tokens, count, "end")


def response_ids(
    responses: Sequence[str],
    tokenizer: PreTrainedTokenizerBase,
    marker: int,
    max_tokens: int,
    count: Truncation,
) -> dict[str, Tensor]:
    """Lay out N responses behind the marker of a response; a long response keeps its start.

    See `framed`.
    """
    count.unit = "contexts and responses"
    tokens = ids_of(responses, tokenizer)
    return framed(
        [[marker, *tokens[text]] for text in responses], tokenizer, max_tokens, count, "start"
    )


def ids_of(texts: Iterable[str], tokenizer: PreTrainedTokenizerBase) -> dict[str, list[int]]:
    """Return the token ids of texts by the texts, each of which is read once."""
    distinct = list(dict.fromkeys(texts))
    return dict(zip(distinct, token_ids(distinct, tokenizer), strict=True))


def with_candidates(
    contexts: dict[str, Tensor], candidates: dict[str, Tensor]
) -> dict[str, Tensor]:
    """Join contexts (B, ...) and all candidates (B K, M) to the arguments of a `Ranker`."""
    shape = (len(contexts["input_ids"]), -1)
    return {
        **contexts,
        "candidate_ids": candidates["input_ids"].unflatten(0, shape),
        "candidate_mask": candidates["attention_mask"].unflatten(0, shape),
    }


@dataclass(frozen=True, repr=False)
class LoadedRanker:
    """A trained ranker in evaluation mode with its tokenizer and its method."""

    model: Ranker
    tokenizer: PreTrainedTokenizerBase
    method: Method


def load_ranker(path: str) -> LoadedRanker:
    """Load a ranker from a folder or Hub id, onto a GPU if there is one.

    Raise InputError for another model.
    """
    model = load_pretrained(AutoModel, path)
    if not isinstance(model, Ranker):
        raise InputError(
            f"'{path}': got a model of type {model.config.model_type}, expected a ranker of "
            "responses"
        )
    model = model.to("cuda" if torch.cuda.is_available() else "cpu")  # type: ignore[arg-type]
    return loaded_ranker(model, load_pretrained(AutoTokenizer, path))


def loaded_ranker(model: Ranker, tokenizer: PreTrainedTokenizerBase) -> LoadedRanker:
    """Join a ranker, its tokenizer and their method."""
    method = method_of(model)
    assert method is not None, "models of other makers are refused before"
    return LoadedRanker(model.train(False), tokenizer, method)


def encode_contexts(
    ranker: LoadedRanker,
    contexts: Sequence[Sequence[Turn]],
    batch_size: int = 256,
    show_progress: bool | None = None,
) -> np.ndarray:
    """Embed N contexts, (N, D) float32.

    Raise InputError if the ranker embeds nothing or a role has no marker.
    """
    ranker.model.check_embeds()

    def lay_out(rows: list[int], count: Truncation) -> dict[str, Tensor]:
        config: Any = ranker.model.config
        chosen = [contexts[row] for row in rows]
        return context_ids(
            chosen, ranker.tokenizer, config.marker_ids[:-1], config.max_context_tokens, count
        )

    # tokens, about
    lengths = [1 + sum(len(turn.content) for turn in context) // 4 for context in contexts]
    return embeddings(ranker.model, lengths, lay_out, batch_size, show_progress)


def encode_responses(
    ranker: LoadedRanker,
    responses: Sequence[str],
    batch_size: int = 1024,
    show_progress: bool | None = None,
) -> np.ndarray:
    """Embed N responses, (N, D) float32; raise InputError if the ranker embeds nothing."""
    ranker.model.check_embeds()

    def lay_out(rows: list[int], count: Truncation) -> dict[str, Tensor]:
        config: Any = ranker.model.config
        chosen = [responses[row] for row in rows]
        return response_ids(
            chosen, ranker.tokenizer, config.marker_ids[-1], config.max_response_tokens, count
        )

    lengths = [1 + len(text) // 4 for text in responses]
    return embeddings(ranker.model, lengths, lay_out, batch_size, show_progress)


@torch.inference_mode()
def score_candidates(
    ranker: LoadedRanker, examples: Sequence[RankingExample], show_progress: bool = False
) -> list[np.ndarray]:
    """Score the candidates of each context, (K,) float64; their softmax is the output probability.

    Raise InputError if a context has a speaker without a marker.
    """
    by_size: dict[int, list[int]] = {}
    for row, example in enumerate(examples):
        by_size.setdefault(len(example.candidates), []).append(row)
    model = ranker.model
    scores = [np.empty(0)] * len(examples)
    count = Truncation()
    starts = (
        (alike, start)
        for _, alike in sorted(by_size.items())
        for start in range(0, len(alike), _CONTEXTS)
    )
    batches = [alike[start : start + _CONTEXTS] for alike, start in starts]
    for rows in tqdm(batches, desc="rank", unit="batch", disable=not show_progress):
        chosen = [examples[row] for row in rows]
        batch = ranker.method.collate(chosen, ranker.tokenizer, model.config, count)
        logits = model(**{name: value.to(model.device) for name, value in batch.items()}).logits
        for row, values in zip(rows, logits.double().cpu().numpy(), strict=True):
            scores[row] = values
    if count.truncated:
        logger.warning("%s.", count)
    return scores
