"""Use a trained ranker: load it, embed many contexts and responses, score candidates."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm.auto import tqdm
from transformers import AutoModel, AutoTokenizer, PreTrainedTokenizerBase

from ..checkpoints.pretrained import load_pretrained
from ..dialogue import Turn
from ..errors import InputError
from . import method_of
from .batching import embeddings
from .layout import Truncation
from .method import Method
from .ranker import Ranker, RankingExample, context_ids, embeds_nothing, response_ids

logger = logging.getLogger(__name__)

_CONTEXTS = 32  # contexts whose candidates are scored at once


@dataclass(frozen=True)
class LoadedRanker:
    """A trained ranker in evaluation mode with its tokenizer, and its method, whose ``collate`` makes its batches."""

    model: Ranker
    tokenizer: PreTrainedTokenizerBase
    method: Method


def load_ranker(path: str) -> LoadedRanker:
    """Load a ranker from a folder or Hub id, onto a GPU if there is one; raise InputError for another model."""
    model = load_pretrained(AutoModel, path)
    if not isinstance(model, Ranker):
        raise InputError(f"'{path}': got a model of type {model.config.model_type}, expected a ranker of responses")
    model = model.to("cuda" if torch.cuda.is_available() else "cpu")  # type: ignore[arg-type]
    return loaded_ranker(model, load_pretrained(AutoTokenizer, path))


def loaded_ranker(model: Ranker, tokenizer: PreTrainedTokenizerBase) -> LoadedRanker:
    """Join a ranker, its tokenizer and their method; raise InputError if they do not fit together."""
    known: Any = model.get_input_embeddings().num_embeddings
    if len(tokenizer) > known:
        raise InputError(
            f"the tokenizer: got {len(tokenizer)} tokens, but the weights have {known}; fetch the model again"
        )
    marks = getattr(model.config, "marker_ids", None) or []
    if (model.embeds and len(marks) < 2) or not all(0 <= mark < len(tokenizer) for mark in marks):
        raise InputError(
            f"marker_ids: got {marks}, expected those of a token for each speaker and of one for responses, below "
            f"{len(tokenizer)}; fetch or train the model again"
        )
    method = method_of(model)
    assert method is not None, "models of other makers are refused before"
    return LoadedRanker(model.train(False), tokenizer, method)


def encode_contexts(
    ranker: LoadedRanker, contexts: Sequence[Sequence[Turn]], batch_size: int = 256, show_progress: bool = False
) -> np.ndarray:
    """Embed N contexts, (N, D) float32; raise InputError if the ranker embeds nothing or a role has no marker."""
    *speakers, _ = _marks(ranker)
    limit = ranker.model.config.max_context_tokens

    def lay_out(rows: list[int], count: Truncation) -> dict[str, Tensor]:
        return context_ids([contexts[row] for row in rows], ranker.tokenizer, speakers, limit, count)

    lengths = [1 + sum(len(turn.content) for turn in context) // 4 for context in contexts]  # tokens, about
    return embeddings(ranker.model, lengths, lay_out, batch_size, show_progress)


def encode_responses(
    ranker: LoadedRanker, responses: Sequence[str], batch_size: int = 1024, show_progress: bool = False
) -> np.ndarray:
    """Embed N responses, (N, D) float32; raise InputError if the ranker embeds nothing."""
    marker, limit = _marks(ranker)[-1], ranker.model.config.max_response_tokens

    def lay_out(rows: list[int], count: Truncation) -> dict[str, Tensor]:
        return response_ids([responses[row] for row in rows], ranker.tokenizer, marker, limit, count)

    return embeddings(ranker.model, [1 + len(text) // 4 for text in responses], lay_out, batch_size, show_progress)


def _marks(ranker: LoadedRanker) -> list[int]:
    if not ranker.model.embeds:
        raise embeds_nothing(ranker.model)
    marks: list[int] = ranker.model.config.marker_ids
    return marks


@torch.inference_mode()
def score_candidates(
    ranker: LoadedRanker, examples: Sequence[RankingExample], show_progress: bool = False
) -> list[np.ndarray]:
    """Score the candidates of each context, (K,) float64; their softmax is the output probability.

    Raises:
        InputError: A context has no turn, no candidate, or a speaker without a marker.
    """
    for number, example in enumerate(examples):
        if not example.context or not example.candidates:
            missing = "turn" if not example.context else "candidate"
            raise InputError(f"example {number}: got no {missing}, expected at least one; leave the example out")
    model, scores, count = ranker.model, [np.empty(0)] * len(examples), Truncation()
    by_size: dict[int, list[int]] = {}
    for row, example in enumerate(examples):
        by_size.setdefault(len(example.candidates), []).append(row)
    batches: list[list[int]] = []
    for _, alike in sorted(by_size.items()):
        batches += [alike[start : start + _CONTEXTS] for start in range(0, len(alike), _CONTEXTS)]
    for rows in tqdm(batches, desc="rank", unit="batch", disable=not show_progress):
        chosen = [examples[row] for row in rows]
        batch = ranker.method.collate(chosen, ranker.tokenizer, model.config, count)
        logits = model(**{name: value.to(model.device) for name, value in batch.items()}).logits
        for row, values in zip(rows, logits.double().cpu().numpy(), strict=True):
            scores[row] = values
    if count.truncated:
        logger.warning("%s.", count)
    return scores
