"""The one table of forms, and how the form of a file is recognised.

`FORMS` has a row for each form, most specific first; rows of families are in the modules beside
this one, and others hang in by entry points of the group ``hf_dialemb.forms``, each a mapping from
names to forms.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...data.parsing import parse_json
from ...errors import InputError
from ...hooks import Registry
from .captions import TEXTS
from .chats import CHATS, LISTS, continued
from .columns import parse_columns
from .findings import Draft, Notes, Problem, from_record
from .form import FOLDER, RECORD, Form, Message, objects, value_at
from .roles import WELL_KNOWN
from .vendors import CALLS, DESKS

FORMS = Registry("forms", {form.name: form for form in (*DESKS, *CALLS, *CHATS, *TEXTS)})
"""All forms by name; those of other packages are tried first."""

Records = Callable[[], Iterable[tuple[str, Any]]]
"""Reads the records of a file, each with its place.

An `InputError` stands for a record that is damaged.
"""

_ID = "id|uuid|conversation_id|conversationId|ticket_id|session_id|sessionId|conversation_hash|thread_id"
_SHARED = "conversation_id|dialogue_id|dialog_id|session_id|ticket_id|thread_id|call_id|chat_id"
_TIME = "time|created_at|create_time|timestamp|createdAt|created|date|startTime|start_time"
# looked into first
_WRAPPERS = {"conversations", "data", "items", "results", "tickets", "chats", "threads", "list"}
_DEEPEST = 8  # lists and objects around a conversation
_ALIKE = 0.5  # share of a form's fields that a record has, at least, to be like it
_LISTED = 20  # fields or items that a sentence is about
_LOOKED_AT = 100  # items of a list that show what it is a list of
_MALFORMED = (AttributeError, LookupError, TypeError, ValueError)
_LONGEST_VALUE, _MOST_FIELDS = 1000, 50  # of metadata
_NO_NAME = re.compile(r"[\W\d]*|[0-9a-fA-F-]{24,}")  # numbers and UUIDs


def record_forms() -> list[Form]:
    """Return the forms of records in the order in which they are tried."""
    own = [FORMS[name] for name in FORMS.own]
    outside = [form for name, form in FORMS.items() if name not in FORMS.own]
    return [form for form in (*outside, *own) if form.container == RECORD]


def form_of(record: Any, forms: Iterable[Form]) -> Form | None:
    """Return the first form that a record has; None if it has none."""
    return next((form for form in forms if form.has(record)), None)


def form_of_folder(folder: Path) -> Form | None:
    """Return the form of a folder whose files belong together, such as an export of Slack.

    None without one.
    """
    forms = (form for form in FORMS.values() if form.container == FOLDER)
    return next((form for form in forms if form.accepts and form.accepts(folder)), None)


class RecordDrafts:
    """Makes dialogues of the records of a file.

    The file is surveyed first: how many records have which form, and how many belong to one
    dialogue, so that a dialogue is made as soon as its last record has come.
    """

    def __init__(self, read: Records, columns: str | None = None) -> None:
        named = _named_by(parse_columns(columns))
        self._read, self._known = read, [named] if named else record_forms()
        self._usual: Form | None = None  # the form of most records
        self.header: list[str] = []  # of a table whose rows the records are
        # by the hash of what records of a dialogue share
        counts, self._sizes = (Counter[Form | None](), Counter[int]())
        fields: dict[str, None] = {}
        rows = 0
        for _, record, form, key in self._records():
            counts[form] += 1
            self._sizes.update([hash(key)] if key else [])
            if _is_row(record):
                fields, rows = fields | dict.fromkeys(record), rows + (form is None)
        self._usual = next((form for form, _ in counts.most_common() if form), None)
        if (columns and not named) or 2 * rows > counts.total():
            self.header = list(fields)

    def __call__(self, notes: Notes) -> Iterator[Draft]:
        """Make the dialogues."""
        notes.form = self._usual.name if self._usual else notes.form
        groups: dict[Any, list[tuple[str, Any]]] = {}
        for place, record, form, key in self._records():
            if form is None:
                yield Draft(
                    place,
                    "",
                    (),
                    problems=tuple(Problem(place, fault) for fault in self._faults(record)),
                )
                continue
            members = groups.setdefault(key, [])
            members.append((place, record))
            if len(members) >= self._sizes.get(hash(key), 1):
                yield from _tolerant(form, groups.pop(key), notes)

    def records(self) -> Iterator[tuple[str, Any]]:
        """Yield the records with their places."""
        return ((place, record) for place, record, _, _ in self._records())

    def _records(self) -> Iterator[tuple[str, Any, Form | None, Any]]:
        """Yield records with their places, their forms, and what the records of one dialogue share,
        if they do.
        """
        before: tuple[str, Any] | None = None
        for place, value in self._read():
            usual = self._usual and self._usual.has(value)
            parts = (
                [value]
                if usual or isinstance(value, InputError)
                else conversations_of(value, self._known)
            )
            for number, record in enumerate(parts, start=1):
                form = (
                    self._usual
                    if self._usual and self._usual.has(record)
                    else form_of(record, self._known)
                )
                key = value_at(record, *form.group) if form and form.group else None
                if form and key is not None:
                    before = form.name, str(key)
                elif not (form and form.goes_on):
                    before = None
                elif before is None or before[0] != form.name:
                    before = form.name, place
                yield (
                    place if parts == [value] else f"{place}: dialogue {number}",
                    record,
                    form,
                    before,
                )

    def _faults(self, record: Any) -> list[str]:
        """Say why a record cannot be read.

        What is wrong with its messages, or the form that is nearest to it.
        """
        if isinstance(record, InputError):
            return [str(record)]
        items = value_at(record, "messages")
        first = next(iter(objects(items)), {"role": ""})
        if (
            not isinstance(record, dict)
            or not record
            or (items is not None and {"role", "content"} & first.keys())
        ):
            return [problem.message for problem in from_record("", record).problems]
        return [self._unknown(record)]

    def _unknown(self, record: Mapping[str, Any]) -> str:
        fault = f"got an object with the fields {', '.join(map(str, list(record)[:_LISTED]))}"
        if self._usual:
            return f"{fault}, which has not the file's form, {self._usual.name}; repair the record"
        nearest = max(self._known, key=lambda form: form.resembles(record))
        fault += ", whose form is not known"
        if nearest.resembles(record) >= _ALIKE:
            paths = (
                "/".join(step.partition("|")[0] for step in path.split("/"))
                for path in nearest.fields
            )
            fault += f" (the nearest is {nearest.name}, which has {' and '.join(paths)})"
        named = max(
            _lists_of_objects(record), default=(0, "messages=FIELD,role=FIELD,content=FIELD")
        )[1]
        return f"{fault}; say where it has messages, and what they have, with --columns '{named}'"


def _named_by(columns: Mapping[str, str]) -> Form | None:
    """Return the form whose fields the user names; None if they are a table's columns."""
    if "messages" not in columns:
        return None
    path = f"{columns['messages']}/*"
    names = {field: columns.get(field, field) for field in ("role", "content", "time", "name")}

    def messages(record: Mapping[str, Any]) -> Iterator[Message]:
        for item in objects(value_at(record, columns["messages"])):
            yield {field: value_at(item, name) for field, name in names.items()}

    fields = tuple(f"{path}/{names[field]}" for field in ("role", "content"))
    return Form(
        "the fields of --columns", messages=messages, fields=fields, id=[columns.get("id", _ID)]
    )


def _lists_of_objects(value: Any, path: str = "") -> Iterator[tuple[int, str]]:
    """Yield what --columns could say of lists of objects at any depth, with the length of what is
    said.
    """
    for name, inner in value.items() if isinstance(value, dict) else ():
        items = objects(inner)[:_LISTED]
        columns = {key: [item.get(key) for item in items] for key in (items[0] if items else ())}
        texts = {
            key: [text for text in column if isinstance(text, str)]
            for key, column in columns.items()
        }
        lengths = {key: sum(map(len, column)) for key, column in texts.items() if column}
        if len(lengths) > 1:
            content = max(lengths, key=lengths.__getitem__)
            role = min(lengths.keys() - {content}, key=lambda key: (len(set(texts[key])), key))
            yield lengths[content], f"messages={path}{name},role={role},content={content}"
        yield from _lists_of_objects(inner, f"{path}{name}/")


def _is_row(record: Any) -> bool:
    """Return whether a record has texts, but no lists of objects."""
    if not isinstance(record, dict) or not any(isinstance(value, str) for value in record.values()):
        return False
    return not any(
        objects(value) or (isinstance(value, dict) and not _is_row(value))
        for value in record.values()
    )


def _tolerant(form: Form, records: list[tuple[str, Any]], notes: Notes) -> Iterator[Draft]:
    """Make the dialogues of records that belong together.

    One that its form cannot read is a problem.
    """
    place, first = records[0]
    try:
        yield from (
            form.drafts(place, first, notes) if form.drafts else _drafts(form, records, notes)
        )
    except _MALFORMED:
        name = next(
            (name for name in LISTS.split("|") if isinstance(first.get(name), list)), "messages"
        )
        yield Draft(
            place,
            "",
            (),
            problems=from_record(place, {**first, "messages": first.get(name)}).problems,
        )


def _drafts(form: Form, records: list[tuple[str, Any]], notes: Notes) -> Iterator[Draft]:
    """Make one dialogue of the records that belong to it."""
    place, first = records[0]
    messages: list[Message] = []
    for where, record in records:
        assert form.messages is not None, "a form of records reads messages"
        beside = {"place": where}
        if len(records) > 1 and (time := value_at(record, _TIME)) is not None:
            beside["time"] = time
        latest = [{**beside, **message} for message in form.messages(record)]
        messages = continued(messages, latest) if form.group else latest
    for message in messages:
        if "left_out" in message:
            notes.add(f"left out {message['left_out']}", message["place"])
        else:
            if "guess" in message:
                notes.guess(message.pop("guess"), message["place"])
            message.setdefault("name", _called(message["role"]))
    spoken = [message for message in messages if "left_out" not in message]
    if spoken and not any(message["content"] for message in spoken):
        raise ValueError  # all texts are missing: their field may have another name
    if not spoken:
        if not form.goes_on:
            notes.add("left out a dialogue in which nobody says anything", place)
        return
    identifiers = (value_at(record, *form.id, _ID) for _, record in records)
    identifier = next((value for value in identifiers if value is not None), "")
    time = value_at(first, _TIME) or ""
    yield Draft(
        place, identifier, spoken, first.get("domains"), time=time, metadata=_metadata(first, form)
    )


def _metadata(record: Mapping[str, Any], form: Form) -> dict[str, Any]:
    """Return the other fields of a record.

    Texts, numbers and lists of texts, those of ``metadata`` before all.
    """
    paths = (*form.group, *form.id, *form.used, _ID, _TIME, "domains|metadata")
    known = {name for path in paths for name in path.split("/")[0].split("|")}
    inner = as_object(record.get("metadata"))
    others = {name: value for name, value in record.items() if name not in known}
    fields = {**others, **inner} if isinstance(inner, dict) else others
    kept = {str(name): value for name, value in fields.items() if is_small(value)}
    return dict(list(kept.items())[:_MOST_FIELDS])


def as_object(value: Any) -> Any:
    """Return an object, also of its JSON, as `to_dataset` writes it."""
    with suppress(InputError):
        return (
            parse_json("", value.encode(), "")
            if isinstance(value, str) and value.startswith("{")
            else value
        )
    return value


def is_small(value: Any) -> bool:
    """Return whether a value is metadata: a short text, a number, or a list of texts."""
    if isinstance(value, list):
        return (
            bool(value)
            and all(isinstance(item, str) for item in value)
            and sum(map(len, value)) <= _LONGEST_VALUE
        )
    return isinstance(value, bool | int | float) or (
        isinstance(value, str) and 0 < len(value) <= _LONGEST_VALUE
    )


def _called(speaker: str) -> str:
    """Return the name of a speaker; empty for a role, a number or a UUID."""
    name = speaker.strip()
    return "" if name.casefold() in WELL_KNOWN or _NO_NAME.fullmatch(name) else name


def conversations_of(value: Any, forms: Iterable[Form]) -> list[Any]:
    """Return the conversations in a value.

    One, a list of them, those in a wrapper, or those that ids lead to.

    A value without any that is known is returned itself, or its items.
    """
    known = _within(value, list(forms), _DEEPEST)
    if known is not None:
        return known
    return value if isinstance(value, list) and objects(value) else [value]


def _within(value: Any, forms: list[Form], depth: int) -> list[Any] | None:
    if isinstance(value, list) and depth:
        items = value[:_LOOKED_AT]
        whole = (
            form_of({"messages": items}, forms)
            if isinstance(next(iter(items), None), dict)
            else None
        )
        if (
            whole and not whole.drafts and _are_rows(value)
        ):  # what groups such messages is known of vendors alone
            whole = None
        if whole and forms.index(whole) < _rank_within(items, forms):
            return [_as_record(value)]
        if _rank_within(items, forms) < len(forms):
            return [_as_record(item) for item in value]
        if any(_within(item, forms, depth - 1) for item in items if isinstance(item, dict)):
            parts = (_within(item, forms, depth - 1) or [item] for item in value)
            return [part for several in parts for part in several]
    elif isinstance(value, dict):
        return _within_object(value, forms, depth)
    return None


def _are_rows(items: list[Any]) -> bool:
    """Return whether messages say themselves of which conversation they are."""
    first = items[0]
    ids = [item.get("id") for item in objects(items)] if first.get("id") is not None else []
    return value_at(first, _SHARED) is not None or len(set(map(str, ids))) < len(ids)


def _within_object(value: Mapping[str, Any], forms: list[Form], depth: int) -> list[Any] | None:
    lists = [
        items for name, items in value.items() if name in _WRAPPERS and isinstance(items, list)
    ]
    best = min(lists, key=lambda items: _rank_within(items, forms), default=[])
    if _rank_within(best, forms) < _rank(
        value, forms
    ):  # a list of conversations, which may look like messages
        return [_as_record(item) for item in best]
    if form_of(value, forms):
        return [value]
    records = {
        key: _as_record(inner) for key, inner in value.items() if isinstance(inner, dict | list)
    }
    known = [record for record in list(records.values())[:_LOOKED_AT] if form_of(record, forms)]
    if (
        2 * len(known) > min(len(value), _LOOKED_AT) and not records.keys() & _WRAPPERS
    ):  # ids lead to them
        return [
            {"id": key, **records[key]} if key in records else inner for key, inner in value.items()
        ]
    inside = (
        _within(value[name], forms, depth - 1)
        for name in sorted(records, key=lambda name: name not in _WRAPPERS)
    )
    return next((inner for inner in inside if inner is not None), None) if depth else None


def _rank(value: Any, forms: list[Form]) -> int:
    """Return the place of a record's form; rows of vendors are before those that many have."""
    form = form_of(value, forms)
    return forms.index(form) if form else len(forms)


def _rank_within(items: list[Any], forms: list[Form]) -> int:
    return min((_rank(_as_record(item), forms) for item in items[:_LOOKED_AT]), default=len(forms))


def _as_record(value: Any) -> Any:
    return {"messages": value} if isinstance(value, list) else value
