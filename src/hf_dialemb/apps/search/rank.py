"""Rank a pool of responses after dialogues, with a ranker or an ensemble of them.

A ranker of two towers embeds the pool once; others score each response together with each dialogue.
The probabilities of an ensemble are those of equation 7 over the whole pool (Mehri and Eskenazi,
2019, section 3.2).
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.reading_options import ReadingOptions
from ...data.source import decompressed
from ...dialogue import ROLES, Dialogue, plain
from ...display import visible
from ...errors import InputError, explained
from ...evaluation.tasks.next_utterance_task import is_ensemble, log_of_mean_probability, members_of
from ...methods.ranker import (
    LoadedRanker,
    RankingExample,
    encode_contexts,
    encode_responses,
    load_ranker,
    score_candidates,
)
from ...storage.pretrained import resolve_backbone
from ..files.reading import read_path
from .hits import check_top

_SCORED = 256  # responses that a ranker without vectors scores at once

Ranked = list[tuple[str, float]]
"""Responses with their scores, the best first."""


def read_pool(path: Path) -> list[str]:
    """Read responses from a text file in UTF-8, one on each line.

    Of lines that are alike but for case and spaces, the first counts.
    """
    with explained(path, "save the file as UTF-8"), decompressed(path) as stream:
        lines = stream.read().decode("utf-8-sig").splitlines()
    responses: dict[str, str] = {}
    for line in filter(None, map(str.strip, lines)):
        responses.setdefault(plain(line), line)
    if not responses:
        raise InputError(f"{path}: got no response, expected one on each line; fill the file")
    return list(responses.values())


def rank_file(
    model: str, contexts: Path, pool: Path, *, top: int = 10, **reading: Any
) -> Iterator[str]:
    """Rank the responses of a file after the dialogues of another; yield lines to print.

    Dialogues are read as by `load_dialogues`.
    """
    check_top(top)
    dialogues = list(read_path(contexts, ReadingOptions(**reading)))
    responses = read_pool(pool)
    ranker = load_ranker(resolve_backbone(model))
    yield f"{len(responses):,} distinct responses"
    name = "probability" if is_ensemble(ranker) else "score"
    ranks = rank_pool(ranker, dialogues, responses, top)
    for number, (dialogue, ranked) in enumerate(zip(dialogues, ranks, strict=True), 1):
        yield from ["", _summary(dialogue, number), f"{'rank':>6} {name:>12}  response"]
        for rank, (text, score) in enumerate(ranked, 1):
            yield f"{rank:>6} {score:>12.6g}  {visible(text)}"


def rank_pool(
    ranker: LoadedRanker, dialogues: Sequence[Dialogue], responses: Sequence[str], top: int
) -> Iterator[Ranked]:
    """Yield the ``top`` best of P distinct responses for each dialogue, ties in order.

    A score is the ranker's own; an ensemble's is its probability over the whole pool. An InputError
    refuses a speaker without a mark.
    """
    members = members_of(ranker)
    for member in members:
        if member.model.multiplies:
            _check_roles(member.model.config.marker_ids or (), dialogues)
    scored = [_scores(member, dialogues, responses) for member in members]
    for parts in zip(*scored, strict=True):
        scores = log_of_mean_probability(np.stack(parts)) if is_ensemble(ranker) else parts[0]
        best = np.argsort(-scores, kind="stable")[:top]
        shown = np.exp(scores[best]) if is_ensemble(ranker) else scores[best]
        yield [(responses[place], float(score)) for place, score in zip(best, shown, strict=True)]


def _check_roles(marks: Sequence[int], dialogues: Sequence[Dialogue]) -> None:
    known = ROLES[: len(marks) - 1]  # the last mark is that of a response
    for number, dialogue in enumerate(dialogues, 1):
        if unknown := set(dialogue.roles).difference(known):
            raise InputError(
                f"context {dialogue.id or number}: got the role {min(unknown)}, expected one of "
                f"{', '.join(known)}, for which the model has a mark; merge speakers"
            )


def _scores(
    ranker: LoadedRanker, dialogues: Sequence[Dialogue], responses: Sequence[str]
) -> Iterator[NDArray[np.float64]]:
    """Score all responses after each dialogue, (P,)."""
    contexts = [dialogue.turns for dialogue in dialogues]
    if ranker.model.multiplies:
        queries = encode_contexts(ranker, contexts)
        vectors = encode_responses(ranker, responses)
        if ranker.model.config.score == "cosine":
            for matrix in (queries, vectors):
                matrix /= np.linalg.norm(matrix, axis=1, keepdims=True).clip(1e-12)
        for query in queries:
            yield (vectors @ query).astype(np.float64) / ranker.model.config.loss_temperature
        return
    starts = range(0, len(responses), _SCORED)
    parts = [tuple(responses[start : start + _SCORED]) for start in starts]
    for context in contexts:
        examples = [RankingExample(context, part) for part in parts]
        yield np.concatenate([score_candidates(ranker, [example])[0] for example in examples])


def _summary(dialogue: Dialogue, number: int) -> str:
    text = " ".join(" ".join(f"{turn.role}: {turn.content}" for turn in dialogue.turns).split())
    return visible(f"{dialogue.id or f'#{number}'}  {text[-100:]}")
