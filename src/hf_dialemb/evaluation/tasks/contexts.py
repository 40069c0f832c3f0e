"""Dialogues so far with responses to choose from: those that a corpus gives, or drawn from its dialogues."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...corpora.examples import ResponseSelection
from ...models.dialogue import Dialogue, plain

OTHERS = 99
"""How many other responses are drawn for each context."""

FEWEST_TURNS = 2
"""A context has at least so many turns: one alone is a single utterance."""


class Choice(NamedTuple):
    """A dialogue so far, with responses to choose from.

    Attributes:
        context: The text of its turns, joined by blanks.
        responses: The candidates.
        correct: Those of them that really followed; at least one.
    """

    context: str
    responses: tuple[str, ...]
    correct: tuple[str, ...]


class Response(NamedTuple):
    """A turn that answers another role, in its dialogue.

    Attributes:
        dialogue: The position of the dialogue.
        turn: The position of the turn in it.
        role: Who speaks.
        content: What is said.
    """

    dialogue: int
    turn: int
    role: str
    content: str


def given_choices(selections: Iterable[ResponseSelection]) -> list[Choice]:
    """Takes the candidates that a corpus gives."""
    return [
        Choice(
            " ".join(turn.content for turn in selection.context),
            selection.responses,
            tuple(selection.responses[position] for position in selection.correct),
        )
        for selection in selections
        if selection.correct
    ]


def responses_of(dialogues: Iterable[Dialogue]) -> list[Response]:
    """Lists the turns that have at least `FEWEST_TURNS` before them, the last one of another role."""
    return [
        Response(row, place, turn.role, turn.content)
        for row, dialogue in enumerate(dialogues)
        for place, turn in enumerate(dialogue.turns)
        if place >= FEWEST_TURNS and turn.role != dialogue.turns[place - 1].role
    ]


def others_of(responses: list[Response]) -> list[NDArray[np.intp]]:
    """Finds what may stand beside each response: what the same role says in other dialogues, in other words."""
    dialogues = np.array([response.dialogue for response in responses])
    roles = np.unique([response.role for response in responses], return_inverse=True)[1]
    texts = np.unique([plain(response.content) for response in responses], return_inverse=True)[1]
    return [
        np.flatnonzero((roles == role) & (dialogues != dialogue) & (texts != text))
        for dialogue, role, text in zip(dialogues, roles, texts, strict=True)
    ]


def draw_choices(
    dialogues: list[Dialogue], responses: list[Response], others: list[NDArray[np.intp]], seed: int
) -> list[Choice]:
    """Draws a response of each dialogue and `OTHERS` to stand beside it."""
    generator = np.random.default_rng([seed])
    turns = defaultdict(list)
    for place, response in enumerate(responses):
        if len(others[place]) >= OTHERS:
            turns[response.dialogue].append(place)
    choices = []
    for row, places in turns.items():
        place = places[generator.integers(len(places))]
        drawn = generator.choice(others[place], OTHERS, replace=False)
        true = responses[place]
        context = " ".join(turn.content for turn in dialogues[row].turns[: true.turn])
        choices.append(Choice(context, (true.content, *(responses[other].content for other in drawn)), (true.content,)))
    return choices
