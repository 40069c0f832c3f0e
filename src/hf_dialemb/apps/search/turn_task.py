"""Retrieval of turns (LoCoMo; Maharana et al., 2024, section 4.1).

Which turns of a conversation answer a question?

A dialogue brings its questions as metadata: ``{"questions": [{"question": "...", "turns": [3,
17]}]}``, with the places of the turns that answer. At a place ``before``, if there is one, only the
turns before it have been said: an index that grows knows nothing of those after. Of dialogues
without questions, each slot is asked for: the answer is the first turn that gave it a value.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from ...dialogue import Dialogue
from ...encoders import Encoder
from ...evaluation.results.rows import Row
from ...evaluation.tasks.task import CorpusPart, Problem, Task, item_percentage
from ...methods.sessions import Question, questions_of, spoken
from ...metrics.ndcg import DECIMALS, ndcg
from ...metrics.vectors import expected_share, reciprocal_rank, unit
from .turn_index import TurnIndex
from .turn_scores import Scores, standard, with_session

NAME = "turn-retrieval"
RANKS = 10

TASKS = {
    NAME: Task(
        NAME,
        "which turns of a long conversation answer a question, by meaning and words",
        "hf_dialemb.apps.search.turn_task:load_questions",
        "LoCoMo (Maharana et al., 2024), section 4.1",
    )
}


def load_questions(part: CorpusPart) -> Problem:
    """Load conversations and what is asked of each."""
    pairs = [
        (dialogue, question) for dialogue in part.dialogues() for question in questions_of(dialogue)
    ]
    kept = part.sample(pairs)
    if not kept:
        raise part.error(
            "got no question, expected dialogues with questions in their metadata, or with slots; "
            "give it others"
        )
    asked: defaultdict[int, list[Question]] = defaultdict(list)
    dialogues = {id(dialogue): dialogue for dialogue, _ in kept}
    for dialogue, question in kept:
        asked[id(dialogue)].append(question)

    def measure(encoder: Encoder, seeds: Sequence[int]) -> list[Row]:
        figures: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        for key, questions in asked.items():
            for setting, question, scores in _scored(encoder, dialogues[key], questions):
                for metric, value in figures_of(scores, question.turns).items():
                    figures[metric, setting].append(value)
        return [
            item_percentage(NAME, metric, setting, values)
            for (metric, setting), values in figures.items()
        ]

    return Problem(
        {
            "questions": len(kept),
            "conversations": len(asked),
            "ranks": RANKS,
            "turns": sum(len(dialogue.turns) for dialogue in dialogues.values()),
        },
        measure,
    )


def _scored(
    encoder: Encoder, dialogue: Dialogue, questions: Sequence[Question]
) -> Iterator[tuple[str, Question, Scores]]:
    """Score the turns before each question in five settings.

    By the turn's vector alone, in its surroundings, by BM25, and by either vector with words.
    """
    asked = sorted(questions, key=lambda question: question.before)
    index = TurnIndex(encoder=encoder)
    alone = unit(encoder.encode_document([spoken(turn) for turn in dialogue.turns]))
    vectors = unit(encoder.encode_query([question.text for question in asked]))
    for question, vector in zip(asked, vectors, strict=True):
        if question.before > len(index):
            index.add_turns(dialogue.turns[len(index) : question.before])
        scored = index.scored(question.text, vector)
        by_itself = (alone[: question.before] @ vector).astype(np.float64)
        with_words = with_session(standard(by_itself) + scored.beside, scored.before)
        yield "alone", question, by_itself
        yield "surroundings", question, scored.cosines
        yield "words", question, scored.bm25
        yield "alone and words", question, with_words
        yield "", question, scored.total


def figures_of(scores: Scores, turns: Sequence[int]) -> dict[str, float]:
    """Return nDCG and recall at `RANKS`, and the reciprocal rank, of the scores of N turns (N,)."""
    relevant = np.isin(np.arange(len(scores)), turns)
    rounded = scores.round(DECIMALS)  # as nDCG's: equal vectors tie, however a product was summed
    return {
        f"ndcg{RANKS}": ndcg(scores[None], relevant[None], RANKS),
        f"recall{RANKS}": expected_share(RANKS, rounded, relevant),
        "mrr": reciprocal_rank(np.sort(rounded), np.sort(rounded[relevant])),
    }
