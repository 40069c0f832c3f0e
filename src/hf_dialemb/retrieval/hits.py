"""What a search found."""

from dataclasses import asdict, dataclass
from typing import Any

from ..dialogue import Dialogue
from ..drawing import visible
from ..errors import InputError
from ..runs.frames import data_frame, html_table


@dataclass(frozen=True)
class Hit:
    """A dialogue that was found."""

    row: int  # its place among the dialogues
    id: str  # ``#12`` for the twelfth if it has none
    score: float  # its cosine with the query
    domains: tuple[str, ...]
    text: str  # how it begins; where a text was looked for, from the turn on that is nearest to it

    def __str__(self) -> str:
        labels = f" [{', '.join(self.domains)}]" if self.domains else ""
        return visible(f"{self.score:6.3f} {self.id}{labels} {self.text}")


class Hits(tuple[Hit, ...]):
    """What a search found, the nearest first."""

    __slots__ = ()

    def to_pandas(self) -> Any:  # noqa: ANN401 - a pandas.DataFrame
        """Return a DataFrame with a row for each dialogue."""
        return data_frame([asdict(hit) for hit in self])

    def __repr__(self) -> str:
        return "\n".join(map(str, self))

    def _repr_html_(self) -> str:
        lines = [f"| {hit.score:.3f} | {hit.id} | {', '.join(hit.domains)} | {hit.text} |" for hit in self]
        return html_table("\n".join(["| Cosine | Id | Labels | Dialogue |", *lines]))


def check_top(top: int) -> None:
    """Refuse what is no number of wanted hits."""
    if isinstance(top, bool) or not isinstance(top, int) or top < 1:
        raise InputError(f"top: got {top!r}, expected a whole number of at least 1")


def beginning(dialogue: Dialogue, first: int = 0) -> str:
    """Return the beginning of a dialogue, from the turn ``first`` on, in a line of at most 100 characters."""
    text = " / ".join(" ".join(turn.content.split()) for turn in dialogue.turns[first:])
    text = f"… {text}" if first else text
    return text if len(text) <= 100 else text[:99] + "…"
