"""Using a trained ranker: its tokenizer beside it, contexts and responses in many at a time, candidates scored."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module

import numpy as np
import torch
from torch import Tensor
from tqdm.auto import tqdm
from transformers import AutoModel, AutoTokenizer, PreTrainedTokenizerBase

from .backbones import load_pretrained
from .batching import batches_by_length
from .dialogue import Turn
from .errors import InputError
from .layout import Truncation
from .method import Method
from .ranker import Ranker, RankingExample, context_ids, response_ids

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LoadedRanker:
    """A trained ranker and what belongs to it.

    Attributes:
        model: In evaluation mode.
        tokenizer: Its tokenizer.
        method: Its method, whose ``collate`` lays out contexts with candidates.
    """

    model: Ranker
    tokenizer: PreTrainedTokenizerBase
    method: Method


def load_ranker(path: str) -> LoadedRanker:
    """Loads a ranker.

    Args:
        path: Folder or Hub id of a checkpoint.

    Returns:
        The ranker, on a GPU where there is one.

    Raises:
        InputError: There is no ranker.
    """
    model = load_pretrained(AutoModel, path)
    if not isinstance(model, Ranker):
        raise InputError(f"'{path}': got a model of type {model.config.model_type}, expected a ranker of responses")
    model = model.to("cuda" if torch.cuda.is_available() else "cpu")  # type: ignore[arg-type]
    return loaded_ranker(model, load_pretrained(AutoTokenizer, path))


def loaded_ranker(model: Ranker, tokenizer: PreTrainedTokenizerBase) -> LoadedRanker:
    """Puts a ranker and its tokenizer together with their method."""
    method: Method = import_module(type(model).__module__).METHOD
    return LoadedRanker(model.train(False), tokenizer, method)


def encode_contexts(
    ranker: LoadedRanker, contexts: Sequence[Sequence[Turn]], batch_size: int = 256, show_progress: bool = False
) -> np.ndarray:
    """Embeds contexts.

    Args:
        ranker: One that embeds.
        contexts: N of them.
        batch_size: How many at a time.
        show_progress: Whether to draw a progress bar.

    Returns:
        (N, D) float32.

    Raises:
        InputError: The ranker embeds nothing, or a role has no mark.
    """
    config = ranker.model.config
    *speakers, _ = _marks(ranker)

    def lay_out(rows: Sequence[int], count: Truncation) -> dict[str, Tensor]:
        chosen = [contexts[row] for row in rows]
        return context_ids(chosen, ranker.tokenizer, speakers, config.max_context_tokens, count)

    lengths = [sum(len(turn.content) for turn in context) for context in contexts]
    return _encode(ranker, lay_out, lengths, batch_size, show_progress)


def encode_responses(
    ranker: LoadedRanker, responses: Sequence[str], batch_size: int = 1024, show_progress: bool = False
) -> np.ndarray:
    """Embeds responses; see `encode_contexts`.

    Args:
        ranker: One that embeds.
        responses: N texts.
        batch_size: How many at a time.
        show_progress: Whether to draw a progress bar.

    Returns:
        (N, D) float32.

    Raises:
        InputError: The ranker embeds nothing.
    """
    config = ranker.model.config
    marker = _marks(ranker)[-1]

    def lay_out(rows: Sequence[int], count: Truncation) -> dict[str, Tensor]:
        chosen = [responses[row] for row in rows]
        return response_ids(chosen, ranker.tokenizer, marker, config.max_response_tokens, count)

    return _encode(ranker, lay_out, [len(text) for text in responses], batch_size, show_progress)


def _marks(ranker: LoadedRanker) -> list[int]:
    if not ranker.model.embeds:
        raise InputError(
            f"{type(ranker.model).__name__} scores a context and a response together, and embeds neither; "
            "rank candidates with it, or choose a dual encoder"
        )
    marks: list[int] = ranker.model.config.marker_ids
    return marks


@torch.inference_mode()
def _encode(
    ranker: LoadedRanker, lay_out: Callable[[Sequence[int], Truncation], dict[str, Tensor]], lengths: Sequence[int],
    size: int, show_progress: bool,
) -> np.ndarray:  # fmt: skip
    model, count = ranker.model, Truncation()
    result = np.zeros((len(lengths), model.config.hidden_size), dtype=np.float32)
    for rows in batches_by_length(lengths, size, "encode", show_progress):
        batch = lay_out(rows.tolist(), count)
        output = model(**{name: value.to(model.device) for name, value in batch.items()})
        result[rows] = output.pooler_output.float().cpu().numpy()
    _warn(count)
    return result


@torch.inference_mode()
def score_candidates(
    ranker: LoadedRanker, examples: Sequence[RankingExample], batch_size: int = 32, show_progress: bool = False
) -> list[np.ndarray]:
    """Scores the candidates of contexts.

    Args:
        ranker: Any ranker.
        examples: N contexts with candidates; those of one number of candidates are scored together.
        batch_size: How many contexts at a time.
        show_progress: Whether to draw a progress bar.

    Returns:
        For each context the scores of its candidates, (K,) float64; their softmax is the output probability.

    Raises:
        InputError: A context has no turn, or no candidate, or a speaker that the ranker has no mark for.
        ValueError: ``batch_size`` is below 1.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size: got {batch_size}, expected at least 1")
    for number, example in enumerate(examples):
        if not example.context or not example.candidates:
            missing = "turn" if not example.context else "candidate"
            raise InputError(f"example {number}: got no {missing}, expected at least one; leave the example out")
    model, scores, count = ranker.model, [np.empty(0)] * len(examples), Truncation()
    order = sorted(range(len(examples)), key=lambda row: len(examples[row].candidates))
    batches: list[list[int]] = []
    for row in order:
        alike = batches and len(examples[batches[-1][0]].candidates) == len(examples[row].candidates)
        if alike and len(batches[-1]) < batch_size:
            batches[-1].append(row)
        else:
            batches.append([row])
    for rows in tqdm(batches, desc="rank", unit="batch", disable=not show_progress):
        chosen = [examples[row] for row in rows]
        batch = ranker.method.collate(chosen, ranker.tokenizer, model.config, count)
        logits = model(**{name: value.to(model.device) for name, value in batch.items()}).logits
        for row, values in zip(rows, logits.double().cpu().numpy(), strict=True):
            scores[row] = values
    _warn(count)
    return scores


def _warn(count: Truncation) -> None:
    if count.truncated:
        logger.warning("%s.", count)
