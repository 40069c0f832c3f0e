"""Response selection without training (DSE, section 4.2.2): which of a hundred responses follows?

``response-selection`` asks it of a single utterance. Its pairs are an utterance and the one right after it, where
another role speaks. Each repeat shuffles the pairs and cuts them into blocks of a hundred; the last, incomplete block
is dropped. A query's candidates are the responses of its block, without those of its own text: in a dialogue it answers
something itself. The setting ``official`` is DSE's program: the first pairs in the order of the files, repeated ones
too, in consecutive blocks, where only the true response is correct and no other is left out. It is made for dialogues
of one question and one answer; in longer ones most queries find themselves before all else.

``dialogue-response-selection`` asks it of a dialogue so far. Some corpora give the candidates; from dialogues each
repeat draws one response of each, with at least two turns before it, and 99 of the same role from other dialogues. Of a
long context the end is kept. The setting ``official`` is DSE's program: the beginning is kept, and the true response
comes twice among the candidates, of which only one is correct.

Outside ``official``, candidates whose text is that of the true response, but for case and spaces, are correct as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...encoders.specs import Encoder
from ...metrics.response_selection.functional import selection_scores
from ...models.dialogue import plain
from ...models.errors import InputError
from .contexts import FEWEST_TURNS, OTHERS, Choice, draw_choices, given_choices, others_of, responses_of
from .sampling import fixed_sample
from .task import Measurement, Problem, Task, percentage
from .texts import TextVectors, first_words, kind_of, last_words, name_of

BLOCK = 100
"""How many responses an utterance chooses from."""

PAIRS = 5_000
"""The limit where none is given to pairs: a minute's work for a small model on two processor cores."""

CONTEXTS = 1_000
"""The limit where none is given to contexts from dialogues, which are longer."""

CONTEXT_WORDS = 100
"""Where contexts are cut; about the 128 tokens of the paper's appendix B.1."""

UTTERANCE, DIALOGUE = "response-selection", "dialogue-response-selection"

OFFICIAL = "official"
"""The setting that follows DSE's program."""

_Pair = tuple[str, str]
_Scores = dict[str, float]
_Mask = NDArray[np.bool_]
_Draw = Callable[[int], list[Choice]]


def load_pairs(corpus: str, data_dir: str | Path | None, split: str, limit: int | None) -> Problem:
    """Loads pairs of an utterance and the response to it."""
    from ...corpora import load_dialogues

    said = [
        (turn.content, response.content)
        for dialogue in load_dialogues(corpus, data_dir, split)
        for turn, response in pairwise(dialogue.turns)
        if turn.role != response.role
    ]
    distinct = list(dict.fromkeys(said))
    pairs = fixed_sample(distinct, PAIRS if limit is None else limit)
    official = said[: len(pairs)]
    if len(pairs) < BLOCK:
        raise InputError(
            f"corpus {corpus}, split {split}: got {len(pairs)} pairs of an utterance and a response, expected at least "
            f"{BLOCK}; choose another corpus or raise the limit"
        )
    config = {
        "corpus": name_of(corpus),
        "split": split,
        "limit": limit,
        "pairs": len(pairs),
        "pairs_of_the_split": len(distinct),
        "candidates": BLOCK,
    }

    def measure(encoder: Encoder, seeds: Sequence[int]) -> list[Measurement]:
        vectors = TextVectors(encoder, (text for pair in (*pairs, *official) for text in pair))
        repeats = []
        for seed in seeds:
            order = np.random.default_rng([seed]).permutation(len(pairs))
            repeats.append(_blocks(vectors, [pairs[place] for place in order], _masks))
        fixed = _blocks(vectors, official, _official_masks)
        return [*_measurements(UTTERANCE, "", repeats), *_measurements(UTTERANCE, OFFICIAL, [fixed])]

    return Problem(config, measure)


def load_contexts(corpus: str, data_dir: str | Path | None, split: str, limit: int | None) -> Problem:
    """Loads dialogues so far and responses to choose from."""
    given = kind_of(corpus) == "response-selection"
    draw, sizes = (_given if given else _drawn)(corpus, data_dir, split, limit)
    config = {"corpus": name_of(corpus), "split": split, "limit": limit, "context_words": CONTEXT_WORDS, **sizes}

    def measure(encoder: Encoder, seeds: Sequence[int]) -> list[Measurement]:
        repeats = [draw(seed) for seed in (seeds[:1] if given else seeds)]
        texts = (text for choices in repeats for choice in choices for text in _texts(choice))
        vectors = TextVectors(encoder, texts)
        return [
            figure
            for setting, rank in (("", _ranked), (OFFICIAL, _officially))
            for figure in _over_contexts(setting, [[rank(vectors, each) for each in choices] for choices in repeats])
        ]

    return Problem(config, measure)


def _given(corpus: str, data_dir: str | Path | None, split: str, limit: int | None) -> tuple[_Draw, dict[str, Any]]:
    from ...corpora import load_examples

    selections = load_examples(corpus, data_dir, split)
    answered = given_choices(selections)
    choices = fixed_sample(answered, limit)
    if not choices:
        raise InputError(
            f"corpus {corpus}, split {split}: got no context with a correct response; choose another split"
        )
    counts = [len(choice.responses) for choice in choices]
    sizes = {
        "contexts": len(choices),
        "without_correct_response": len(selections) - len(answered),
        "fewest_candidates": min(counts),
        "most_candidates": max(counts),
    }
    return lambda seed: choices, sizes


def _drawn(corpus: str, data_dir: str | Path | None, split: str, limit: int | None) -> tuple[_Draw, dict[str, Any]]:
    from ...corpora import load_dialogues

    dialogues = load_dialogues(corpus, data_dir, split)
    found = responses_of(dialogues)
    responses = fixed_sample(found, CONTEXTS if limit is None else limit)
    others = others_of(responses)

    def draw(seed: int) -> list[Choice]:
        return draw_choices(dialogues, responses, others, seed)

    if not draw(0):
        raise InputError(
            f"corpus {corpus}, split {split}: got {len(responses)} responses after {FEWEST_TURNS} turns or more, none "
            f"with {OTHERS} of its role that say something else in other dialogues; choose another corpus or raise the "
            "limit"
        )
    return draw, {
        "contexts": len(responses),
        "contexts_of_the_split": len(found),
        "contexts_per_repeat": len(draw(0)),  # whatever the seed
        "candidates": OTHERS + 1,
    }


def _blocks(
    vectors: TextVectors,
    pairs: Sequence[_Pair],
    masks: Callable[[Sequence[str], Sequence[str]], tuple[_Mask, _Mask | None]],
) -> _Scores:
    """Scores consecutive blocks; ``masks`` says which responses are correct for a query, and which are left out."""
    scores = []
    for start in range(0, len(pairs) - BLOCK + 1, BLOCK):
        queries, responses = zip(*pairs[start : start + BLOCK], strict=True)
        scores.append(selection_scores(vectors.of(queries), vectors.of(responses), *masks(queries, responses)))
    return _mean(scores)


def _masks(queries: Sequence[str], responses: Sequence[str]) -> tuple[_Mask, _Mask]:
    asked, offered = np.array([plain(text) for text in queries]), np.array([plain(text) for text in responses])
    return offered[:, None] == offered, asked[:, None] == offered


def _official_masks(queries: Sequence[str], responses: Sequence[str]) -> tuple[_Mask, None]:
    return np.eye(len(queries), len(responses), dtype=bool), None


def _texts(choice: Choice) -> tuple[str, ...]:
    return (last_words(choice.context, CONTEXT_WORDS), first_words(choice.context, CONTEXT_WORDS), *choice.responses)


def _ranked(vectors: TextVectors, choice: Choice) -> _Scores:
    forms = {plain(text) for text in choice.correct}
    query = vectors.of([last_words(choice.context, CONTEXT_WORDS)])
    return selection_scores(query, vectors.of(choice.responses), [[plain(text) in forms for text in choice.responses]])


def _officially(vectors: TextVectors, choice: Choice) -> _Scores:
    candidates = (choice.correct[0], *choice.responses)
    query = vectors.of([first_words(choice.context, CONTEXT_WORDS)])
    return selection_scores(query, vectors.of(candidates), [[place == 0 for place in range(len(candidates))]])


def _mean(scores: Sequence[_Scores]) -> _Scores:
    return {metric: float(np.mean([each[metric] for each in scores])) for metric in scores[0]}


def _measurements(task: str, setting: str, repeats: Sequence[_Scores]) -> list[Measurement]:
    return [percentage(task, metric, setting, [scores[metric] for scores in repeats]) for metric in repeats[0]]


def _over_contexts(setting: str, repeats: Sequence[Sequence[_Scores]]) -> list[Measurement]:
    """Averages over contexts, which are the same in all repeats; only what they choose from is drawn anew."""
    found = []
    for metric in repeats[0][0]:
        shares = np.array([[scores[metric] for scores in contexts] for contexts in repeats])
        values = shares.mean(axis=1).tolist()
        found.append(percentage(DIALOGUE, metric, setting, values, shares.mean(axis=0)))
    return found


TASKS = (
    Task(UTTERANCE, load_pairs, "DSE, section 4.2.2"),
    Task(DIALOGUE, load_contexts, "DSE, section 4.2.2", kinds=("dialogues", "response-selection")),
)
