"""What a form is: the fields by which its records are known, and how a record becomes messages.

A message has ``role`` (the speaker as in the file) and ``content``. It may have ``name``, ``time``
(as it is written), ``markup`` (True: HTML), ``dialogue_acts``, ``slots``, ``intents`` and
``place``. One with ``left_out`` is not read, but counted by this reason, such as "a private note".
Forms neither sort nor clean, and leave times and roles as they are.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .findings import Draft, Notes

Message = dict[str, Any]
Record = Mapping[str, Any]
RECORD, FOLDER, TABLE, TEXT = "record", "folder", "table", "text"
"""What a file of a form holds.

JSON records (in a list, one a line, or rows of Parquet), files, rows, or text.
"""


@dataclass(frozen=True, eq=False)
class Form:
    """A form in which people have their conversations."""

    name: str  # what people call it, such as ``"Intercom, API"``
    vendor: str = ""  # whose product gives it; empty if many do
    export: str = ""  # how to get such a file; a sentence
    # From a record to its messages; a LookupError, TypeError, ValueError or AttributeError says
    # that it is malformed.
    messages: Callable[[Record], Iterable[Message]] | None = None
    fields: Sequence[str] = ()  # paths (see `value_at`) that every record of the form has
    without: Sequence[str] = ()  # fields that no record of the form has
    accepts: Callable[[Any], bool] | None = (
        None  # what holds of a record of the form, if paths are not enough
    )
    drafts: Callable[[str, Any, Notes], Iterable[Draft]] | None = (
        None  # of a place and a record, without ``messages``
    )
    # paths to what records of one dialogue share, the first that is there
    group: Sequence[str] = ()
    goes_on: bool = (
        False  # whether a record without any of them goes on with the dialogue before it
    )
    id: Sequence[str] = ()  # paths to the dialogue's id, before the usual names
    used: Sequence[str] = ()  # other fields that are read, and so are no metadata
    dialogue: str = "a record"  # what a dialogue is
    speakers: str = ""  # who speaks
    left_out: str = ""  # what is left out and counted
    container: str = RECORD  # `RECORD`, or for the documents alone: `FOLDER`, `TABLE` or `TEXT`

    def has(self, record: Any) -> bool:
        """Return whether a record is of this form."""
        if not isinstance(record, dict) or not (self.fields or self.accepts):
            return False
        there = all(has(record, path) for path in self.fields) and not any(
            name in record for name in self.without
        )
        return there and (self.accepts is None or self.accepts(record))

    def resembles(self, record: Record) -> float:
        """Return the share of the form's fields whose names a record has, or an object in it."""
        steps = [
            set(step.split("|"))
            for path in self.fields
            for step in path.split("/")
            if step not in ("*", "$")
        ]
        inner = [
            item
            for value in record.values()
            for item in [value, *objects(value)]
            if isinstance(item, dict)
        ]
        names = {*record, *(name for item in inner for name in item)}
        return sum(bool(step & names) for step in steps) / max(1, len(steps))


def objects(value: Any) -> list[Record]:
    """Return the objects in a list, or in lists in it."""
    items = value if isinstance(value, list) else ()
    return [
        inner for item in items for inner in ([item] if isinstance(item, dict) else objects(item))
    ]


def forms_of(
    file: str,
    functions: Iterable[Callable[[Record], Any]],
    said_in: Callable[..., Callable[[Record], Iterable[Message]]],
    names: Mapping[str, str],
) -> tuple[Form, ...]:
    """Return the forms of a file of rows.

    ``read`` and ``accepts`` name functions, ``turns`` are for `said_in`.
    """
    text = Path(__file__).with_name(file).read_text(encoding="utf-8")
    rows = tomllib.loads(re.sub("|".join(names), lambda match: names[match[0]], text))["forms"]
    read = {function.__name__.removeprefix("_"): function for function in functions}
    pairs = (
        (row, read[row.pop("read")] if "read" in row else said_in(*row.pop("turns")))
        for row in rows
    )
    return tuple(
        Form(messages=messages, accepts=read.get(row.pop("accepts", "")), **row)
        for row, messages in pairs
    )


EMPTY = object()
"""Stands for the first item of an empty list."""


def has(value: Any, path: str) -> bool:
    """Return whether a value has a path; in an empty list nothing is missing."""
    return _at(value, _steps(path)) is not None


def value_at(record: Any, *paths: str) -> Any:
    """Return what the first path leads to that is there; None without any.

    Steps of a path stand between ``/``. A step is a field's name, several with ``|`` between them
    (the first that leads on), ``*`` for the first item of a list, or ``$`` for a text.
    """
    values = (_at(record, _steps(path)) for path in paths)
    return next((value for value in values if value is not None and value is not EMPTY), None)


@cache
def _steps(path: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(step.split("|")) for step in path.split("/"))


def _at(value: Any, steps: tuple[tuple[str, ...], ...]) -> Any:
    if not steps or value is EMPTY or value is None:
        return value
    if steps[0] == ("*",):
        return _at(_first_item(value), steps[1:])
    if steps[0] == ("$",):
        return value if isinstance(value, str) else None
    fields = (
        _attributes(value) if isinstance(value, list) else value if isinstance(value, dict) else {}
    )
    for name in steps[0]:
        if (inner := fields.get(name)) is not None and (inner := _at(inner, steps[1:])) is not None:
            return inner
    return None


def _first_item(value: Any) -> Any:
    """Return the first item of a list, or of lists in lists."""
    if (
        isinstance(value, dict)
        and value
        and all(isinstance(column, list) for column in value.values())
    ):
        # datasets' list of records
        return {name: column[0] for name, column in value.items() if column} or EMPTY
    if not isinstance(value, list):
        return None
    item = next((item for item in value if item is not None), EMPTY)
    return _first_item(item) if isinstance(item, list) else item


def _attributes(items: list[Any]) -> Record:
    """Return OpenTelemetry's list of keys and values as an object."""
    pairs = [
        item for item in items if isinstance(item, dict) and isinstance(item.get("value"), dict)
    ]
    return {str(item.get("key")): next(iter(item["value"].values()), None) for item in pairs}
