"""Dialogues so far with responses to choose from: those that a corpus gives, or drawn from its dialogues."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...corpora.examples import ResponseSelection
from ...dialogue import Dialogue, plain

OTHERS = 99  # how many other responses are drawn for each context
FEWEST_TURNS = 2  # in a context; a single turn is an utterance


class Response(NamedTuple):
    """A turn that answers another role: the position of its dialogue and its own there, who speaks, and what."""

    dialogue: int
    turn: int
    role: str
    content: str


def sizes_of(selections: Sequence[ResponseSelection], unanswered: int) -> dict[str, Any]:
    """Return the numbers of candidates, and of selections that were left out."""
    counts = [len(selection.responses) for selection in selections]
    fewest, most = min(counts, default=0), max(counts, default=0)
    return {"without_correct_response": unanswered, "fewest_candidates": fewest, "most_candidates": most}


def correct_candidates(selection: ResponseSelection, official: bool = False) -> NDArray[np.bool_]:
    """Return which candidates are correct: what says the same as what followed as well, but not officially."""
    if official:
        return np.isin(np.arange(len(selection.responses)), selection.correct)
    forms = {plain(selection.responses[place]) for place in selection.correct}
    return np.array([plain(text) in forms for text in selection.responses])


def responses_of(dialogues: Iterable[Dialogue]) -> list[Response]:
    """List the turns that have at least `FEWEST_TURNS` before them, the last one of another role."""
    return [
        Response(row, place, turn.role, turn.content)
        for row, dialogue in enumerate(dialogues)
        for place, turn in enumerate(dialogue.turns)
        if place >= FEWEST_TURNS and turn.role != dialogue.turns[place - 1].role
    ]


def others_of(responses: list[Response]) -> list[NDArray[np.intp]]:
    """Find what may stand beside each response: what the same role says in other dialogues, in other words."""
    dialogues = np.array([response.dialogue for response in responses])
    roles = np.unique([response.role for response in responses], return_inverse=True)[1]
    texts = np.unique([plain(response.content) for response in responses], return_inverse=True)[1]
    return [
        np.flatnonzero((roles == role) & (dialogues != dialogue) & (texts != text))
        for dialogue, role, text in zip(dialogues, roles, texts, strict=True)
    ]


def draw_selections(
    dialogues: list[Dialogue], responses: list[Response], others: list[NDArray[np.intp]], seed: int
) -> list[ResponseSelection]:
    """Draw a response of each dialogue and `OTHERS` to stand beside it; the true one comes first."""
    generator = np.random.default_rng([seed])
    turns = defaultdict(list)
    for place, response in enumerate(responses):
        if len(others[place]) >= OTHERS:
            turns[response.dialogue].append(place)
    selections = []
    for row, places in turns.items():
        place = places[generator.integers(len(places))]
        drawn = generator.choice(others[place], OTHERS, replace=False)
        offered = tuple(responses[item].content for item in (place, *drawn))
        selections.append(ResponseSelection(dialogues[row].turns[: responses[place].turn], offered, (0,)))
    return selections
