"""The one table of forms, and how the form of a file is recognised.

`FORMS` has a row for each form, most specific first; rows of families are in the modules beside
this one, and others hang in by entry points of the group ``hf_dialemb.forms``, each a mapping from
names to forms.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...hooks import Registry
from .captions import TEXTS
from .chats import CHATS, LISTS
from .columns import parse_columns
from .field_paths import Record, objects, value_at
from .findings import Draft, Notes, Problem, from_record
from .form import FOLDER, RECORD, Form, Message, drafts_of
from .recordings import CALLS
from .vendors import DESKS

FORMS = Registry("forms", {form.name: form for form in (*DESKS, *CALLS, *CHATS, *TEXTS)})
"""All forms by name; those of other packages are tried first."""

Records = Callable[[], Iterable[tuple[str, Any]]]
"""Reads the records of a file, each with its place.

An `InputError` stands for a record that is damaged.
"""

_SHARED = "conversation_id|dialogue_id|dialog_id|session_id|ticket_id|thread_id|call_id|chat_id"
# looked into first
_WRAPPERS = {"conversations", "data", "items", "results", "tickets", "chats", "threads", "list"}
_DEEPEST = 8  # lists and objects around a conversation
_LISTED = 20  # fields or items that a sentence is about
_PROBED = 100  # items of a list that show what it is a list of
_MALFORMED = (AttributeError, LookupError, TypeError, ValueError)


def record_forms() -> list[Form]:
    """Return the forms of records in the order in which they are tried."""
    outside = [form for name, form in FORMS.items() if name not in FORMS.own]
    forms = [*outside, *(FORMS[name] for name in FORMS.own)]
    return [form for form in forms if form.container == RECORD]


def form_of(record: Any, forms: Iterable[Form]) -> Form | None:
    """Return the first form that a record has; None if it has none."""
    return next((form for form in forms if form.has(record)), None)


def form_of_folder(folder: Path) -> Form | None:
    """Return the form of a folder whose files belong together, such as an export of Slack."""
    forms = (form for form in FORMS.values() if form.container == FOLDER)
    return next((form for form in forms if form.accepts and form.accepts(folder)), None)


class RecordDrafts:
    """Makes dialogues of the records of a file.

    The file is surveyed first: how many records have which form, and how many belong to one
    dialogue, so that a dialogue is made as soon as its last record has come.
    """

    def __init__(self, read: Records, columns: str | None = None) -> None:
        named = _form_of_columns(parse_columns(columns))
        self._read = read
        self._known = [named] if named else record_forms()
        self._usual: Form | None = None  # the form of most records
        self._sizes = Counter[int]()  # by the hash of what records of a dialogue share
        self.header: list[str] = []  # of a table whose rows the records are
        counts = Counter[Form | None]()
        fields: dict[str, None] = {}
        rows = 0
        for _, record, form, key in self._records():
            counts[form] += 1
            if key:
                self._sizes[hash(key)] += 1
            if _is_row(record):
                fields |= dict.fromkeys(record)
                rows += form is None
        self._usual = next((form for form, _ in counts.most_common() if form), None)
        if (columns and not named) or 2 * rows > counts.total():
            self.header = list(fields)

    def __call__(self, notes: Notes) -> Iterator[Draft]:
        """Make the dialogues."""
        notes.form = self._usual.name if self._usual else notes.form
        groups: dict[Any, list[tuple[str, Any]]] = {}
        for place, record, form, key in self._records():
            if form is None:
                yield Draft(place, "", (), problems=self._problems(place, record))
                continue
            members = groups.setdefault(key, [])
            members.append((place, record))
            if len(members) >= self._sizes.get(hash(key), 1):
                yield from _tolerant(form, groups.pop(key), notes)

    def records(self) -> Iterator[tuple[str, Any]]:
        """Yield the records with their places."""
        return ((place, record) for place, record, _, _ in self._records())

    def _records(self) -> Iterator[tuple[str, Any, Form | None, Any]]:
        """Yield places, records, their forms, and what the records of one dialogue share."""
        before: tuple[str, Any] | None = None
        for place, value in self._read():
            parts = [value]
            if not isinstance(value, InputError) and not (self._usual and self._usual.has(value)):
                parts = conversations_of(value, self._known)
            for number, record in enumerate(parts, start=1):
                form = self._form_of(record)
                key = value_at(record, form.group) if form else None
                if form and key is not None:
                    before = form.name, str(key)
                elif not form or not form.goes_on:
                    before = None
                elif before is None or before[0] != form.name:
                    before = form.name, place
                where = place if parts == [value] else f"{place}: dialogue {number}"
                yield where, record, form, before

    def _form_of(self, record: Any) -> Form | None:
        if self._usual and self._usual.has(record):
            return self._usual
        return form_of(record, self._known)

    def _problems(self, place: str, record: Any) -> tuple[Problem, ...]:
        """Return why a record cannot be read."""
        if isinstance(record, InputError):
            return (Problem(place, str(record)),)
        messages = record.get("messages") if isinstance(record, dict) else []
        first = next(iter(objects(messages)), {"role": ""} if messages is not None else {})
        if first.keys() & {"role", "content"}:
            return from_record(place, record).problems
        fault = f"got an object with the fields {', '.join(map(str, list(record)[:_LISTED]))}"
        if self._usual:
            fault += f", which has not the file's form, {self._usual.name}; repair the record"
        else:
            fault += (
                ", whose form is not known; say where it has messages, and what they have, with "
                "--columns 'messages=FIELD,role=FIELD,content=FIELD'"
            )
        return (Problem(place, fault),)


def _form_of_columns(columns: Mapping[str, str]) -> Form | None:
    """Return the form whose fields the user names; None if they are a table's columns."""
    if "messages" not in columns:
        return None
    path = f"{columns['messages']}/*"
    names = {field: columns.get(field, field) for field in ("role", "content", "time", "name")}

    def messages(record: Record) -> Iterator[Message]:
        for item in objects(value_at(record, columns["messages"])):
            yield {field: value_at(item, name) for field, name in names.items()}

    fields = [f"{path}/{names[field]}" for field in ("role", "content")]
    return Form(
        "the fields of --columns", messages=messages, fields=fields, id=columns.get("id", "")
    )


def _is_row(record: Any) -> bool:
    """Return whether a record has texts, but no lists of objects."""
    if not isinstance(record, dict) or not any(isinstance(value, str) for value in record.values()):
        return False
    return not any(
        objects(value) or (isinstance(value, dict) and not _is_row(value))
        for value in record.values()
    )


def _tolerant(form: Form, records: list[tuple[str, Any]], notes: Notes) -> Iterator[Draft]:
    """Make the dialogues of records; one that its form cannot read is a problem."""
    try:
        yield from drafts_of(form, records, notes)
    except _MALFORMED:
        place, first = records[0]
        messages = next(
            (first[name] for name in LISTS.split("|") if isinstance(first.get(name), list)), None
        )
        problems = from_record(place, {**first, "messages": messages}).problems
        yield Draft(place, "", (), problems=problems)


def conversations_of(value: Any, forms: Iterable[Form]) -> list[Any]:
    """Return the conversations in a value: itself, or those in lists and wrappers, or under ids.

    A value without any that is known is returned itself, or its items.
    """
    known = _within(value, list(forms), _DEEPEST)
    if known is not None:
        return known
    return value if isinstance(value, list) and objects(value) else [value]


def _within(value: Any, forms: list[Form], depth: int) -> list[Any] | None:
    if isinstance(value, list) and depth:
        return _within_list(value, forms, depth)
    return _within_object(value, forms, depth) if isinstance(value, dict) else None


def _within_list(value: list[Any], forms: list[Form], depth: int) -> list[Any] | None:
    items = value[:_PROBED]
    rank = len(forms)
    if items and isinstance(items[0], dict):
        whole = {"messages": items}
        rank = _rank(whole, forms)
        # what groups such messages is known of systems alone
        if rank < len(forms) and not forms[rank].has_groups and _are_rows(value):
            rank = len(forms)
    if rank < _rank_within(items, forms):
        return [_as_record(value)]
    if _rank_within(items, forms) < len(forms):
        return [_as_record(item) for item in value]
    if not any(_within(item, forms, depth - 1) for item in items if isinstance(item, dict)):
        return None
    parts = []
    for item in value:
        parts += _within(item, forms, depth - 1) or [item]
    return parts


def _are_rows(items: list[Any]) -> bool:
    """Return whether messages say themselves of which conversation they are."""
    if value_at(items[0], _SHARED) is not None:
        return True
    ids = [str(item.get("id")) for item in objects(items)]
    return items[0].get("id") is not None and len(set(ids)) < len(ids)


def _within_object(value: Mapping[str, Any], forms: list[Form], depth: int) -> list[Any] | None:
    rank = _rank(value, forms)
    wrapped = [value[name] for name in _WRAPPERS if isinstance(value.get(name), list)]
    best: list[Any] = min(wrapped, key=lambda items: _rank_within(items, forms), default=[])
    if _rank_within(best, forms) < rank:  # conversations, which may look like messages
        return [_as_record(item) for item in best]
    if rank < len(forms):
        return [value]
    records = {
        key: _as_record(inner) for key, inner in value.items() if isinstance(inner, dict | list)
    }
    probed = list(records.values())[:_PROBED]
    known = [record for record in probed if form_of(record, forms)]
    if 2 * len(known) > min(len(value), _PROBED) and not records.keys() & _WRAPPERS:
        # ids lead to them
        return [
            {"id": key, **records[key]} if key in records else inner for key, inner in value.items()
        ]
    for name in sorted(records, key=lambda name: name not in _WRAPPERS) if depth else ():
        if (inner := _within(value[name], forms, depth - 1)) is not None:
            return inner
    return None


def _rank(value: Any, forms: list[Form]) -> int:
    """Return the place of a record's form; rows of vendors are before those that many have."""
    form = form_of(value, forms)
    return forms.index(form) if form else len(forms)


def _rank_within(items: list[Any], forms: list[Form]) -> int:
    return min((_rank(_as_record(item), forms) for item in items[:_PROBED]), default=len(forms))


def _as_record(value: Any) -> Any:
    return {"messages": value} if isinstance(value, list) else value
