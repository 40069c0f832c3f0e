"""Dialogues of records: which records are one, put together in their order, without repeats.

Records are rows, each a message, or hold conversations. They may stand in any order: those of a
dialogue are put together by its id.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import islice
from typing import Any

from ...data.raw_records import MISFORMED
from ...errors import InputError, unknown_name
from .columns import SAY
from .evidence import Layout, columns_of, is_known, layout_of
from .findings import Draft, Notes, Problem, from_record
from .joining import continued, joined
from .json_values import flattened, opened, pair_of, plain
from .message_parts import Message
from .record_tables import Conversations
from .row_groups import Rows, number_of, numbers_among
from .row_layout import choice_of, layout_of_rows
from .table_files import cell_text
from .talks import Talk, address_of, id_of, metadata_of, ranked_fields

Read = Callable[[], Iterable[tuple[str, Any]]]
"""Reads the records of a file, each with its place; an `InputError` is a damaged one."""

_LISTED = 20  # fields that a sentence is about
_SURVEYED = 1000  # records that show what fields are
_PAUSE = timedelta(hours=4)  # that ends a conversation of people who have names
_TICKET = re.compile(r"subject|priority|requester\w*|ticket\w*")


class RecordDrafts:
    """The dialogues of a file's records, which are surveyed first."""

    def __init__(self, read: Read, name: str, given: Mapping[str, str], title: str = "") -> None:
        self._read = read
        self.name = name
        self.title = title
        sample = [item for _, item in islice(read(), _SURVEYED) if not fault_of(item)]
        objects = [item for item in sample if isinstance(item, Mapping)]
        self._columns = columns_of([dict(flattened(item)) for item in objects])
        self.is_table = bool(objects) and not any(
            _holds(value) for item in objects for value in item.values()
        )
        self._numbers = numbers_among(self._columns) if self.is_table else set()
        self.tables = Conversations(sample, given)
        layout = self._layout_of_rows(objects, given) if len(objects) == len(sample) else None
        self.rows = Rows(name, layout, self.tables) if layout else None
        self.sizes = Counter[int]()  # by the hash of what records of a dialogue share
        self._apart: set[int] = set()  # of these, those that do not stand together
        ids: dict[str, set[str]] = {}
        latest = None
        for _, part, key in self._keyed(None):
            mark = hash(key)
            if mark in self.sizes and mark != latest:
                self._apart.add(mark)
            self.sizes[mark] += 1
            latest = mark
            around = part.around if isinstance(part, Talk) else {}
            for path, value in ranked_fields(around, "id"):
                if len(ids.setdefault(path, set())) < 2:
                    ids[path].add(str(value))
        # A field that never differs tells no dialogues apart.
        self._alike = {
            path
            for path, values in ids.items()
            if len(values) == 1 < len(self.sizes) and path.rpartition("/")[2] != "id"
        }

    def _layout_of_rows(self, sample: list[Any], given: Mapping[str, str]) -> Layout | None:
        """Return the fields of records that are messages; None of such as hold messages."""
        self._choice = ""
        if "messages" in given or not sample:
            return None
        texts = [self._texts(item) for item in sample] if self.is_table else []
        layout = layout_of(texts or sample, given)
        if self.is_table:
            layout = layout_of_rows(layout, columns_of(texts), given)
            self._choice = "" if given else choice_of(layout, texts)
        if not (given or layout.sides):
            speaks = self.tables.speaks("[]", sample) and not any(map(pair_of, sample))
            first = sample[:_LISTED]
            holding = sum(bool(self._found("", item)) for item in first)
            if not speaks and (not self.is_table or 2 * holding > len(first)):
                return None
        if unknown := set(given.values()) - self._columns.keys():
            sentence = unknown_name("column", unknown.pop(), self._columns)
            raise InputError(f"{self.name}:1: {sentence}")
        if not (layout.text or layout.sides):
            names = ", ".join(list(self._columns)[:_LISTED])
            raise InputError(f"{self.name}:1: got no column for content (found: {names}); {SAY}")
        return layout

    def _texts(self, record: Mapping[str, Any]) -> dict[str, str]:
        cells = {path: record.get(path) for path in self._columns}
        return {p: cell if isinstance(cell, str) else cell_text(cell) for p, cell in cells.items()}

    def _found(self, place: str, record: Any) -> Sequence[Talk | Problem]:
        """Return the conversations in a record, or why they cannot be read."""
        try:
            return self.tables.find(record)
        except MISFORMED:
            return [_malformed(place, record)]

    def _keyed(self, notes: Notes | None) -> Iterator[tuple[str, Any, str]]:
        """Yield places, rows, conversations or problems, and what those of a dialogue share."""
        latest = ""
        if self.rows:
            self.rows.begin()
        for number, (place, record) in enumerate(self._read(), start=1):
            fault = fault_of(record)
            if fault or (self.rows and not isinstance(record, Mapping)):
                # a dialogue that lacks a row is not read
                kind = type(record).__name__
                sentence = fault or f"got {kind}, expected an object; repair the record"
                yield place, Problem(place, sentence), latest if self.rows else place
            elif self.rows is None:
                yield from self._talks(place, number, record, notes)
            else:
                row = self._texts(record) if self.is_table else record
                if not self.is_table or any(map(str.strip, row.values())):
                    latest = self.rows.key(place, number, row)
                    yield place, row, latest

    def _talks(
        self, place: str, number: int, record: Any, notes: Notes | None
    ) -> Iterator[tuple[str, Any, str]]:
        """Yield the conversations in a record that is no row, or say why there is none."""
        talks = self._found(place, record)
        has_messages = isinstance(record, dict) and bool(record.get("messages"))
        if not talks and (has_messages or not isinstance(record, dict | list)):
            talks = from_record(place, record).problems
        elif not talks and notes:
            notes.add("left out a record in which nobody says anything", place)
        for index, talk in enumerate(talks, start=1):
            where = place if len(talks) == 1 else f"{place}: dialogue {index}"
            shared = None
            if isinstance(talk, Talk):
                if self.is_table and not id_of(talk.around)[1]:
                    talk.around[""] = str(number)
                shared = next((value for _, value in ranked_fields(talk.around, "group")), None)
            yield where, talk, where if shared is None else str(address_of(shared))

    def __call__(self, notes: Notes) -> Iterator[Draft]:
        """Make the dialogues."""
        groups: dict[str, list[tuple[str, Any]]] = {}
        for place, part, key in self._keyed(notes):
            members = groups.setdefault(key, [])
            members.append((place, part))
            if len(members) >= self.sizes[hash(key)]:
                yield from self._drafts(key, groups.pop(key), notes)
        for key, members in groups.items():
            yield from self._drafts(key, members, notes)

    def take_account(self, notes: Notes) -> None:
        """Count the words of all records, after all dialogues were made."""
        if self.rows:
            self.rows.remark(self.sizes, notes)
            if self._choice:
                notes.add(self._choice, self.name)
            return
        for _, record in self._read():
            whole = opened(record)
            notes.account.take(plain(whole) if isinstance(whole, Mapping) else whole)
        notes.account.forget()

    def _drafts(self, key: str, members: list[tuple[str, Any]], notes: Notes) -> Iterator[Draft]:
        """Make the dialogues of what shares a key."""
        place = members[0][0]
        problems = tuple(part for _, part in members if isinstance(part, Problem))
        if problems:
            yield Draft(place, key, (), problems=problems)
            return
        talks = [(place, self.rows.talk(members, notes))] if self.rows else members
        try:
            messages = self._messages(talks, notes)
        except MISFORMED:
            items = [item for _, talk in talks for item in talk.items]
            yield Draft(place, key, (), problems=(_malformed(place, {"messages": items}),))
            return
        parts: dict[str, list[Message]] = {}
        for message in messages:
            if "left_out" in message:
                notes.add(f"left out {message['left_out']}", message["place"])
                notes.account.note(message["raw"])
            else:
                parts.setdefault(message.pop("group", ""), []).append(message)
        if not parts:
            notes.add("left out a dialogue in which nobody says anything", place)
        yield from self._divided(place, key, talks[0][1], parts, notes)
        if self.rows:
            for _, row in members:
                notes.account.take(row)
            notes.account.forget()

    def _messages(self, talks: Sequence[tuple[str, Talk]], notes: Notes) -> list[Message]:
        """Return the messages of conversations that are one, each said once."""
        messages: list[Message] = []
        for place, talk in talks:
            beside: Message = {"place": place}
            if len(talks) > 1 and (time := ranked_fields(talk.around, "time")):
                beside["time"] = time[0][1]
            messages = continued(messages, [beside | message for message in talk.messages])
            for other in talk.more:
                notes.add(f"left out another version of a dialogue ({other.path})", place)
                notes.account.note([message.get("raw") for message in other.messages])
        return messages

    def _divided(
        self, place: str, key: str, talk: Talk, parts: Mapping[str, list[Message]], notes: Notes
    ) -> Iterator[Draft]:
        around = talk.around
        layout = talk.layout
        id, id_path = id_of(around, self._alike)
        time_path, time = next(iter(ranked_fields(around, "time")), ("", ""))
        if self.rows and (layout.group or self.is_table):
            id_path = ""
            time_path = ""
            time = ""
        if self.rows and not id_path:
            id = key
        if self.title and id:
            id = f"{self.title}/{id}"
        metadata = {
            name: number_of(value) if name.removesuffix("_column") in self._numbers else value
            for name, value in metadata_of(around, (id_path, time_path, "domains", "")).items()
        }
        turns = [turn for several in parts.values() for turn in several]
        for value in (id, time, *metadata.values()):
            notes.account.keep(value)
        for turn in turns:
            fields = (turn.get(name) for name in ("content", "role", "name", "time"))
            for text in (*turn.pop("raw", ()), *fields):
                notes.account.keep(text)
        is_ticket = self.rows.is_mail if self.rows else any(map(_TICKET.fullmatch, around))
        is_thread = any("Thread" in str(around.get(at)) for at in ("type", "channel/type"))
        divides = not any(is_known(str(turn["role"])) for turn in turns)
        divides = divides and not (is_ticket or is_thread or layout.is_recording)
        if self.rows:
            divides = not layout.divides and not layout.sides
        domains = around.get("domains")
        for group, part in parts.items():
            yield Draft(
                place,
                group or ("" if id == place else id),
                joined(place, part, notes) if layout.is_recording else part,
                domains if isinstance(domains, list | tuple) else (),
                time=time,
                metadata=metadata,
                mail=is_ticket or any(turn.get("markup") for turn in part),
                pause=_PAUSE if divides and (self.rows or not group) else None,
                is_apart=hash(key) in self._apart,
            )


def fault_of(record: Any) -> str:
    """Return why a record is damaged; empty if it is not."""
    if isinstance(record, Mapping):
        return str(record.get(None, ""))
    return str(record) if isinstance(record, InputError) else ""


def _malformed(place: str, record: Any) -> Problem:
    """Return what is wrong with a record of chat messages."""
    items = record.get("messages", [record]) if isinstance(record, Mapping) else record
    finding = from_record(place, {"messages": items})
    return next(iter(finding.problems), Problem(place, "got another form than expected; repair it"))


def _holds(value: Any) -> bool:
    """Return whether a value is more than a scalar, or a text in a list."""
    if isinstance(value, list):
        return len(value) != 1 or not isinstance(value[0], str)
    return isinstance(value, Mapping)
