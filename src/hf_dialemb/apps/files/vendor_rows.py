"""Forms as data: ``vendors.toml`` says where each system's JSON has its conversations.

What a row does not say is as in its ``defaults``.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from .field_paths import Record, items_at, value_at, values_at
from .form import Form, Message, meets, table_of

Read = Callable[[Record], list[Any]]
Row = Mapping[str, Any]
_OF_FORMS = ("name", "vendor", "export", "id", "began", "mail", "pause", "whole")
_DOCUMENTED = ("dialogue", "speakers", "left_out")


def forms_of(family: str, *functions: Read) -> tuple[Form, ...]:
    """Return the forms of a family of rows.

    A row's ``read`` names a function, without its underscore.
    """
    reads = {function.__name__.removeprefix("_"): function for function in functions}
    table = table_of("vendors.toml")
    rows: list[Row] = [{**table["defaults"], **row} for row in table[family]]
    return tuple(
        Form(
            **{field: row[field] for field in (*_OF_FORMS, *_DOCUMENTED)},
            messages=partial(_messages, row, reads.get(row["read"])),
            fields=row["has"],
            metadata=row["metadata"] if row["start"] else row["common"] | row["metadata"],
            has_groups=True,
            joins=bool(row["start"]),
        )
        for row in rows
    )


def _messages(row: Row, read: Read | None, record: Record) -> Iterator[Message]:
    """Yield the messages of a record; one alone in its group has none where pauses count."""
    items = read(record) if read else items_at(record, row["messages"])
    keys = [str(value_at(item, row["group"]) or "") for item in items]
    sizes = Counter(keys)
    for key, item in zip(keys, items, strict=True):
        if isinstance(item, Mapping):
            is_alone = row["pause"] and sizes[key] == 1
            yield _message(row, item) | {"group": "" if is_alone else key}
        else:
            yield {"left_out": "a message that is no object"}


def _message(row: Row, item: Record) -> Message:
    if meets(item, row["hidden"]):
        return {"left_out": "a private note"}
    for field, values in row["kinds"].items():
        kind = value_at(item, field)
        if kind is not None and str(kind) not in values:
            return {"left_out": f"a message whose {field} is {str(kind)[:40]!r}"}
    speaker = value_at(item, row["speaker"])
    text = _text(item, row["text"])
    content = text or _text(item, row["markup"])
    if not row["start"] and content and not isinstance(speaker, str | int):
        return {"left_out": "a message without a speaker"}
    message = {
        "role": row["roles"].get(str(speaker).lower(), str(speaker)),
        "content": content,
        "markup": not text,
        "name": "",
    }
    message |= {key: item[key] for key in ("intents", "slots", "noted") if item.get(key)}
    if row["start"]:
        message |= {key: value_at(item, row[key]) for key in ("speaker", "channel", "start")}
    for key, path in (("name", row["called"]), ("time", row["time"])):
        value = value_at(item, path)
        if isinstance(value, str | int | float):
            message[key] = value
    return message


def _text(item: Record, path: str) -> str:
    """Return what lies at a path as text: a string, several, or the texts of parts."""
    return " ".join(_joined(value) for value in values_at(item, path))


def _joined(value: Any) -> str:
    if isinstance(value, list):
        parts = [
            _joined(value_at(part, "text value") if isinstance(part, Mapping) else part)
            for part in value
        ]
        return ("" if any(isinstance(part, Mapping) for part in value) else " ").join(parts)
    return value if isinstance(value, str) else ""
