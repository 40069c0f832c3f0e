"""What a search found."""

from dataclasses import asdict, dataclass
from typing import Any

from ...display import data_frame, visible
from ...errors import InputError
from .query_reading import Reading


@dataclass(frozen=True)
class Hit:
    """A turn that was found.

    Its ``row`` stays its own in its index, whatever is added or deleted. Its ``score`` is how many
    standard deviations its cosine is above that of the average turn, and what its words, its
    speaker and its time add.
    """

    row: int
    user: str
    id: str  # of its dialogue; ``#12`` for the twelfth of a file that has no id
    turn: int  # its place in its dialogue, from 0 on
    role: str
    speaker: str
    time: str
    text: str
    score: float
    cosine: float
    probability: float | None  # that it answers, where those of the encoder are fitted
    words: tuple[str, ...]  # those that it shares with the query
    before: str  # the turn before it, with its speaker
    after: str

    def __str__(self) -> str:
        why = f"cosine {self.cosine:.2f}"
        if self.probability is not None:
            why += f", probability {self.probability:.2f}"
        if self.words:
            why += f"; words: {', '.join(self.words)}"
        when = f" {self.time}" if self.time else ""
        lines = [f"{self.score:6.2f} {self.id}, turn {self.turn + 1}{when} ({why})"]
        lines += [
            f"     {mark} {' '.join(text.split())}"
            for mark, text in (
                (" ", self.before),
                (">", f"{self.speaker or self.role}: {self.text}"),
                (" ", self.after),
            )
            if text
        ]
        return "\n".join(map(visible, lines))


class Hits(tuple[Hit, ...]):
    """What a search found, the nearest first; ``read_as`` says how the query was understood."""

    read_as: Reading = Reading()

    def to_pandas(self) -> Any:
        """Return a DataFrame with a row for each hit."""
        return data_frame([asdict(hit) for hit in self])

    def __repr__(self) -> str:
        read = str(self.read_as)
        return "\n".join([*([f"Read as {visible(read)}"] if read else []), *map(str, self)])


def check_top(top: int) -> None:
    """Refuse what is no number of wanted hits."""
    if not isinstance(top, int) or top < 1:
        raise InputError(f"top: got {top!r}, expected a whole number of at least 1")
