"""Rows: of a table, or records that are messages themselves. Which of them are one dialogue.

Rows may stand in any order: those of a dialogue are put together by its id.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...display import counted
from ...errors import InputError
from .columns import SIDES, name_rank
from .evidence import Layout, Record, flat_of, value_at
from .findings import Notes, Problem
from .record_tables import Unit
from .times import joined

# of a spreadsheet
_ERRORS = frozenset(("#N/A", "#REF!", "#VALUE!", "#NAME?", "#NUM!", "#NULL!", "#DIV/0!"))
MISSING = _ERRORS | {"nan", "NaN", "<NA>", "NaT", "NULL", "null"}
"""What libraries write where a value is missing."""
ANSWERS = frozenset(("None", "N/A", "n/a"))
"""What they write too, or what somebody says."""
# numbers that a spreadsheet rounded
_BROKEN = re.compile(r"\d([.,]\d+)?E\+?\d{2,3}|\d{15}00+", re.IGNORECASE)
# 1.234 may be a thousand
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})([.,](\d{1,2}|\d{4,}))?|-?0[.,]\d{3}")
_TICKETS = re.compile("ticket|case|incident|vorgang|dossier|caso|chamado|comment|body|html|mail")
# names of metadata that other columns and files of ours have
_OURS = set(
    [
        "id",
        "messages",
        "domains",
        "time",
        "metadata",
        "role",
        "content",
        "text",
        "topic",
        "name",
        "turn",
        "vector",
    ]
)

Keyed = tuple[str, Any, str]
"""A place, a row or the problem there, and what its dialogue's rows share."""


class Rows:
    """Puts rows together that are one dialogue, once it has gone through all of them."""

    def __init__(
        self,
        name: str,
        layout: Layout,
        records: Iterable[tuple[str, Any]],
        replies: Callable[[str, Layout, Record], Sequence[Any]],
    ) -> None:
        self.name, self.layout, self._replies = name, layout, replies
        texts = str([*layout.group, *layout.text])
        self.is_mail = layout.is_markup or _TICKETS.search(texts.casefold()) is not None
        self.sizes = Counter[int]()  # rows by the hash of what those of a dialogue share
        self.apart: set[int] = set()  # of these, those that do not stand together
        self.differing: set[str] = set()  # fields that are no metadata
        self._worded: set[str] = set()  # fields that are no numbers
        self._broken: dict[str, None] = {}
        self._answers = Counter[str]()
        self._blank = 0
        self._speakers: set[str] = set()  # two at most
        self.missing = MISSING
        self._survey(records)
        self.is_filled_down = (
            0 < len(self.sizes) <= self._blank == self.sizes.total() - len(self.sizes)
        )

    def _survey(self, records: Iterable[tuple[str, Any]]) -> None:
        layout = self.layout
        latest = None
        has_missing = False
        for _, row, key in self.keyed(records):
            mark = hash(key)
            if mark in self.sizes and mark != latest:
                self.apart.add(mark)
            self.sizes[mark] += 1
            latest = mark
            if isinstance(row, Problem):
                continue
            id = self._id(row)
            self._blank += not id
            if layout.group and _is_broken(id):
                self._broken[id] = None
            if len(self._speakers) < 2:
                self._speakers.add(str(value_at(row, layout.role)))
            if layout.is_flat:
                has_missing = has_missing or not MISSING.isdisjoint(row.values())
                texts = (row.get(path) for path in (*layout.sides, *layout.text[:1]))
                self._answers.update(ANSWERS.intersection(texts))
        if has_missing:
            self.missing |= ANSWERS
            self._answers.clear()

    def _id(self, row: Record) -> str:
        """Return the id of a row's dialogue, also one that a spreadsheet lost."""
        id = value_at(flat_of(row, self.layout), self.layout.group)
        text = "" if id is None else str(id).strip().rpartition("/conversations/")[2]
        return "" if text in MISSING - _ERRORS or text in ANSWERS else text

    def keyed(self, records: Iterable[tuple[str, Any]]) -> Iterator[Keyed]:
        """Put to each row what it shares with others of its dialogue.

        An id that was lost is that of a run of rows.
        """
        runs = Counter[str]()
        before = key = ""
        has_speakers = self.layout.speaks and not self.layout.sides
        for number, (place, record) in enumerate(records, start=1):
            fault = record.get(None, "") if isinstance(record, Mapping) else _fault(record)
            if fault:
                yield place, Problem(place, fault), key
                continue
            if self._replies("[]", self.layout, flat_of(record, self.layout)):
                key = self._id(record) or place  # a post with its answers
            elif self.layout.group:
                id = self._id(record) or before
                if id != before:
                    runs[id] += _is_broken(id)
                    key = f"{id} ({runs[id]})" if runs[id] > 1 else id
                before = id
            else:
                key = Path(self.name).stem if has_speakers else str(number)
            yield place, record, key

    def unit(self, key: str, members: Sequence[tuple[str, Record]], notes: Notes) -> Unit:
        """Return the conversation of rows that share a key."""
        turns = list(self._turns(members, notes))
        places = {id(row): place for place, row in turns}
        items = [row for _, row in turns]
        return Unit("messages", "[]", items, [self._around(items)], key, self.layout, places=places)

    def _turns(
        self, members: Sequence[tuple[str, Record]], notes: Notes
    ) -> Iterator[tuple[str, Record]]:
        """Yield the rows of a dialogue in the order of their turns, without what is missing."""
        layout = self.layout
        numbers = [str(row.get(layout.turn, "")).strip() for _, row in members]
        if layout.turn and all(map(str.isdecimal, numbers)):
            order = sorted(range(len(members)), key=lambda at: int(numbers[at]))
            members = [members[at] for at in order]
        for place, row in members:
            if layout.is_flat and layout.divides and not self._id(row) and not self.is_filled_down:
                notes.add("left out a turn without an id", place)
            else:
                yield place, self._filled(row, place, notes) if layout.is_flat else row

    def _filled(self, row: Record, place: str, notes: Notes) -> Record:
        """Return a row without words for missing cells, and with one time."""
        layout = self.layout
        texts = (*layout.sides, *layout.text)
        if any(str(row.get(path)).strip() in self.missing for path in texts):
            sentence = "left out a text that is only a word for a missing cell, such as nan or NULL"
            notes.add(sentence, place)
        filled = {
            path: cell
            for path, cell in row.items()
            if cell.strip() not in (self.missing if path in texts else MISSING | ANSWERS)
        }
        if layout.day:
            filled[layout.time[0]] = joined(row.get(layout.day), row.get(layout.time[0]))
        if layout.acts:
            filled["dialogue_acts"] = _labels(row, layout.acts)
        return filled

    def _around(self, rows: Sequence[Record]) -> dict[str, Any]:
        """Return the other fields that have one value in each dialogue, and the labels."""
        layout = self.layout
        used = {
            *layout.sides,
            *layout.role,
            *layout.text,
            *layout.name,
            *layout.time,
            *layout.group,
        }
        used |= {layout.day, layout.turn, layout.domain, layout.acts, "dialogue_acts"}
        known: dict[str, Any] = {}
        rows = [flat_of(row, layout) for row in rows]
        for path in dict.fromkeys(path for row in rows for path in row if path not in used):
            values = {str(row[path]).strip(): row[path] for row in rows if path in row}
            values.pop("", None)
            if len(values) > 1:
                self.differing.add(path)
            if not all(map(_NUMBER.fullmatch, values)):
                self._worded.add(path)
            is_common = layout.is_flat or all(path in row for row in rows)
            if len(values) == 1 and is_common and path not in self.differing:
                title = f"{path}_column" if path.casefold() in _OURS else path
                (known[title],) = values if layout.is_flat else values.values()
                if layout.is_flat and path not in self._worded:
                    known[title] = number_of(known[title])
        for row in rows:
            if not layout.is_flat and value_at(row, [*layout.text, *layout.role]) is None:
                known = {at: row[at] for at in row if name_rank("id", at) is not None} | known
        labels = (name for row in rows for name in _labels(row, layout.domain))
        domains = list(dict.fromkeys(labels))
        return known | {"domains": domains} if domains else known

    def remark(self, notes: Notes) -> None:
        """Note how rows became dialogues."""
        layout, name = self.layout, self.name
        for word, count in self._answers.items():
            notes.add(f"kept {word!r} as what was said ({counted(count, 'time')})", name)
        if self.apart:
            what = counted(len(self.apart), "dialogue")
            notes.add(f"{what} whose rows stood apart put together", name)
        if self.is_filled_down:
            notes.add("took rows without an id as those of the dialogue above", name)
        for id in self._broken:
            sentence = (
                f"got the id {id!r}, which a spreadsheet made of others; export the ids as text"
            )
            notes.put(Problem(f"{name}: rows of {id}", sentence, "warning"))
        if self.differing:
            names = ", ".join(map(repr, sorted(self.differing)))
            notes.add(f"left out columns whose values differ within a dialogue: {names}", name)
        if layout.choice:
            notes.add(layout.choice, name)
        if layout.rival:
            notes.guess(
                f"columns: took {layout.text[0]!r} as content; {layout.rival!r} fits too: for it, "
                f"say --columns 'content={layout.rival}'",
                name,
            )
        if doubt := self._doubt():
            notes.guess(doubt, name)

    def _doubt(self) -> str:
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
        if 1 < self.sizes.total() == len(self.sizes) and len(self._speakers) > 1:
            return (
                "took each row as a dialogue, as each has an id of its own; if another column "
                "tells dialogues apart, say --columns 'id=NAME'"
            )
        return ""


def _fault(record: Any) -> str:
    if isinstance(record, InputError):
        return str(record)
    return f"got {type(record).__name__}, expected an object; repair the record"


def _labels(row: Record, path: str) -> list[str]:
    """Return the names in a cell, which are separated by ``|``."""
    return [name.strip() for name in str(row.get(path, "")).split("|") if name.strip()]


def _is_broken(id: str) -> bool:
    return id in _ERRORS or _BROKEN.fullmatch(id) is not None


def number_of(text: str) -> int | float:
    """Return the number that a text is."""
    return int(text) if text.lstrip("-").isdecimal() else float(text.replace(",", "."))


def are_numbers(values: Iterable[Any]) -> bool:
    """Return whether all values that are there are texts of numbers."""
    filled = [value for value in values if value not in ("", None)]
    return bool(filled) and all(isinstance(v, str) and _NUMBER.fullmatch(v) for v in filled)


def sides_of(row: Record, unit: Unit) -> Iterator[dict[str, Any]]:
    """Yield what each side says in a row."""
    spoken = [(side, row.get(at, "")) for side, at in zip(SIDES, unit.layout.sides, strict=True)]
    for side, text in [pair for pair in spoken if pair[1].strip()] or spoken[:1]:
        message = {"role": side, "content": text, "name": "", "raw": [text]}
        if time := value_at(row, unit.layout.time):
            message["time"] = time
        yield {**message, "markup": unit.layout.is_markup, "place": unit.places[id(row)]}
