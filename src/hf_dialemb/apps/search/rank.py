"""What would be said next.

A pool of responses ranked after dialogues, with a ranker or an ensemble of them.

A ranker of two towers embeds the pool once; others score each response together with each dialogue.
The probabilities of an ensemble are those of equation 7 over the whole pool (Mehri and Eskenazi,
2019, section 3.2). Memory holds one vector per response and member, whatever the number of
dialogues.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from ...data.reading_options import ReadingOptions
from ...data.source import decompressed
from ...dialogue import ROLES, Dialogue, plain
from ...drawing import visible
from ...errors import InputError
from ...evaluation.tasks.next_utterance_task import is_ensemble, log_of_mean_probability, members_of
from ...methods.ranker import (
    LoadedRanker,
    RankingExample,
    encode_contexts,
    encode_responses,
    load_ranker,
    score_candidates,
)
from ...storage.files import check_writable, write_text_atomically
from ...storage.pretrained import resolve_backbone
from ..files.reading import read_own
from .hits import best_rows

_EMBEDDED = 8_192  # responses that are encoded at once, beside the matrix of all
_SCORED = 256  # responses that a ranker without vectors scores at once
_SHOWN = 100  # characters of a dialogue above its responses

Ranked = list[tuple[str, float]]
"""Responses with their scores, the best first."""


class Pool(NamedTuple):
    """The distinct responses to choose from, in the words that came first, and how many lines were
    left out.

    ``repeated`` lines say what an earlier one says, but for case and spaces.
    """

    responses: list[str]
    blank: int
    repeated: int


def read_pool(path: Path) -> Pool:
    """Read responses from a text file, one on each line."""
    responses: dict[str, str] = {}
    lines = blank = 0
    try:
        with decompressed(path) as stream:
            for lines, line in enumerate(stream, 1):
                text = line.decode("utf-8-sig" if lines == 1 else "utf-8").strip()
                if text:
                    responses.setdefault(plain(text), text)
                blank += not text
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror}); give a text file of responses"
        ) from None
    except UnicodeDecodeError:
        raise InputError(
            f"{path}:{lines}: broken UTF-8, expected a response; save the file as UTF-8"
        ) from None
    if not responses:
        raise InputError(f"{path}: got no response, expected one on each line; fill the file")
    return Pool(list(responses.values()), blank, lines - blank - len(responses))


def rank_file(
    model: str,
    contexts: Path,
    pool: Path,
    *,
    top: int = 10,
    output: Path | None = None,
    **reading: Any,
) -> Iterator[str]:
    """Rank the responses of a file after the dialogues of another, which are read as by
    `load_dialogues`.
    """
    if top < 1:
        raise InputError(f"--top: got {top}, expected at least 1")
    if output is not None:
        check_writable(output, contexts, pool)
    dialogues = list(read_own(contexts, ReadingOptions(**reading)))
    responses, blank, repeated = read_pool(pool)
    ranker = load_ranker(resolve_backbone(model))
    yield f"{len(responses):,} responses ({blank:,} blank and {repeated:,} repeated lines left out)"
    name = "probability" if is_ensemble(ranker) else "score"
    lines = []
    for number, ranked in enumerate(
        rank_pool(ranker, dialogues, responses, top, show_progress=True)
    ):
        dialogue = dialogues[number]
        yield from ["", _summary(dialogue, number), f"{'rank':>6} {name:>12}  response"]
        yield from (
            f"{rank:>6} {score:>12.6g}  {visible(text)}"
            for rank, (text, score) in enumerate(ranked, 1)
        )
        scored = [{"response": text, name: score} for text, score in ranked]
        record = {"id": dialogue.id, "messages": dialogue.to_messages(), "ranked": scored}
        lines.append(json.dumps(record, ensure_ascii=False) + "\n")
    if output is not None:
        write_text_atomically(output, "".join(lines))


def rank_pool(
    ranker: LoadedRanker,
    dialogues: Sequence[Dialogue],
    responses: Sequence[str],
    top: int,
    show_progress: bool = False,
) -> Iterator[Ranked]:
    """Yield the ``top`` best of P distinct responses for each dialogue.

    Of equal responses the earlier first.

    A score is the ranker's own; an ensemble's is its probability over the whole pool. An InputError
    refuses a speaker without a mark.
    """
    members = members_of(ranker)
    for member in members:
        if member.model.multiplies:
            _check_roles(member.model.config.marker_ids or (), dialogues)
    for parts in zip(
        *(_scores(member, dialogues, responses, show_progress) for member in members), strict=True
    ):
        scores = log_of_mean_probability(np.stack(parts)) if is_ensemble(ranker) else parts[0]
        best = best_rows(scores, top)
        shown = np.exp(scores[best]) if is_ensemble(ranker) else scores[best]
        yield [(responses[place], float(score)) for place, score in zip(best, shown, strict=True)]


def _check_roles(marks: Sequence[int], dialogues: Sequence[Dialogue]) -> None:
    known = ROLES[: len(marks) - 1]  # the last mark is that of a response
    for number, dialogue in enumerate(dialogues, 1):
        unknown = [role for role in dialogue.roles if role not in known]
        if unknown:
            raise InputError(
                f"context {dialogue.id or number}: got the role {unknown[0]}, expected one of "
                f"{', '.join(known)}, for "
                "which the model has a mark; merge speakers"
            )


def _scores(
    ranker: LoadedRanker,
    dialogues: Sequence[Dialogue],
    responses: Sequence[str],
    show_progress: bool,
) -> Iterator[NDArray[np.float64]]:
    """Score all responses after each dialogue, (P,)."""
    if ranker.model.multiplies:
        queries, vectors = _embedded(ranker, dialogues, responses, show_progress)
        for query in queries:
            yield (vectors @ query).astype(np.float64) / ranker.model.config.loss_temperature
        return
    with tqdm(
        total=len(dialogues), desc="rank", unit="dialogue", disable=not show_progress
    ) as progress:
        for dialogue in dialogues:
            parts = (
                tuple(responses[start : start + _SCORED])
                for start in range(0, len(responses), _SCORED)
            )
            examples = (RankingExample(dialogue.turns, part) for part in parts)
            yield np.concatenate([score_candidates(ranker, [example])[0] for example in examples])
            progress.update()


def _embedded(
    ranker: LoadedRanker,
    dialogues: Sequence[Dialogue],
    responses: Sequence[str],
    show_progress: bool,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Embed dialogues (C, D) and responses (P, D) such that products are scores, but for the
    temperature.
    """
    queries = encode_contexts(ranker, [dialogue.turns for dialogue in dialogues])
    vectors = np.empty((len(responses), queries.shape[1]), dtype=np.float32)
    with tqdm(
        total=len(responses), desc="embed", unit="response", disable=not show_progress
    ) as progress:
        for start in range(0, len(responses), _EMBEDDED):
            part = responses[start : start + _EMBEDDED]
            vectors[start : start + len(part)] = encode_responses(ranker, part)
            progress.update(len(part))
    if ranker.model.config.score == "cosine":
        for matrix in (queries, vectors):
            matrix /= np.linalg.norm(matrix, axis=1, keepdims=True).clip(1e-12)
    return queries, vectors


def _summary(dialogue: Dialogue, number: int) -> str:
    text = " ".join(" ".join(f"{turn.role}: {turn.content}" for turn in dialogue.turns).split())
    shown = text if len(text) <= _SHOWN else "…" + text[1 - _SHOWN :]
    return visible(f"{dialogue.id or f'#{number + 1}'}  {shown}")
