"""What a search found."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...dialogue import Dialogue
from ...display import data_frame, visible
from ...errors import InputError


@dataclass(frozen=True)
class Hit:
    """A dialogue that was found."""

    row: int  # its place among the dialogues
    id: str  # ``#12`` for the twelfth if it has none
    score: float  # its cosine with the query
    domains: tuple[str, ...]
    text: str  # how it begins

    def __str__(self) -> str:
        labels = f" [{', '.join(self.domains)}]" if self.domains else ""
        return visible(f"{self.score:6.3f} {self.id}{labels} {self.text}")


@dataclass(frozen=True)
class IndexHit(Hit):
    """A row of an index, which may be a part of a dialogue.

    Its ``row`` is its place among the hits.
    """

    role: str = ""
    turn: int = 0  # its place in its dialogue, from 0 on
    time: str = ""
    topic: str = ""


@dataclass(frozen=True)
class TurnHit(IndexHit):
    """A turn that was found.

    Its ``score`` is how many standard deviations its cosine is above that of the average turn, and
    what its words, its speaker and its time add.
    """

    speaker: str = ""
    cosine: float = 0.0
    words: tuple[str, ...] = ()  # those that it shares with the query
    before: str = ""  # the turn before it, with its speaker
    after: str = ""

    def __str__(self) -> str:
        why = f"cosine {self.cosine:.2f}"
        if self.words:
            why += f"; words: {', '.join(self.words)}"
        when = f" {self.time}" if self.time else ""
        lines = [f"{self.score:6.2f} {self.id}, turn {self.turn + 1}{when} ({why})"]
        own = f"{self.speaker or self.role}: {self.text}"
        for mark, text in ((" ", self.before), (">", own), (" ", self.after)):
            if text:
                lines.append(f"     {mark} {' '.join(text.split())}")
        return "\n".join(map(visible, lines))


class Hits(tuple[Hit, ...]):
    """What a search found, the nearest first."""

    __slots__ = ()

    def to_pandas(self) -> Any:
        """Return a DataFrame with a row for each dialogue."""
        return data_frame([asdict(hit) for hit in self])

    def __repr__(self) -> str:
        return "\n".join(map(str, self))


def check_top(top: int) -> None:
    """Refuse what is no number of wanted hits."""
    if isinstance(top, bool) or not isinstance(top, int) or top < 1:
        raise InputError(f"top: got {top!r}, expected a whole number of at least 1")


def best_rows(scores: NDArray[Any], top: int) -> NDArray[np.intp]:
    """Return the rows of the ``top`` highest of N scores (N,), best first, ties in order."""
    rows = np.arange(len(scores))
    if top < len(scores):
        rows = np.flatnonzero(scores >= np.partition(scores, -top)[-top])
    best: NDArray[np.intp] = rows[np.argsort(-scores[rows], kind="stable")][:top]
    return best


def beginning(dialogue: Dialogue) -> str:
    """Return the beginning of a dialogue in a line of at most 100 characters."""
    text = " / ".join(" ".join(turn.content.split()) for turn in dialogue.turns)
    return text if len(text) <= 100 else text[:99] + "…"
