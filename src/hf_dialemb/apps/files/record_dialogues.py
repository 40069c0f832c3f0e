"""Dialogues of records: messages of what was found in them, grouped, joined and without repeats."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from typing import Any

from ...data.raw_records import MISFORMED
from ...display import counted
from ...errors import InputError, unknown_name
from .account import Account
from .columns import SAY
from .evidence import Layout, columns_of, is_known, layout_of
from .findings import Draft, Notes, Problem, from_record
from .inherited import address_of, id_of, metadata_of, ranked_fields
from .joining import continued, joined
from .json_values import opened, pair_of, plain
from .message_parts import Message
from .record_tables import Conversations
from .row_groups import Rows, are_numbers, fault_of_row, number_of
from .row_layout import choice_of, layout_of_rows
from .table_files import cell_text
from .talks import Talk, versions

Read = Callable[[], Iterable[tuple[str, Any]]]
"""Reads the records of a file, each with its place; an `InputError` is a damaged one."""

_LISTED = 20  # fields that a sentence is about
_SURVEYED = 1000  # records that show what fields are
_PAUSE = timedelta(hours=4)  # that ends a conversation of people who have names
_TICKET = re.compile(r"subject|priority|requester\w*|ticket\w*")


class RecordDrafts:
    """The dialogues of a file's records, which are surveyed first.

    Records that are messages themselves, such as the rows of a table, are put together by `Rows`.
    """

    def __init__(self, read: Read, name: str, given: Mapping[str, str], title: str = "") -> None:
        self._read, self.name, self.title = read, name, title
        sample = [item for _, item in islice(read(), _SURVEYED) if not _is_faulty(item)]
        self.account = Account()
        self.tables = Conversations(sample, given)
        objects = [item for item in sample if isinstance(item, Mapping)]
        self._columns = columns_of(objects)
        self.is_table = bool(objects) and not any(
            _holds(value) for item in objects for value in item.values()
        )
        self._numbers = {
            at
            for at, cells in self._columns.items()
            if self.is_table and are_numbers(list(map(cell_text, cells)))
        }
        self._choice = ""
        self.rows: Rows | None = None
        if len(objects) == len(sample) and (layout := self._layout_of_rows(objects, given)):
            self.rows = Rows(name, layout, self.tables, self._numbers)
        self.sizes = Counter[int]()  # by the hash of what records of a dialogue share
        self._apart: set[int] = set()  # of these, those that do not stand together
        self._passes = 0  # the first one decides what is metadata
        self._firsts: dict[str, Any] = {}  # of what may be an id
        self._differing: set[str] = set()
        self._survey()

    def _survey(self) -> None:
        latest = None
        for _, part, key in self._keyed(None):
            mark = hash(key)
            if mark in self.sizes and mark != latest:
                self._apart.add(mark)
            self.sizes[mark] += 1
            latest = mark
            ids = ranked_fields(part.around, "id") if isinstance(part, Talk) else []
            for path, value in ids:
                if self._firsts.setdefault(path, value) != value:
                    self._differing.add(path)

    def _layout_of_rows(self, sample: list[Any], given: Mapping[str, str]) -> Layout | None:
        """Return the fields of records that are messages; None of such as hold messages."""
        if "messages" in given or not sample:
            return None
        if self.is_table:
            texts = [{at: cell_text(item.get(at)) for at in self._columns} for item in sample]
            layout = layout_of_rows(texts, given)
            self._choice = "" if given else choice_of(layout, texts)
        else:
            layout = replace(layout_of(sample, given), divides=True)
        if not (given or layout.sides):
            speaks = self.tables.speaks("[]", sample) and not any(map(pair_of, sample))
            holding = sum(bool(self._found("", item)) for item in sample[:_LISTED])
            if not speaks and (not self.is_table or 2 * holding > len(sample[:_LISTED])):
                return None
        if unknown := set(given.values()) - self._columns.keys():
            raise InputError(
                f"{self.name}:1: {unknown_name('column', unknown.pop(), self._columns)}"
            )
        if not (layout.text or layout.sides):
            names = ", ".join(list(self._columns)[:_LISTED])
            raise InputError(f"{self.name}:1: got no column for content (found: {names}); {SAY}")
        return layout

    def _keyed(self, notes: Notes | None) -> Iterator[tuple[str, Any, str]]:
        """Yield places, rows, conversations or problems, and what those of a dialogue share."""
        if self.rows:
            self.rows.begin()
        for number, (place, record) in enumerate(self._read(), start=1):
            if self.rows is None:
                yield from self._talks(place, number, record, notes)
                continue
            fault = fault_of_row(record)
            row = record
            if self.is_table and not fault:
                row = {at: cell_text(record.get(at)) for at in self._columns}
            if fault:
                # a dialogue that lacks a row is not read
                yield place, Problem(place, fault), self.rows.latest
            elif not self.is_table or any(map(str.strip, row.values())):
                yield place, row, self.rows.key(place, number, row)

    def _found(self, place: str, record: Any) -> Sequence[Talk | Problem]:
        """Return the conversations in a record, or why they cannot be read."""
        try:
            return versions(self.tables.find(record))
        except MISFORMED:
            return [_malformed(place, record)]

    def _talks(
        self, place: str, number: int, record: Any, notes: Notes | None
    ) -> Iterator[tuple[str, Any, str]]:
        """Yield the conversations in a record that is no row."""
        talks = [] if _is_faulty(record) else self._found(place, record)
        if not talks and notes is not None:
            yield from _unread(place, record, notes)
        for index, talk in enumerate(talks, start=1):
            if isinstance(talk, Problem):
                yield place, talk, place
                return
            where = place if len(talks) == 1 else f"{place}: dialogue {index}"
            talk.key = talk.key or (str(number) if self.is_table else "")
            shared = next((value for _, value in ranked_fields(talk.around, "group")), None)
            yield where, talk, where if shared is None else str(address_of(shared))

    def __call__(self, notes: Notes) -> Iterator[Draft]:
        """Make the dialogues."""
        self.account = Account()
        self._passes += 1
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
            if self._apart:
                what = counted(len(self._apart), "dialogue")
                notes.add(f"{what} whose rows stood apart put together", self.name)
            if self._choice:
                notes.add(self._choice, self.name)
        else:
            for _, record in self._read():
                whole = opened(record)
                self.account.take(plain(whole) if isinstance(whole, Mapping) else whole)
        notes.account.join(self.account)

    def _drafts(self, key: str, members: list[tuple[str, Any]], notes: Notes) -> Iterator[Draft]:
        """Make the dialogues of what shares a key."""
        place = members[0][0]
        problems = tuple(part for _, part in members if isinstance(part, Problem))
        if problems:
            yield Draft(place, key, (), problems=problems)
            return
        if self.rows is None:
            yield from self._of(key, members, notes)
            return
        talk = self.rows.talk(key, members, notes)
        yield from self._of(key, [(place, talk)], notes)
        for _, row in members if self._passes > 1 else ():
            self.account.take(row)
        self.account.forget()

    def _of(self, key: str, members: list[tuple[str, Talk]], notes: Notes) -> Iterator[Draft]:
        place, first = members[0]
        messages: list[Message] = []
        for where, talk in members:
            beside: Message = {"place": where}
            if len(members) > 1 and (time := ranked_fields(talk.around, "time")):
                beside["time"] = time[0][1]
            try:
                messages = continued(messages, [beside | message for message in talk.messages])
            except MISFORMED:
                problem = _malformed(where, {"messages": talk.items})
                yield Draft(place, key, (), problems=(problem,))
                return
            for other in talk.more:
                notes.add(f"left out another version of a dialogue ({other.path})", where)
                self.account.note([message.get("raw") for message in other.messages])
        parts: dict[str, list[Message]] = {}
        for message in messages:
            if "left_out" in message:
                notes.leave(message["left_out"], message["place"])
                self.account.note(message["raw"])
            else:
                parts.setdefault(message.pop("group", ""), []).append(message)
        if parts:
            yield from self._divided(place, key, first, parts, notes)
        else:
            notes.add("left out a dialogue in which nobody says anything", place)

    def _divided(
        self, place: str, key: str, talk: Talk, parts: Mapping[str, list[Message]], notes: Notes
    ) -> Iterator[Draft]:
        around, layout = talk.around, talk.layout
        if self.rows and (layout.group or self.is_table):
            id, id_path, time_path, time = key, "", "", ""
        else:
            alike = self._firsts.keys() - self._differing if len(self.sizes) > 1 else set()
            alike = {path for path in alike if path.rpartition("/")[2] != "id"}
            id, id_path = id_of(around, talk.key, alike)
            time_path, time = next(iter(ranked_fields(around, "time")), ("", ""))
        if self.title and id:
            id = f"{self.title}/{id}"
        metadata = metadata_of(around, (id_path, time_path, "domains", ""))
        metadata |= {
            name: number_of(metadata[name])
            for name in self._numbers & metadata.keys()
            if are_numbers([metadata[name]])
        }
        domains = around.get("domains")
        turns = [turn for several in parts.values() for turn in several]
        for value in (id, time, *metadata.values()):
            self.account.keep(value)
        for turn in turns:
            for text in (*turn.pop("raw", ()), turn["content"], turn["role"], turn.get("name")):
                self.account.keep(text)
        is_ticket = self.rows.is_mail if self.rows else any(map(_TICKET.fullmatch, around))
        is_whole = is_ticket or any(
            "Thread" in str(around.get(at)) for at in ("type", "channel/type")
        )
        named = not any(is_known(str(turn["role"])) for turn in turns)
        for group, part in parts.items():
            divides = named and not group and not is_whole and not layout.is_recording
            if self.rows:
                divides = not layout.divides and not layout.sides
            yield Draft(
                place,
                group or ("" if id == place else id),
                joined(place, part, notes) if layout.is_recording else part,
                domains if isinstance(domains, list | tuple) else (),
                time=time,
                metadata=metadata,
                mail=is_ticket or any(turn.get("markup") for turn in part),
                pause=_PAUSE if divides else None,
                is_apart=hash(key) in self._apart,
            )


def _is_faulty(item: Any) -> bool:
    return isinstance(item, InputError) or (isinstance(item, Mapping) and None in item)


def _malformed(place: str, record: Any) -> Problem:
    """Return what is wrong with a record of chat messages."""
    items = record.get("messages", [record]) if isinstance(record, Mapping) else record
    finding = from_record(place, {"messages": items})
    return next(iter(finding.problems), Problem(place, "got another form than expected; repair it"))


def _unread(place: str, record: Any, notes: Notes) -> Iterator[tuple[str, Problem, str]]:
    """Say why a record holds no conversation; note it where it may be so."""
    has_messages = isinstance(record, dict) and bool(record.get("messages"))
    if _is_faulty(record):
        yield place, Problem(place, fault_of_row(record)), place
    elif has_messages or not isinstance(record, dict | list):
        for problem in from_record(place, record).problems:
            yield place, problem, place
    else:
        notes.add("left out a record in which nobody says anything", place)


def _holds(value: Any) -> bool:
    """Return whether a value is more than a scalar, or a text in a list."""
    if isinstance(value, list):
        return len(value) != 1 or not isinstance(value[0], str)
    return isinstance(value, Mapping)
