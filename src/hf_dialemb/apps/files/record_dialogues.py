"""Dialogues of records: messages of what was found in them, grouped, joined and without repeats."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from typing import Any

from ...errors import InputError, unknown_name
from .account import REMEDY, Account
from .columns import SAY, SIDES
from .evidence import (
    EARLIER,
    Layout,
    Record,
    columns_of,
    flat_of,
    flattened,
    is_known,
    layout_of,
    value_at,
)
from .findings import Draft, Notes, Problem, from_record
from .histories import IDS, continued, on_path
from .inherited import (
    fields_around,
    id_of,
    metadata_of,
    people_of,
    ranked_fields,
    shared_key,
    versions,
)
from .joining import joined
from .json_values import opened, pair_of
from .markup import plain_text
from .message_parts import Message, in_turn, message_in
from .record_tables import Conversations, Unit, system_rows
from .row_groups import Rows, sides_of
from .row_layout import layout_of_rows
from .table_rows import cell_text
from .transcripts import draft_of_text

Read = Callable[[], Iterable[tuple[str, Any]]]
"""Reads the records of a file, each with its place; an `InputError` is a damaged one."""

_LISTED = 20  # fields that a sentence is about
_SURVEYED = 1000  # records that show what fields are
_PAUSE = timedelta(hours=4)  # that ends a conversation of people who have names
_TICKET = re.compile(r"subject|priority|requester\w*|ticket\w*")
_ANSWERS = {"output", "answer", "response", "input", "question", "query", "prompt", "text"}


class RecordDrafts:
    """The dialogues of a file's records, which are surveyed first.

    Records that are messages themselves, such as the rows of a table, are put together by `Rows`.
    """

    def __init__(
        self, read: Read, name: str, columns: Mapping[str, str] | None = None, title: str = ""
    ) -> None:
        self._read, self.name, self.title = read, name, title
        given = columns or {}
        sample = [item for _, item in islice(read(), _SURVEYED) if not _is_faulty(item)]
        self.account = Account()
        self.clashing: set[int] = set()  # ids that another sheet has too
        self.tables = Conversations(sample, system_rows(), given)
        self.header: list[str] = []  # of records that hold nothing but scalars
        self.rows: Rows | None = None
        self._firsts: dict[str, Any] = {}  # of what may be an id
        self._differing: set[str] = set()
        self._passes = 0  # the first one decides what is metadata
        if layout := self._layout_of_rows(sample, given):
            self.rows = Rows(name, layout, self._texts(), self._replies)
            self.sizes = self.rows.sizes
            return
        self.sizes = Counter[int]()  # by the hash of what records of a dialogue share
        for _, unit, key in self._units(None):
            if isinstance(unit, Unit):
                self.sizes[hash(key)] += 1
                for path, value in ranked_fields(fields_around(unit), "id"):
                    if self._firsts.setdefault(path, value) != value:
                        self._differing.add(path)

    def _layout_of_rows(self, sample: list[Any], given: Mapping[str, str]) -> Layout | None:
        """Return the fields of records that are messages; None of such as hold messages."""
        if "messages" in given or not all(isinstance(item, Mapping) for item in sample):
            return None
        columns = columns_of(sample)
        is_flat = not any(_holds(value) for item in sample for value in item.values())
        texts = [{path: cell_text(item.get(path)) for path in columns} for item in sample]
        if is_flat:
            layout = layout_of_rows(texts, system_rows(), given)
        else:
            layout = replace(layout_of(sample, system_rows(), given), divides=True)
        if not (given or layout.sides):
            speaks = self.tables.speaks("[]", sample) and not any(map(pair_of, sample))
            holding = sum(bool(self.tables.find(item)) for item in sample[:_LISTED])
            if not sample or not (speaks or (is_flat and 2 * holding <= len(sample[:_LISTED]))):
                return None
        if columns and (unknown := set(given.values()) - columns.keys()):
            raise InputError(f"{self.name}:1: {unknown_name('column', unknown.pop(), columns)}")
        if not (layout.text or layout.sides):
            names = ", ".join(list(columns)[:_LISTED])
            raise InputError(f"{self.name}:1: got no column for content (found: {names}); {SAY}")
        self.header = list(columns) if is_flat else []
        return layout

    def _texts(self) -> Iterator[tuple[str, Any]]:
        """Read the records; those of a table hold texts only, and none is blank."""
        for place, record in self._read():
            if self.header and isinstance(record, Mapping) and None not in record:
                cells = {path: cell_text(record.get(path)) for path in self.header}
                if any(map(str.strip, cells.values())):
                    yield place, cells
            else:
                yield place, record

    def __call__(self, notes: Notes) -> Iterator[Draft]:
        """Make the dialogues."""
        self.account = Account()
        self._passes += 1
        groups: dict[str, list[tuple[str, Any]]] = {}
        keyed = self.rows.keyed(self._texts()) if self.rows else self._units(notes)
        for place, unit, key in keyed:
            members = groups.setdefault(key, [])
            members.append((place, unit))
            if len(members) >= self.sizes[hash(key)]:
                yield from self._drafts(key, groups.pop(key), notes)
        for key, members in groups.items():
            yield from self._drafts(key, members, notes)

    def take_account(self, notes: Notes) -> None:
        """Count the words of all records, after all dialogues were made."""
        if self.rows:
            self.rows.remark(notes)
        else:
            for _, record in self._read():
                self.account.take(opened(record))
        notes.account.join(self.account)

    def _units(self, notes: Notes | None) -> Iterator[tuple[str, Any, str]]:
        """Yield places, conversations or problems, and what the records of a dialogue share."""
        for place, record in self._read():
            if isinstance(record, InputError):
                yield place, Problem(place, str(record)), place
                continue
            units = versions(self.tables.find(record))
            if not units and notes is not None:
                yield from _unread(place, record, notes)
            for number, unit in enumerate(units, start=1):
                where = place if len(units) == 1 else f"{place}: dialogue {number}"
                yield where, unit, shared_key(unit) or where

    def _replies(self, at: str, outer: Layout, flat: Record) -> list[tuple[Layout, list[Record]]]:
        """Return lists of messages in a message, such as the answers to a post."""
        lists: list[tuple[Layout, list[Record]]] = []
        if outer.is_flat:
            return lists
        for name, inner in flat.items():
            if not isinstance(inner, list):
                continue
            path = f"{at}.{name.replace('/', '.')}[]"
            if path in self.tables.samples and not EARLIER.search(name):
                layout = self.tables.layout(path)
                if layout.role and name not in outer.text and self.tables.speaks(path):
                    lists.append((layout, inner))
        return lists

    def _drafts(self, key: str, members: list[tuple[str, Any]], notes: Notes) -> Iterator[Draft]:
        """Make the dialogues of what shares a key."""
        place = members[0][0]
        problems = tuple(unit for _, unit in members if isinstance(unit, Problem))
        if problems:
            yield Draft(place, key, (), problems=problems)
        elif self.rows:
            unit = self.rows.unit(key, members, notes)
            yield from self._of([(place, unit)], notes)
            for _, row in members if self._passes > 1 else ():
                self.account.take(row)
            self.account.forget()
        else:
            yield from self._of(members, notes)

    def _of(self, members: list[tuple[str, Unit]], notes: Notes) -> Iterator[Draft]:
        place, first = members[0]
        messages: list[Message] = []
        for where, unit in members:
            try:
                latest = list(self._messages(unit, notes, where))
            except (AttributeError, LookupError, TypeError, ValueError):
                yield _malformed(where, unit)
                return
            beside: Message = {"place": where}
            if len(members) > 1 and (time := ranked_fields(fields_around(unit), "time")):
                beside["time"] = time[0][1]
            messages = continued(messages, [beside | message for message in latest])
            for other in unit.more:
                notes.add(f"left out another version of a dialogue ({other.path})", where)
                sides = other.context[-1:] if other.kind == "pair" else []
                self.account.note([other.items, sides])
        spoken: dict[str, list[Message]] = {}
        for message in messages:
            if "left_out" in message:
                notes.leave(message["left_out"], message["place"])
            else:
                spoken.setdefault(message.pop("group", ""), []).append(message)
        if not spoken:
            notes.add("left out a dialogue in which nobody says anything", place)
        elif any(turn["content"] for turns in spoken.values() for turn in turns):
            yield from self._divided(place, first, spoken, notes)
        else:
            yield _malformed(place, first)

    def _divided(
        self, place: str, unit: Unit, spoken: Mapping[str, list[Message]], notes: Notes
    ) -> Iterator[Draft]:
        context = fields_around(unit)
        id, id_path = unit.key, ""
        time_path, time = "", ""
        if not self.rows or not (unit.layout.group or self.header):
            alike = self._firsts.keys() - self._differing if len(self.sizes) > 1 else set()
            alike = {path for path in alike if path.rpartition("/")[2] != "id"}
            id, id_path = id_of(unit, context, alike)
            time_path, time = next(iter(ranked_fields(context, "time")), ("", ""))
        elif hash(unit.key) in self.clashing:
            id = f"{self.title}/{id}"
        id = "" if id == place else id
        domains = context.get("domains")
        metadata = metadata_of(context, (id_path, time_path, "domains", ""))
        turns = [turn for several in spoken.values() for turn in several]
        is_ticket = self.rows.is_mail if self.rows else any(map(_TICKET.fullmatch, context))
        is_whole = is_ticket or any(
            "Thread" in str(context.get(at)) for at in ("type", "channel/type")
        )
        named = not any(is_known(str(turn["role"])) for turn in turns)
        for value in (id, time, *metadata.values()):
            self.account.keep(value)
        for turn in turns:
            for text in (*turn.pop("raw", ()), turn["content"], turn["role"], turn.get("name")):
                self.account.keep(text)
        for key, part in spoken.items():
            divides = named and not key and not is_whole and not unit.layout.is_recording
            if self.rows:
                divides = not unit.layout.divides and not unit.layout.sides
            yield Draft(
                place,
                key or id,
                joined(place, part, notes) if unit.layout.is_recording else part,
                domains if isinstance(domains, list | tuple) else (),
                time=time,
                metadata=metadata,
                mail=is_ticket or any(turn.get("markup") for turn in part),
                pause=_PAUSE if divides else None,
                is_apart=self.rows is not None and hash(unit.key) in self.rows.apart,
            )

    def _messages(self, unit: Unit, notes: Notes, place: str) -> Iterator[Message]:
        if unit.kind == "transcript":
            text = str(unit.items[0])
            text = plain_text(text) if "<" in text else text
            draft = draft_of_text(place, text.splitlines(), notes)
            yield from (dict(message) | {"raw": unit.items} for message in draft.messages)
        elif unit.kind == "texts":
            yield from in_turn(unit.items, unit.context[-1].get("speakers"), notes, place)
        elif unit.kind == "pair":
            yield from self._sides(unit.context[-1], unit.path, notes, place)
        elif unit.kind == "exchanges":
            for item in unit.items:
                yield from self._sides(item, unit.path, notes, place)
        else:
            yield from self._listed(unit)

    def _sides(self, value: Record, path: str, notes: Notes, place: str) -> Iterator[Message]:
        """Yield what is asked and answered, after what was so before."""
        messages: list[Message] = []
        history = value.get("history")
        exchanges = history if isinstance(history, list) else []
        for exchange in exchanges:
            pair = zip(exchange, SIDES, strict=False)
            messages += [{"role": side, "content": str(text), "name": ""} for text, side in pair]
        beside = (
            {"time": time[0][1]} if (time := ranked_fields(dict(flattened(value)), "time")) else {}
        )
        for name, side in zip(pair_of(value), SIDES, strict=True):
            side_value = opened(value[name])
            if name == "input" and isinstance(value.get("instruction"), str):
                side_value = "\n".join(filter(None, (value["instruction"], side_value)))
            latest = self._under(side_value, side, f"{path}.{name}", notes, place)
            messages = continued(messages, [beside | message for message in latest])
        yield from messages

    def _under(
        self, value: Any, side: str, path: str, notes: Notes, place: str
    ) -> Iterator[Message]:
        """Yield what is said in a side of a pair."""
        value = opened(value)
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            value = " ".join(value)
        if isinstance(value, str):
            yield {"role": side, "content": value, "name": ""}
        elif units := self.tables.units(value, path, [], ""):
            for unit in units:
                yield from self._messages(unit, notes, place)
        elif isinstance(value, Mapping):
            layout = self.tables.layout(path, [value])
            if layout.text:
                yield from message_in(flat_of(value, layout), layout, {}, side)
                return
            for name, inner in value.items():
                if isinstance(inner, list | Mapping) or name in _ANSWERS:
                    yield from self._under(inner, side, f"{path}.{name}", notes, place)

    def _listed(self, unit: Unit) -> Iterator[Message]:
        items = [item for item in unit.items if isinstance(item, Mapping)]
        if len(items) < len(unit.items):
            yield {"left_out": "a message that is no object"}
        people = people_of(unit)
        nodes = [at.get("current_node", at.get("currentId")) for at in unit.context]
        last = next((node for node in nodes if node), None)
        flats = {id(item): flat_of(item, unit.layout) for item in items}
        threads = Counter(str(value_at(flat, unit.layout.thread)) for flat in flats.values())
        default = "user" if unit.layout.is_flat and not unit.layout.speaks else ""
        for item in on_path(items, unit.layout, last):
            if "left_out" in item:
                self.account.note(item)
                yield dict(item)
                continue
            if unit.layout.sides:
                yield from sides_of(item, unit)
                continue
            flat = flats[id(item)]
            replies = self._replies(unit.path, unit.layout, flat)
            beside = _beside(flat, unit, threads, bool(replies))
            if id(item) in unit.places:
                beside["place"] = unit.places[id(item)]
            several = [
                (flat, unit.layout),
                *((flat_of(reply, near), near) for near, some in replies for reply in some),
            ]
            for inner, layout in several:
                for message in message_in(inner, layout, people, default):
                    if "left_out" in message:
                        self.account.note(inner)
                    yield message | beside


def _is_faulty(item: Any) -> bool:
    return isinstance(item, InputError) or (isinstance(item, Mapping) and None in item)


def _malformed(place: str, unit: Unit) -> Draft:
    return Draft(place, "", (), problems=from_record(place, {"messages": unit.items}).problems)


def _beside(flat: Record, unit: Unit, threads: Mapping[str, int], has_replies: bool) -> Message:
    """Return what tells the conversations of a list apart."""
    thread = value_at(flat, unit.layout.thread)
    group = None if unit.places else value_at(flat, unit.layout.group)
    if thread is not None and threads[str(thread)] > 1:
        group = thread
    if has_replies and group is None and not unit.places:
        group = value_at(flat, IDS) or f"{unit.path}{id(flat)}"
    return {} if group is None else {"group": str(group).rpartition("/conversations/")[2]}


def _unread(place: str, record: Any, notes: Notes) -> Iterator[tuple[str, Problem, str]]:
    """Say why a record holds no conversation; note it where it may be so."""
    fields = list(record) if isinstance(record, dict) else []
    has_messages = isinstance(record, dict) and bool(record.get("messages"))
    if has_messages or not isinstance(record, dict | list):
        for problem in from_record(place, record).problems:
            yield place, problem, place
    elif fields and notes.options.strict:
        names = ", ".join(map(str, fields[:_LISTED]))
        sentence = f"got an object with the fields {names}, in which nobody says anything"
        yield place, Problem(place, f"{sentence}; {REMEDY}"), place
    else:
        what = "in which nobody says anything" if record else "that is empty"
        notes.add(f"left out a record {what}", place)


def _holds(value: Any) -> bool:
    """Return whether a value is more than a scalar, or a text in a list."""
    if isinstance(value, list):
        return len(value) != 1 or not isinstance(value[0], str)
    return isinstance(value, Mapping)
