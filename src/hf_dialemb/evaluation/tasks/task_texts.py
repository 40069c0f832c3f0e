"""Texts of tasks: vectors, cosines and cuts.

And dialogues so far with responses to choose from, given or drawn.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...data.examples import ResponseSelection
from ...dialogue import WORD, Dialogue, plain
from ...encoders import Encoder
from ...metrics.vectors import COSINE_STEPS, require

OTHERS = 99  # how many other responses are drawn for each context
FEWEST_TURNS = 2  # in a context; a single turn is an utterance


class TextVectors:
    """The vectors of texts, each distinct text encoded once.

    They are utterances, or queries and documents, which a model may want prompts before.
    """

    def __init__(self, encoder: Encoder, texts: Iterable[str], kind: str = "utterances") -> None:
        self._places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        encode: Callable[[list[str]], NDArray[np.float32]] = getattr(encoder, f"encode_{kind}")
        self._vectors = encode(list(self._places))

    def of(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of some of them, ``(N, D)``."""
        return self._vectors[[self._places[text] for text in texts]]


def row_cosines(first: NDArray[np.floating], second: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the cosine of each row with the same, or the only, row of another matrix, (N,).

    Of zero vectors 0.
    """
    entry = np.asarray(first, dtype=np.float64)
    other = np.asarray(second, dtype=np.float64)
    finite = np.isfinite(entry).all() and np.isfinite(other).all()
    require(
        finite, "embeddings", "a vector with NaN or infinity", "finite numbers; look at the encoder"
    )
    lengths = np.linalg.norm(entry, axis=1) * np.linalg.norm(other, axis=1)
    cosines: NDArray[np.float64] = np.einsum("nd,nd->n", entry, np.broadcast_to(other, entry.shape))
    return np.rint(cosines / np.where(lengths == 0, 1, lengths) * COSINE_STEPS) / COSINE_STEPS


def first_words(text: str, count: int) -> str:
    """Keep the beginning of a text, at most ``count`` words.

    A Chinese character counts as a word.
    """
    ends = [word.end() for word in WORD.finditer(text)]
    return text if len(ends) <= count else text[: ends[count - 1]]


def last_words(text: str, count: int) -> str:
    """Keep the end of a text, at most ``count`` words; a Chinese character counts as a word."""
    starts = [word.start() for word in WORD.finditer(text)]
    return text if len(starts) <= count else text[starts[-count] :]


class Response(NamedTuple):
    """A turn that answers another role.

    The position of its dialogue and its own there, who speaks, and what.
    """

    dialogue: int
    turn: int
    role: str
    content: str


def correct_candidates(selection: ResponseSelection, official: bool = False) -> NDArray[np.bool_]:
    """Return which candidates are correct.

    What says the same as what followed as well, but not officially.
    """
    if official:
        return np.isin(np.arange(len(selection.responses)), selection.correct)
    forms = {plain(selection.responses[place]) for place in selection.correct}
    return np.array([plain(text) in forms for text in selection.responses])


def responses_of(dialogues: Iterable[Dialogue]) -> list[Response]:
    """List the turns after `FEWEST_TURNS` or more, the last of which is of another role."""
    return [
        Response(row, place, turn.role, turn.content)
        for row, dialogue in enumerate(dialogues)
        for place, turn in enumerate(dialogue.turns)
        if place >= FEWEST_TURNS and turn.role != dialogue.turns[place - 1].role
    ]


def others_of(responses: list[Response]) -> list[NDArray[np.intp]]:
    """Find what may stand beside each response.

    What the same role says in other dialogues, in other words.
    """
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
    """Draw a response of each dialogue and `OTHERS` to stand beside it.

    The true one comes first.
    """
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
        selections.append(
            ResponseSelection(dialogues[row].turns[: responses[place].turn], offered, (0,))
        )
    return selections
