"""Values of JSON as they are meant: JSON in texts, dotted names, columns, pairs and maps."""

import ast
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date
from typing import Any

from .columns import name_rank, word_list

Record = Mapping[str, Any]
_DEEPEST = 5  # objects in objects
# lists whose first item counts
_FIRST = {"alternatives", "nBest", "candidates", "users", "senders", "authors"}
_LONGEST = 1 << 20  # characters of JSON in a text
_ASKED = word_list("asked")
_ANSWERED = word_list("answered")
_DOTTED = re.compile(r"[A-Za-z_][\w-]*(\.[\w-]+)+")


def opened(value: Any) -> Any:
    """Return a value with its JSON read, its dotted names nested and its columns as rows."""
    if isinstance(value, str) and value[:1] in ("{", "[") and 1 < len(value) < _LONGEST:
        inner = parsed(value)
        return opened(inner) if isinstance(inner, Mapping | list) else value
    if isinstance(value, list) and value and all(map(_is_attribute, value)):
        value = {str(item["key"]): next(iter(item["value"].values()), None) for item in value}
    if isinstance(value, date):
        return value.isoformat()
    if not isinstance(value, Mapping):
        return value
    dotted = [inner for name, inner in value.items() if _DOTTED.fullmatch(str(name))]
    if dotted and not all(isinstance(inner, Mapping) for inner in dotted):
        value = _nested(value)
    is_constructor = isinstance(value.get("kwargs"), Mapping) and isinstance(value.get("id"), list)
    if is_constructor and value["id"]:  # of LangChain
        kind = str(value["id"][-1]).removesuffix("Chunk").removesuffix("Message").lower()
        return {"type": kind, **value["kwargs"]}
    if _is_columns(value):
        return [dict(zip(value, row, strict=False)) for row in zip(*value.values(), strict=False)]
    if _is_map(value):
        inner = (at if isinstance(at, Mapping) else {"messages": at} for at in value.values())
        return [{"id": name, **item} for name, item in zip(value, inner, strict=True)]
    return value


def _is_attribute(item: Any) -> bool:
    """Return whether an object is an attribute of OpenTelemetry: a name, and a typed value."""
    is_pair = isinstance(item, Mapping) and item.keys() == {"key", "value"}
    return is_pair and isinstance(item["value"], Mapping)


def parsed(text: str) -> Any:
    """Return what a text of JSON, or of a value of Python, stands for; None if it is neither."""
    for parse in (json.loads, ast.literal_eval):
        with suppress(MemoryError, RecursionError, SyntaxError, ValueError, TypeError):
            return parse(text)
    return None


def _nested(value: Record) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for name, inner in value.items():
        *outer, last = str(name).split(".")
        place = nested
        for step in outer:
            if not isinstance(place.get(step), dict):
                place[step] = {}
            place = place[step]
        place[last] = inner
    return nested


def _is_columns(value: Record) -> bool:
    columns = list(value.values())
    if len(columns) < 2 or not all(isinstance(column, list) for column in columns):
        return False
    scalars = [c for c in columns if c and all(isinstance(cell, str | int | float) for cell in c)]
    return len(scalars) > 1 and len({len(column) for column in columns}) == 1


def _is_map(value: Record) -> bool:
    """Return whether ids lead to lists, or to objects that are alike."""
    items = list(value.values())[:20]
    are_ids = 2 * sum(bool(re.search(r"[\d@]", str(name))) for name in value) >= len(value)
    if not items or all(isinstance(item, list) for item in items):
        return are_ids and bool(items)
    if not all(isinstance(item, Mapping) for item in items) or pair_of(value):
        return False
    is_held = any(isinstance(inner, list | Mapping) for inner in items[0].values())
    if not are_ids and (len(items) < 2 or not is_held):
        return False
    shared = set(items[0])
    return all(2 * len(shared & item.keys()) >= max(len(shared), len(item), 1) for item in items)


def pair_of(value: Record) -> tuple[str, ...]:
    """Return the names of what a person asks and of what is answered, if an object has both."""
    names = {name: at for name, at in value.items() if isinstance(at, str | list | Mapping) and at}
    lower = {re.sub(r"BodyJson$", "", str(name)): name for name in names}
    asked = next((lower[name] for name in _ASKED if name in lower), None)
    answered = next((lower[name] for name in _ANSWERED if name in lower), None)
    if asked is None or answered is None:
        return ()
    sides = [value[asked], value[answered]]
    is_said = all(_holds(side) for side in sides if isinstance(side, Mapping))
    return (asked, answered) if is_said else ()


def _holds(value: Record) -> bool:
    """Return whether an object of a pair may hold what is said, and is no description."""
    return any(
        isinstance(inner, list | Mapping)
        or name_rank("content", str(name)) is not None
        or str(name) in (*_ASKED, *_ANSWERED)
        for name, inner in value.items()
    )


def plain(value: Record) -> Record:
    """Return an object whose inner objects are opened too."""
    return {
        name: inner if name == "content" and isinstance(inner, str) else opened(inner)
        for name, inner in value.items()
    }


def flattened(item: Record, depth: int = _DEEPEST, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the fields of an object and of the objects in it, with their paths."""
    for name, value in item.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping) and str(next(iter(value), "")).startswith("$"):
            value = next(iter(value.values()))
        if name in _FIRST and isinstance(value, list) and value and isinstance(value[0], Mapping):
            value = value[0]
        if depth and isinstance(value, Mapping) and not _is_whole(str(name), value):
            yield from flattened(value, depth - 1, f"{path}/")
        else:
            yield path, value


def _is_whole(name: str, value: Record) -> bool:
    """Return whether an object is a map of messages, or the content of a message in parts."""
    if any(map(str.isdigit, str(next(iter(value), "")))):
        return all(isinstance(inner, Mapping) for inner in value.values())
    is_part = not value.keys().isdisjoint(("type", "content_type", "parts", "text", "name"))
    return name in ("content", "parts") and "role" not in value and is_part
