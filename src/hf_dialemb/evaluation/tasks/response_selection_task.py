"""Response selection without training (DSE, section 4.2.2): which of a hundred responses follows?

``response-selection`` asks it of an utterance, which the one right after it, of another role,
answers. Each repeat shuffles the pairs and cuts them into blocks of a hundred, whose responses are
the candidates, without those of the query's own text. The setting ``official`` is DSE's program:
the first pairs in the order of the files, repeated ones too, in consecutive blocks, where only the
true response is correct. It is made for dialogues of one question and one answer; in longer ones
most queries find themselves before all else.

``dialogue-response-selection`` asks it of a dialogue so far, whose end is kept. Each
repeat draws one response of each dialogue, with at least two turns before it, and 99 of the same
role from other dialogues. What says the same as the true response is correct as well. The setting
``official`` is DSE's program: the beginning is kept, and the true response stands twice among the
candidates, but only one copy counts as correct.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np

from ...data.examples import ResponseSelection
from ...dialogue import plain
from ...encoders import Encoder
from ...metrics.response_selection import selection_scores
from ..results.rows import Row
from . import task_texts
from .task import CorpusPart, Problem, percentage
from .task_texts import TextVectors, first_words, last_words

BLOCK = 100  # how many responses an utterance chooses from
# the limit where none is given to pairs: a minute's work for a small model on two processor cores
PAIRS = 5_000
CONTEXTS = 1_000  # the limit where none is given to contexts from dialogues, which are longer
CONTEXT_WORDS = 100  # where contexts are cut; about the 128 tokens of the paper's appendix B.1
OFFICIAL = "official"  # the setting that follows DSE's program

_Scores = dict[str, float]


class _Vectors:
    """The vectors of what asks, and of what answers it."""

    def __init__(self, encoder: Encoder, queries: Iterable[str], responses: Iterable[str]) -> None:
        self.queries = TextVectors(encoder, queries, "query")
        self.responses = TextVectors(encoder, responses, "document")


def load_pairs(part: CorpusPart) -> Problem:
    """Load pairs of an utterance and the response to it."""
    spoken = [
        (turn.content, response.content)
        for dialogue in part.dialogues()
        for turn, response in pairwise(dialogue.turns)
        if turn.role != response.role
    ]
    distinct = list(dict.fromkeys(spoken))
    pairs = part.sample(distinct, PAIRS)
    if len(pairs) < BLOCK:
        raise part.error(
            f"got {len(pairs)} pairs of an utterance and a response, expected at least {BLOCK}; "
            "choose another corpus "
            "or raise the limit"
        )
    official = spoken[: len(pairs)]

    def measure(encoder: Encoder, seeds: Sequence[int]) -> list[Row]:
        vectors = _Vectors(encoder, *zip(*pairs, *official, strict=True))
        orders = [np.random.default_rng([seed]).permutation(len(pairs)) for seed in seeds]
        repeats = [
            _mean_of_blocks(vectors, [pairs[place] for place in order], official=False)
            for order in orders
        ]
        settings = {"": repeats, OFFICIAL: [_mean_of_blocks(vectors, official, official=True)]}
        return [
            percentage(
                "response-selection", metric, setting, [scores[metric] for scores in results]
            )
            for setting, results in settings.items()
            for metric in results[0]
        ]

    return Problem(
        {"pairs": len(pairs), "pairs_of_the_split": len(distinct), "candidates": BLOCK}, measure
    )


def _mean_of_blocks(vectors: _Vectors, pairs: Sequence[tuple[str, str]], official: bool) -> _Scores:
    scores = []
    for start in range(0, len(pairs) - BLOCK + 1, BLOCK):
        queries, responses = zip(*pairs[start : start + BLOCK], strict=True)
        correct = np.eye(BLOCK, dtype=bool)
        ignored = None
        if not official:
            asked = np.array(list(map(plain, queries)))
            offered = np.array(list(map(plain, responses)))
            correct = offered[:, None] == offered
            ignored = asked[:, None] == offered
        scores.append(
            selection_scores(
                vectors.queries.of(queries), vectors.responses.of(responses), correct, ignored
            )
        )
    return {metric: float(np.mean([item[metric] for item in scores])) for metric in scores[0]}


def load_contexts(part: CorpusPart) -> Problem:
    """Load dialogues so far and responses to choose from."""
    draw, sizes = selections_of(part)
    if not draw(0):
        raise part.error(
            f"got {sizes['contexts']} responses after {task_texts.FEWEST_TURNS} turns or more, "
            f"none with {task_texts.OTHERS} of its role that say something else in other "
            "dialogues; choose another split or corpus, or raise the limit"
        )

    def measure(encoder: Encoder, seeds: Sequence[int]) -> list[Row]:
        repeats = [draw(seed) for seed in seeds]
        drawn = list(chain.from_iterable(repeats))
        contexts = chain.from_iterable(map(_contexts, drawn))
        spoken = (text for selection in drawn for text in selection.responses)
        vectors = _Vectors(encoder, contexts, spoken)
        results = []
        for setting in ("", OFFICIAL):
            scores = [
                [_scored(vectors, selection, setting) for selection in item] for item in repeats
            ]
            for metric in scores[0][0]:
                # Contexts are the same in all repeats: only what they choose from is drawn anew.
                shares = np.array([[item[metric] for item in selections] for selections in scores])
                means = shares.mean(axis=1).tolist()
                results.append(
                    percentage(
                        "dialogue-response-selection", metric, setting, means, shares.mean(axis=0)
                    )
                )
        return results

    return Problem({"context_words": CONTEXT_WORDS, **sizes}, measure)


def selections_of(
    part: CorpusPart,
) -> tuple[Callable[[int], list[ResponseSelection]], dict[str, Any]]:
    """Return a function that draws contexts by a seed, and their numbers."""
    dialogues = part.dialogues()
    results = task_texts.responses_of(dialogues)
    responses = part.sample(results, CONTEXTS)
    others = task_texts.others_of(responses)

    def draw(seed: int) -> list[ResponseSelection]:
        return task_texts.draw_selections(dialogues, responses, others, seed)

    return draw, {
        "contexts": len(responses),
        "contexts_of_the_split": len(results),
        "contexts_per_repeat": len(draw(0)),  # whatever the seed
        "candidates": task_texts.OTHERS + 1,
    }


def _contexts(selection: ResponseSelection) -> tuple[str, str]:
    """Return the end of a context and its beginning."""
    context = " ".join(turn.content for turn in selection.context)
    return last_words(context, CONTEXT_WORDS), first_words(context, CONTEXT_WORDS)


def _scored(vectors: _Vectors, selection: ResponseSelection, setting: str) -> _Scores:
    context, beginning = _contexts(selection)
    responses = selection.responses
    correct = task_texts.correct_candidates(selection)
    if setting == OFFICIAL:
        context = beginning
        responses = (responses[selection.correct[0]], *responses)
        correct = np.arange(len(responses)) == 0
    return selection_scores(
        vectors.queries.of([context]), vectors.responses.of(responses), [correct]
    )
