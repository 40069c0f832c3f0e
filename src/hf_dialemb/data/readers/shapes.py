"""What the readers share.

The files of a split, records that list their turns, rows of tables, single utterances.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import cycle

from ...dialogue import Dialogue, Turn
from ...errors import InputError
from ..corpus import SPLITS
from ..raw_records import Raw, Slots, flattened

Labels = tuple[tuple[str, ...], Slots, tuple[str, ...]]
"""Of a turn: dialogue acts, slots and intents."""

UPPER_CASE_ROLES = {"USER": "user", "SYSTEM": "assistant"}


def split_patterns(pattern: str, *beside: str, **names: str) -> dict[str, tuple[str, ...]]:
    """Name the files of each split by the end of their paths, with ``{}`` for the split.

    ``beside`` are patterns of further files that every split needs, ``names`` what the files call
    the splits.
    """
    names = names or dict(zip(SPLITS, SPLITS, strict=True))
    return {split: (pattern.format(name), *beside) for split, name in names.items()}


@dataclass(frozen=True)
class TurnList:
    """Records that hold their turns in a list, each with a speaker and a text.

    An instance converts one.
    """

    turns: str  # the record's field with the list
    speaker: str  # the turn's field with the speaker
    text: str  # the turn's field with the text
    roles: Mapping[str, str]  # from each name of a speaker to the role
    id: str = "dialogue_id"
    domains: Callable[[Raw], tuple[str, ...]] = lambda record: ()
    labels: Callable[[Raw], Labels] = lambda turn: ((), (), ())
    # of an element of the list; the others are left out
    is_spoken: Callable[[Raw], bool] = lambda turn: True

    def __call__(self, *parts: Raw) -> Dialogue:
        """Convert a record; the id begins with the strings before it, such as the split."""
        *prefix, record = parts
        identifier = "/".join((*prefix, record[self.id]))
        return Dialogue(self.spoken(record), identifier, self.domains(record))

    def spoken(self, record: Raw) -> tuple[Turn, ...]:
        """Convert the turns of a record."""
        return flattened(map(self._turn, record[self.turns]))

    def _turn(self, turn: Raw) -> list[Turn]:
        if not self.is_spoken(turn):
            return []
        role = self.roles[turn[self.speaker]]
        return [Turn(role, turn[self.text], *self.labels(turn))]


def alternating(
    greeting: str, texts: tuple[str, ...], *columns: list[Raw]
) -> list[tuple[Raw, ...]]:
    """Put the role before each text and the values of further columns after it.

    The assistant begins, often with a greeting that opens every dialogue of the corpus and is left
    out.
    """
    rows = list(zip(cycle(("assistant", "user")), texts, *columns, strict=False))
    return rows[1:] if texts[:1] == (greeting,) else rows


def cells(row: Raw, *columns: str) -> list[str]:
    """Take cells of a table's row.

    Raise `InputError` if the row has more cells than the table has columns.
    """
    if (more := row.get("")) is not None:
        raise InputError(
            f"got a row with more cells than columns ({more[:40]!r}), expected one per column; "
            "repair it"
        )
    return [row[column] for column in columns]


def utterance(
    identifier: str, text: str, intents: tuple[str, ...], slots: Slots = (), *domains: str
) -> Dialogue:
    """Make the dialogue of a single labelled utterance.

    Raise `InputError` if an intent is blank.
    """
    if not all(intents):
        raise InputError("field intent: got nothing, expected a label; repair the record")
    return Dialogue((Turn("user", text, slots=slots, intents=intents),), identifier, domains)
