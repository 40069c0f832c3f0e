"""Paths into the values of JSON.

``author/name`` leads through objects, and through lists to all of their items. A step is the name
of a field, names with ``|`` between them (the first that leads on), ``*`` for the items of a list
or the values of an object, a number for one item of a list, or ``$`` for a text. Several paths
stand apart by spaces: the first that leads to something counts.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

Record = Mapping[str, Any]
Steps = tuple[tuple[str, ...], ...]

_PROBED = 20  # items of a list that show what it is a list of
_EMPTY = object()  # stands for the items of an empty list


def has(value: Any, paths: str) -> bool:
    """Return whether a path leads to something; in an empty list nothing is missing."""
    walks = (_walk(value, steps, _PROBED) for steps in _steps(paths))
    return any(next(walk, None) is not None for walk in walks)


def values_at(value: Any, paths: str) -> list[Any]:
    """Return all that the first path leads to, without what is empty."""
    for steps in _steps(paths):
        if values := [inner for inner in _walk(value, steps) if inner is not _EMPTY]:
            return values
    return []


def value_at(value: Any, paths: str) -> Any:
    """Return the first value that a path leads to, or None."""
    for steps in _steps(paths):
        for inner in _walk(value, steps):
            if inner is not _EMPTY:
                return inner
    return None


def items_at(value: Any, paths: str) -> list[Any]:
    """Return all that the first path leads to, and of lists their items."""
    items: list[Any] = []
    for inner in values_at(value, paths):
        items += inner if isinstance(inner, list) else [inner]
    return items


def objects(value: Any) -> list[Record]:
    """Return the objects in a list, or in lists in it."""
    inner: list[Record] = []
    for item in value if isinstance(value, list) else ():
        inner += [item] if isinstance(item, Mapping) else objects(item)
    return inner


def rows_in(value: Any) -> list[Any]:
    """Return the items of a list, or the rows of an object that has a list for each field."""
    if isinstance(value, list):
        return value
    columns = list(value.values()) if isinstance(value, Mapping) else []
    if columns and all(isinstance(column, list) for column in columns):
        return [dict(zip(value, row, strict=True)) for row in zip(*columns, strict=True)]
    return columns


@cache
def _steps(paths: str) -> tuple[Steps, ...]:
    return tuple(
        tuple(tuple(step.split("|")) for step in path.split("/")) for path in paths.split()
    )


def _walk(value: Any, steps: Steps, most: int | None = None) -> Iterator[Any]:
    if not steps:
        if value is not None and value not in ("", []):
            yield value
        return
    names, rest = steps[0], steps[1:]
    if names == ("$",):
        yield from (value,) if isinstance(value, str) else ()
    elif names == ("*",):
        if value == []:
            yield _EMPTY
        for item in rows_in(value)[:most]:
            yield from _walk(item, rest, most)
    elif isinstance(value, list):
        yield from _walk_list(value, steps, most)
    else:
        yield from _first(value, names, rest, most)


def _walk_list(items: list[Any], steps: Steps, most: int | None) -> Iterator[Any]:
    step = steps[0][0]
    if step.isdecimal():
        place = int(step)
        for item in items[place : place + 1]:
            yield from _walk(item, steps[1:], most)
    elif attributes := _attributes(items):
        yield from _first(attributes, steps[0], steps[1:], most)
    else:
        for item in items[:most]:
            yield from _walk(item, steps, most)


def _first(fields: Any, names: tuple[str, ...], rest: Steps, most: int | None) -> Iterator[Any]:
    for name in names if isinstance(fields, Mapping) else ():
        if inner := list(_walk(fields.get(name), rest, most)):
            yield from inner
            return


def _attributes(items: list[Any]) -> Record:
    """Return OpenTelemetry's list of keys and values as an object."""
    pairs = [item for item in items[:1] if isinstance(item, Mapping) and "key" in item]
    if not pairs or not isinstance(pairs[0].get("value"), Mapping):
        return {}
    return {
        str(item.get("key")): next(iter(item["value"].values()), None) for item in objects(items)
    }
