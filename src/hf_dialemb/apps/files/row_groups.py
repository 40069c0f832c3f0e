"""Rows: of a table, or records that are messages themselves. Which of them are one dialogue."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .evidence import Layout, flat_of, value_at
from .findings import Notes, Problem
from .json_values import Record
from .record_tables import Conversations
from .talks import Talk, address_of
from .times import joined

# of a spreadsheet
_ERRORS = frozenset(("#N/A", "#REF!", "#VALUE!", "#NAME?", "#NUM!", "#NULL!", "#DIV/0!"))
MISSING = _ERRORS | {"nan", "NaN", "<NA>", "NaT", "NULL", "null", "None", "N/A", "n/a"}
"""What libraries write where a value is missing."""
# numbers that a spreadsheet rounded
_BROKEN = re.compile(r"\d([.,]\d+)?E\+?\d{2,3}|\d{15}00+", re.IGNORECASE)
# 1.234 may be a thousand
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})([.,](\d{1,2}|\d{4,}))?|-?0[.,]\d{3}")
_TICKETS = re.compile("ticket|case|incident|vorgang|dossier|caso|chamado|comment|body|html|mail")
_OURS = frozenset(("id", "messages", "domains", "time", "metadata", "role", "content", "text"))
_OURS |= {"topic", "name", "turn", "vector"}
"""Names of metadata that other columns and files of ours have."""


class Rows:
    """Puts rows together that are one dialogue."""

    def __init__(self, name: str, layout: Layout, tables: Conversations) -> None:
        self.name = name
        self.layout = layout
        self._tables = tables
        texts = str([*layout.group, *layout.text])
        self.is_mail = layout.is_markup or _TICKETS.search(texts.casefold()) is not None
        self._differing: set[str] = set()  # fields that are no metadata
        self._speakers: set[str] = set()  # two at most
        self.begin()

    def begin(self) -> None:
        """Begin to go through the rows."""
        self._runs = Counter[str]()  # of ids that were lost
        self._before = self._latest = ""

    def key(self, place: str, number: int, row: Record) -> str:
        """Return what a row shares with others of its dialogue.

        An id that was lost is that of a run of rows.
        """
        layout = self.layout
        flat = flat_of(row, layout)
        if len(self._speakers) < 2:
            self._speakers.add(str(value_at(flat, layout.role)))
        id = self._id(flat)
        if not layout.is_flat and self._tables.replies("[]", layout, flat):
            self._latest = id or place  # a post with its answers
        elif not layout.group:
            is_channel = layout.speaks and not layout.sides
            self._latest = Path(self.name).stem if is_channel else str(number)
        elif id and id != self._before:
            if id in _ERRORS or _BROKEN.fullmatch(id):
                self._runs[id] += 1
            self._latest = f"{id} ({self._runs[id]})" if self._runs[id] > 1 else id
        self._before = id or self._before
        return self._latest

    def _id(self, flat: Record) -> str:
        id = value_at(flat, self.layout.group)
        text = "" if id is None else str(address_of(id)).strip()
        return "" if text in MISSING and text not in _ERRORS else text

    def talk(self, members: Sequence[tuple[str, Record]], notes: Notes) -> Talk:
        """Return the conversation of rows that share a key, in the order of their turns."""
        layout = self.layout
        numbers = [str(row.get(layout.turn, "")).strip() for _, row in members]
        if layout.turn and all(map(str.isdecimal, numbers)):
            members = [
                members[at] for at in sorted(range(len(numbers)), key=lambda at: int(numbers[at]))
            ]
        places: dict[int, str] = {}
        rows: list[Record] = []
        for place, row in members:
            if layout.is_flat and layout.divides and not self._id(row):
                notes.add("left out a turn without an id", place)
                continue
            rows.append(self._filled(row, place, notes) if layout.is_flat else row)
            places[id(rows[-1])] = place
        return self._tables.listed(rows, "[]", [self._around(rows)], layout, places)

    def _filled(self, row: Record, place: str, notes: Notes) -> Record:
        """Return a row without words for missing cells, and with one time."""
        layout = self.layout
        filled = {path: cell for path, cell in row.items() if cell.strip() not in MISSING}
        if any(path in row and path not in filled for path in (*layout.sides, *layout.text)):
            sentence = "left out a text that is only a word for a missing cell, such as nan or NULL"
            notes.add(sentence, place)
        if layout.day:
            filled[layout.time[0]] = joined(row.get(layout.day), row.get(layout.time[0]))
        if layout.acts:
            filled["dialogue_acts"] = list(_labels(row, layout.acts))
        return filled

    def _around(self, rows: Sequence[Record]) -> dict[str, Any]:
        """Return the other fields that have one value in each dialogue, and the labels."""
        layout = self.layout
        spoken = (*layout.sides, *layout.text, *layout.role)
        used = {*spoken, *layout.name, *layout.time, *layout.group, layout.day, layout.turn}
        used |= {layout.domain, layout.acts, "dialogue_acts"}
        flat = [flat_of(row, layout) for row in rows]
        known: dict[str, Any] = {}
        for path in dict.fromkeys(path for row in flat for path in row if path not in used):
            values = {str(row[path]).strip(): row[path] for row in flat if path in row}
            values.pop("", None)
            if len(values) > 1:
                self._differing.add(path)
            is_common = layout.is_flat or all(path in row for row in flat)
            if len(values) == 1 and is_common and path not in self._differing:
                title = f"{path}_column" if path.casefold() in _OURS else path
                known[title] = next(iter(values if layout.is_flat else values.values()))
        for row in flat:  # a record about the others has their id
            if not layout.is_flat and value_at(row, spoken) is None:
                known = {at: row[at] for at in row if at.rpartition("/")[2] == "id"} | known
        domains = list(dict.fromkeys(name for row in flat for name in _labels(row, layout.domain)))
        return known | {"domains": domains} if domains else known

    def remark(self, sizes: Counter[int], notes: Notes) -> None:
        """Note how rows became dialogues."""
        for id in self._runs:
            sentence = f"got the id {id!r}, which a spreadsheet made of others; export ids as text"
            notes.put(Problem(f"{self.name}: rows of {id}", sentence, "warning"))
        if self._differing:
            names = ", ".join(map(repr, sorted(self._differing)))
            sentence = f"left out columns whose values differ within a dialogue: {names}"
            notes.add(sentence, self.name)
        layout = self.layout
        doubt = ""
        if not layout.speaks:
            doubt = (
                "took all turns as said by one user, as no column says who speaks; if one does, "
                "say --columns 'role=NAME'"
            )
        elif not (layout.divides and layout.group):
            doubt = (
                "took the rows of a channel, or of the file, as one dialogue but for long pauses, "
                "as no column tells dialogues apart; if one does, say --columns 'id=NAME'"
            )
        elif 1 < sizes.total() == len(sizes) and len(self._speakers) > 1:
            doubt = (
                "took each row as a dialogue, as each has an id of its own; if another column "
                "tells dialogues apart, say --columns 'id=NAME'"
            )
        if doubt and not layout.sides:
            notes.add(doubt, self.name, "guess")


def _labels(row: Record, path: str) -> Iterator[str]:
    """Yield the names in a cell, which are separated by ``|``."""
    return filter(None, map(str.strip, str(row.get(path, "")).split("|")))


def number_of(value: Any) -> Any:
    """Return the number that a text is, or anything else as it is."""
    if not isinstance(value, str) or not _NUMBER.fullmatch(value):
        return value
    return int(value) if value.lstrip("-").isdecimal() else float(value.replace(",", "."))


def numbers_among(columns: Mapping[str, Sequence[Any]]) -> set[str]:
    """Return the columns in which all values that are there are numbers."""
    texts = {
        path: [str(value) for value in values if str(value) not in MISSING]
        for path, values in columns.items()
    }
    return {
        path for path, filled in texts.items() if filled and all(map(_NUMBER.fullmatch, filled))
    }
