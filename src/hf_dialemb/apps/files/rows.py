"""Rows: of a table, or records that are messages themselves. Which of them are one dialogue.

Rows may stand in any order: those of a dialogue are put together by its id.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...display import counted
from ...errors import InputError
from .columns import SIDES, name_rank
from .evidence import Layout, Record, columns_of, flat_of, is_whole, layout_of, value_at
from .findings import Notes, Problem
from .record_tables import Unit
from .roles import WELL_KNOWN
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
_WHOLE = 8  # rank of names of contents that are sure only if a cell holds a whole conversation
_SIDE = re.compile(r"[\s_-]*(message|text|utterance|said|turn)$")

Keyed = tuple[str, Any, str]
"""A place, a row or the problem there, and what its dialogue's rows share."""


def layout_of_rows(
    items: Sequence[Record], rows: Sequence[Mapping[str, Any]], given: Mapping[str, str]
) -> Layout:
    """Choose the fields of flat rows by a sample of them."""
    columns = columns_of(items)
    sides = [given[side] for side in SIDES if side in given]
    if given.keys().isdisjoint(("role", "content", *SIDES)):
        sides = _sides(columns)
    layout = layout_of(items, rows, given)
    named = [path for path in layout.text if name_rank("content", path) not in (None, _WHOLE)]
    text = layout.text if layout.role or "content" in given else named
    if not sides and "content" not in given:
        text = _by_difference(text, columns)
    alike = [
        path for path in text[1:] if name_rank("content", path) == name_rank("content", text[0])
    ]
    role = [] if sides else layout.role
    taken = {*(sides or text[:1]), *role[:1], *given.values()}
    group, divides = _group(columns, taken, given, has_role=bool(role))
    is_recording = layout.is_recording and {"start", "end"} <= columns.keys()
    times = layout.time if is_recording else [*layout.time, *layout.start]
    taken |= {*group, *times[:1]}
    day, time = _day_and_clock(columns, times, taken)

    def first(field: str, kind: str) -> str:
        free = (path for path in columns if path not in taken and name_rank(kind, path) == 0)
        return given.get(field) or next(free, "")

    return replace(
        layout,
        sides=sides,
        role=role,
        name=[] if sides else layout.name,
        text=text,
        group=group,
        divides=divides,
        day=day,
        time=time,
        turn=first("turn", "turn"),
        domain=first("domain", "domain"),
        acts=first("dialogue_act", "dialogue_act"),
        rival="" if sides or given.keys() & {"content"} else next(iter(alike), ""),
        is_recording=is_recording,
        is_flat=True,
    )


def _sides(columns: Mapping[str, list[Any]]) -> list[str]:
    """Return the columns of what each side said: prompt and response, or customer and agent."""
    places: dict[str, list[str]] = {}
    for side in SIDES:
        ranked = [(rank, path) for path in columns if (rank := name_rank(side, path)) is not None]
        places[side] = [path for rank, path in ranked if rank == min(ranked)[0]]
    if not any((name_rank("content", path) or 0) < 6 for path in columns if _is_text(path)):
        for path in columns:
            side = WELL_KNOWN.get(_SIDE.sub("", path.casefold()), "")
            if side in places and not path.isdecimal():
                places[side].append(path)
    sides = [paths[0] for paths in places.values() if len(paths) == 1]
    is_plain = len(sides) == 2 and not any(
        is_whole(str(text)) for side in sides for text in columns[side]
    )
    return sides if is_plain else []


def _by_difference(text: Sequence[str], columns: Mapping[str, list[Any]]) -> Sequence[str]:
    """Return the fields of texts without those that repeat themselves beside others."""
    counts = {path: len(set(columns[path])) for path in text}
    return [path for path in text if 2 * counts[path] >= max(counts.values())]


def _is_text(path: str) -> bool:
    return name_rank("content", path) is not None


def _group(
    columns: Mapping[str, list[Any]], taken: set[str], given: Mapping[str, str], has_role: bool
) -> tuple[list[str], bool]:
    """Return the field that rows of a dialogue share, and whether it is more than a channel."""
    if "id" in given:
        return [given["id"]], True
    free = [
        path
        for path, values in columns.items()
        if path not in taken and not {str(value).lower() for value in values} <= {"true", "false"}
    ]
    ranked = sorted((rank, free.index(path), path) for path in free for rank in _ranks("id", path))
    best = [path for rank, _, path in ranked if rank == ranked[0][0]]
    if best and ranked[0][0] == 2 and has_role:  # a message's id beside the ticket's
        best += [path for rank, _, path in ranked if rank == 3]
    again = [path for path in best if len(set(columns[path])) < len(columns[path])]
    channels = [path for path in free if name_rank("channel", path) is not None]
    if best:
        return (again or best)[:1], True
    return channels[:1], False


def _ranks(kind: str, path: str) -> list[int]:
    rank = name_rank(kind, path)
    return [] if rank is None else [rank]


def _day_and_clock(
    columns: Mapping[str, list[Any]], time: Sequence[str], taken: set[str]
) -> tuple[str, Sequence[str]]:
    """Return a day and a time of day in two columns, if one of them is the time."""
    free = [path for path in columns if path not in taken or path in time[:1]]
    days = [path for path in free if name_rank("day", path) == 0]
    clocks = [path for path in free if name_rank("clock", path) == 0]
    if len(days) == len(clocks) == 1 and days != clocks and time[0] in (*days, *clocks):
        return days[0], clocks
    return "", time


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
        self._speakers: set[Any] = set()  # two at most
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
                self._speakers.add(value_at(row, layout.role))
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
        said = (*layout.sides, *layout.text)
        if any(str(row.get(path)).strip() in self.missing for path in said):
            sentence = "left out a text that is only a word for a missing cell, such as nan or NULL"
            notes.add(sentence, place)
        filled = {
            path: cell
            for path, cell in row.items()
            if cell.strip() not in (self.missing if path in said else MISSING | ANSWERS)
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
                known = {at: row[at] for at in row if _ranks("id", at)} | known
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
