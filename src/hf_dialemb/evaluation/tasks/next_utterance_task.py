"""Next-utterance retrieval (Mehri and Eskenazi, 2019, section 4).

Which of K responses follows a dialogue so far?

Some corpora give the candidates. From dialogues, every response gets 19 others to stand beside it,
drawn once from all that is said there as a response, so that all models rank the same ones. A
ranker of this package scores them as it was trained to, an ensemble by equation 7; any other model
by the cosine of the context's text and the response.

What says the same as a correct candidate is correct as well, and ties count as the mean over their
orders. In the setting ``official`` neither is so, and ties are a success, as in the released
program of Deep Attention Matching.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...data.examples import ResponseSelection, draw_candidates
from ...dialogue import Turn
from ...encoders import Encoder
from ...errors import InputError
from ...metrics.next_utterance import EXPECTED, OFFICIAL, example_scores
from ..results.rows import Row
from .task import CorpusPart, Problem, ask_encoder, item_percentage
from .task_texts import TextVectors, correct_candidates, last_words, row_cosines

if TYPE_CHECKING:
    from ...methods.ranker import LoadedRanker

NAME = "next-utterance-retrieval"

# K, among how many responses the true one stands where they are drawn from dialogues (section 4.1)
CANDIDATES = 20
SEED = 13  # of these draws, whatever the seeds of a run
# the end of a context that an encoder of texts reads, as the dual encoders of section 4.2.1 do
CONTEXT_WORDS = 160

Scores = list[NDArray[np.float64]]  # of each candidate set those of its candidates, (K,)


class MemberScores(NamedTuple):
    """What a ranker that is no ensemble makes of each set.

    Scores, (K,), and cosines with the context if it embeds.
    """

    scores: Scores
    cosines: Scores | None


def load_selections(part: CorpusPart) -> Problem:
    """Load dialogues so far and responses to choose from.

    Candidates are the same whatever the limit.
    """
    results, config = _drawn(part)
    selections = part.sample(results)

    def measure(encoder: Encoder, seeds: Sequence[int]) -> list[Row]:
        scores = _scores(encoder, selections)
        measurements = []
        for setting, ties in (("", EXPECTED), (OFFICIAL, OFFICIAL)):
            correct = [
                correct_candidates(selection, setting == OFFICIAL) for selection in selections
            ]
            for metric, values in example_scores(scores, correct, ties).items():
                measurements.append(item_percentage(NAME, metric, setting, values))
        return measurements

    sizes = {
        "contexts": len(selections),
        "contexts_of_the_split": len(results),
        "context_words": CONTEXT_WORDS,
    }
    return Problem(sizes | config, measure)


def _drawn(part: CorpusPart) -> tuple[list[ResponseSelection], dict[str, Any]]:
    dialogues = part.dialogues()
    assisted = any(turn.role == "assistant" for dialogue in dialogues for turn in dialogue.turns)
    responses = "assistant" if assisted else "any"
    try:
        selections = draw_candidates(dialogues, CANDIDATES, responses, SEED)
    except InputError as error:
        raise part.error(str(error)) from None
    return selections, {"candidates": CANDIDATES, "responses": responses, "draw_seed": SEED}


def _scores(encoder: Encoder, selections: Sequence[ResponseSelection]) -> Scores:
    """Score candidates by a ranker's own scores, else by their cosine with the context's text."""
    ranked = ask_encoder(
        encoder, "ranker", lambda ranker: candidate_scores(ranker, selections, show_progress=True)
    )
    if ranked is not None:
        return ranked
    contexts = [context_text(selection.context) for selection in selections]
    spoken = (text for selection in selections for text in selection.responses)
    asked = TextVectors(encoder, contexts, "query")
    vectors = TextVectors(encoder, spoken, "document")
    return [
        row_cosines(vectors.of(selection.responses), asked.of([context]))
        for context, selection in zip(contexts, selections, strict=True)
    ]


def context_text(context: Sequence[Turn]) -> str:
    """Write a context as one text with roles, and keep its last `CONTEXT_WORDS` words."""
    text = " ".join(f"{turn.role.replace('_', ' ')}: {turn.content}" for turn in context)
    return last_words(text, CONTEXT_WORDS)


def candidate_scores(
    ranker: LoadedRanker, selections: Sequence[ResponseSelection], show_progress: bool = False
) -> Scores:
    """Score the candidates of contexts; rankers that embed read each distinct response once."""
    members = [
        member_scores(member, selections, show_progress).scores for member in members_of(ranker)
    ]
    return averaged(members)


def averaged(members: Sequence[Scores]) -> Scores:
    """Average members' probabilities (equation 7), in logarithms.

    The scores of one alone stay as they are.
    """
    if len(members) == 1:
        return members[0]
    return [log_of_mean_probability(np.stack(scores)) for scores in zip(*members, strict=True)]


def is_ensemble(ranker: LoadedRanker) -> bool:
    """Return whether a ranker has members, whose probabilities are averaged."""
    from ...methods.multi_granularity import MultiGranularityModel

    return isinstance(ranker.model, MultiGranularityModel)


def members_of(ranker: LoadedRanker) -> list[LoadedRanker]:
    """List the members of an ensemble, or of any other ranker itself alone."""
    from ...methods.ranker import loaded_ranker

    if not is_ensemble(ranker):
        return [ranker]
    members: Any = ranker.model.members
    return [loaded_ranker(member, ranker.tokenizer) for member in members]


def log_of_mean_probability(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Average probabilities over an ensemble's members (equation 7).

    In logarithms, so that none becomes zero.
    """
    import torch

    from ...methods.multi_granularity import log_mean_probability

    return log_mean_probability(torch.from_numpy(scores)[None])[0].numpy()


def member_scores(
    ranker: LoadedRanker, selections: Sequence[ResponseSelection], show_progress: bool = False
) -> MemberScores:
    """Score the candidates of contexts with a ranker that is no ensemble.

    One that embeds reads each response once.
    """
    from ...methods.dual_encoder import TowerRanker
    from ...methods.ranker import (
        RankingExample,
        encode_contexts,
        encode_responses,
        score_candidates,
    )

    model = ranker.model
    if not isinstance(model, TowerRanker):
        examples = [
            RankingExample(selection.context, selection.responses) for selection in selections
        ]
        return MemberScores(score_candidates(ranker, examples, show_progress=show_progress), None)
    import torch

    places: dict[str, int] = {}
    rows = [
        [places.setdefault(text, len(places)) for text in selection.responses]
        for selection in selections
    ]
    responses = torch.from_numpy(
        encode_responses(ranker, list(places), show_progress=show_progress)
    )
    turns = [selection.context for selection in selections]
    contexts = torch.from_numpy(encode_contexts(ranker, turns, show_progress=show_progress))
    scores = []
    cosines = []
    for context, chosen in zip(contexts, rows, strict=True):
        scores.append(model.product(context[None], responses[chosen][None])[0].double().numpy())
        cosines.append(torch.cosine_similarity(context[None], responses[chosen]).double().numpy())
    return MemberScores(scores, cosines)
