"""Rows: of a table, or records that are messages themselves. Which of them are one dialogue.

Rows may stand in any order: those of a dialogue are put together by its id.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ...errors import InputError
from .evidence import Layout, Record, flat_of, value_at
from .findings import Notes, Problem
from .inherited import address_of
from .record_tables import Conversations
from .talks import Talk
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

    def __init__(self, name: str, layout: Layout, tables: Conversations, numbers: set[str]) -> None:
        self.name, self.layout, self._tables, self._numbers = name, layout, tables, numbers
        texts = str([*layout.group, *layout.text])
        self.is_mail = layout.is_markup or _TICKETS.search(texts.casefold()) is not None
        self.differing: set[str] = set()  # fields that are no metadata
        self._broken: dict[str, None] = {}
        self._speakers: set[str] = set()
        self.begin()

    def begin(self) -> None:
        """Begin to go through the rows."""
        self._runs = Counter[str]()
        self._before = self.latest = ""

    def key(self, place: str, number: int, row: Record) -> str:
        """Return what a row shares with others of its dialogue.

        An id that was lost is that of a run of rows.
        """
        layout = self.layout
        flat = flat_of(row, layout)
        if len(self._speakers) < 2:
            self._speakers.add(str(value_at(flat, layout.role)))
        id = self._id(flat)
        if self._tables.replies("[]", layout, flat):
            self.latest = id or place  # a post with its answers
        elif not layout.group:
            self.latest = (
                Path(self.name).stem if layout.speaks and not layout.sides else str(number)
            )
        elif id and id != self._before:
            is_broken = id in _ERRORS or _BROKEN.fullmatch(id) is not None
            self._broken |= {id: None} if is_broken else {}
            self._runs[id] += is_broken
            self.latest = f"{id} ({self._runs[id]})" if self._runs[id] > 1 else id
        self._before = id or self._before
        return self.latest

    def _id(self, flat: Record) -> str:
        id = value_at(flat, self.layout.group)
        text = "" if id is None else str(address_of(id)).strip()
        return "" if text in MISSING - _ERRORS else text

    def talk(self, key: str, members: Sequence[tuple[str, Record]], notes: Notes) -> Talk:
        """Return the conversation of rows that share a key, in the order of their turns."""
        layout = self.layout
        numbers = [str(row.get(layout.turn, "")).strip() for _, row in members]
        if layout.turn and all(map(str.isdecimal, numbers)):
            order = sorted(range(len(members)), key=lambda at: int(numbers[at]))
            members = [members[at] for at in order]
        places: dict[int, str] = {}
        rows: list[Record] = []
        for place, row in members:
            if layout.is_flat and layout.divides and not self._id(row):
                notes.add("left out a turn without an id", place)
                continue
            rows.append(self._filled(row, place, notes) if layout.is_flat else row)
            places[id(rows[-1])] = place
        return self._tables.listed(rows, "[]", [self._around(rows)], key, layout, places)

    def _filled(self, row: Record, place: str, notes: Notes) -> Record:
        """Return a row without words for missing cells, and with one time."""
        layout = self.layout
        texts = (*layout.sides, *layout.text)
        if any(str(row.get(path)).strip() in MISSING for path in texts):
            sentence = "left out a text that is only a word for a missing cell, such as nan or NULL"
            notes.add(sentence, place)
        filled = {path: cell for path, cell in row.items() if cell.strip() not in MISSING}
        if layout.day:
            filled[layout.time[0]] = joined(row.get(layout.day), row.get(layout.time[0]))
        if layout.acts:
            filled["dialogue_acts"] = list(_labels(row, layout.acts))
        return filled

    def _around(self, rows: Sequence[Record]) -> dict[str, Any]:
        """Return the other fields that have one value in each dialogue, and the labels."""
        layout = self.layout
        used = {*layout.sides, *layout.role, *layout.text, *layout.name, *layout.time}
        used |= {*layout.group, layout.day, layout.turn, layout.domain, layout.acts}
        used.add("dialogue_acts")
        flat = [flat_of(row, layout) for row in rows]
        known: dict[str, Any] = {}
        for path in dict.fromkeys(path for row in flat for path in row if path not in used):
            values = {str(row[path]).strip(): row[path] for row in flat if path in row}
            values.pop("", None)
            if len(values) > 1:
                self.differing.add(path)
            is_common = layout.is_flat or all(path in row for row in flat)
            if len(values) == 1 and is_common and path not in self.differing:
                title = f"{path}_column" if path.casefold() in _OURS else path
                known[title] = next(iter(values if layout.is_flat else values.values()))
                if path in self._numbers and _NUMBER.fullmatch(str(known[title])):
                    known[title] = number_of(known[title])
        for row in flat:
            if not layout.is_flat and value_at(row, [*layout.text, *layout.role]) is None:
                known = {at: row[at] for at in row if at.rpartition("/")[2] == "id"} | known
        domains = list(dict.fromkeys(name for row in flat for name in _labels(row, layout.domain)))
        return known | {"domains": domains} if domains else known

    def remark(self, sizes: Counter[int], notes: Notes) -> None:
        """Note how rows became dialogues."""
        for id in self._broken:
            sentence = (
                f"got the id {id!r}, which a spreadsheet made of others; export the ids as text"
            )
            notes.put(Problem(f"{self.name}: rows of {id}", sentence, "warning"))
        if self.differing:
            names = ", ".join(map(repr, sorted(self.differing)))
            sentence = f"left out columns whose values differ within a dialogue: {names}"
            notes.add(sentence, self.name)
        if doubt := self._doubt(sizes):
            notes.guess(doubt, self.name)

    def _doubt(self, sizes: Counter[int]) -> str:
        """Return what could be otherwise, if another column says so."""
        layout = self.layout
        if layout.sides:
            return ""
        if not layout.speaks:
            return (
                "took all turns as said by one user, as no column says who speaks; if one does, "
                "say --columns 'role=NAME'"
            )
        if not (layout.divides and layout.group):
            return (
                "took the rows of a channel, or of the file, as one dialogue but for long pauses, "
                "as no column tells dialogues apart; if one does, say --columns 'id=NAME'"
            )
        if 1 < sizes.total() == len(sizes) and len(self._speakers) > 1:
            return (
                "took each row as a dialogue, as each has an id of its own; if another column "
                "tells dialogues apart, say --columns 'id=NAME'"
            )
        return ""


def fault_of_row(record: Any) -> str:
    """Return why a record is no row; empty if it is one."""
    if isinstance(record, dict):
        return str(record.get(None, ""))
    if isinstance(record, InputError):
        return str(record)
    return f"got {type(record).__name__}, expected an object; repair the record"


def _labels(row: Record, path: str) -> Iterator[str]:
    """Yield the names in a cell, which are separated by ``|``."""
    return filter(None, map(str.strip, str(row.get(path, "")).split("|")))


def number_of(text: str) -> int | float:
    """Return the number that a text is."""
    return int(text) if text.lstrip("-").isdecimal() else float(text.replace(",", "."))


def are_numbers(values: Sequence[Any]) -> bool:
    """Return whether all values that are there are texts of numbers."""
    filled = [value for value in values if str(value) not in MISSING]
    return bool(filled) and all(isinstance(v, str) and _NUMBER.fullmatch(v) for v in filled)
