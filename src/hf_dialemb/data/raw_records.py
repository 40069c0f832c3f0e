"""From raw records to dialogues.

Malformed records of all readers are named, and refused or left out here.
"""

import hashlib
import logging
import reprlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any, TypeVar

from ..display import visible
from ..errors import InputError

Raw = Any  # of a file
Slots = tuple[tuple[str, str], ...]  # names and values
Label = tuple[str, str, str]  # act, slot and value

Item = TypeVar("Item")
Value = TypeVar("Value")

_logger = logging.getLogger(__name__)
_NAMED = 3  # malformed items
_MOST = 0.2  # share of malformed items
_LONGEST_SENTENCE = 1000


def convert_records(
    records: Iterable[tuple[str, Raw]], convert: Callable[..., Item]
) -> Iterator[Item | InputError]:
    """Convert raw records one by one, pairs of a place, such as ``"train.json.

    Record 3"``, and the record.

    A record is malformed if ``convert`` raises an `InputError`, or if its id was used before. An
    error that names the place stands for it.
    """
    seen: set[int] = set()  # hashes: the ids of a large corpus take much memory
    for place, raw in records:
        try:
            item = converted(raw, convert)
            identifier = getattr(item, "id", "")
            if identifier and hash(identifier) in seen:
                raise InputError(
                    f"field id: got {identifier!r}, which an earlier record has too; give each "
                    "dialogue its own id"
                )
        except InputError as error:
            yield InputError(f"{place}: {error}")
        else:
            seen.add(hash(identifier))
            yield item


def readable(
    items: Iterable[Item | InputError],
    place: str,
    form: Callable[[], str] = str,
    *,
    strict: bool,
    silent: bool = False,
) -> Iterator[Item]:
    """Pass on what could be read; what could not is left out, counted and named in one warning.

    One malformed item never stops the others. Several are an error if they are more than a fifth of
    all; it names the ``form`` that was assumed. If ``strict``, the first one is an error.
    """
    malformed, count, total = [], 0, 0
    for item in items:
        total += 1
        if not isinstance(item, InputError):
            yield item
            continue
        sentence = shortened(visible(str(item)), _LONGEST_SENTENCE)
        if strict:
            raise InputError(sentence)
        count += 1
        malformed += [sentence] * (count <= _NAMED)
    if count == total == 1:
        raise InputError(malformed[0])
    if count > 1 and count > total * _MOST:
        assumed = f" as {form()}" if form() else ""
        raise InputError(
            f"{place}: {count:,} of {total:,} cannot be read{assumed}, expected at most a fifth; "
            "the first is "
            f"{malformed[0]}"
        )
    if count and not silent:
        named = "\n  ".join(malformed + ["..."] * (count > _NAMED))
        _logger.warning(
            "%s: left out %s of %s, which cannot be read:\n  %s",
            place,
            f"{count:,}",
            f"{total:,}",
            named,
        )


def never_empty(items: Iterable[Item], error: InputError) -> Iterator[Item]:
    """Pass items on; raise the error if there is none."""
    empty = True
    for item in items:
        empty = False
        yield item
    if empty:
        raise error


def shortened(sentence: str, longest: int) -> str:
    """Cut the middle out of a sentence that is too long."""
    return (
        sentence
        if len(sentence) <= longest
        else f"{sentence[: longest // 2]} ... {sentence[-longest // 2 :]}"
    )


def converted(record: Raw, convert: Callable[..., Item]) -> Item:
    """Convert a record; a tuple holds several arguments.

    The record, and the id, split or role beside it.
    """
    return convert(*record) if isinstance(record, tuple) else convert(record)


def field(record: Raw, name: str, kind: type[Value]) -> Value:
    """Return a field of a raw record; raise `InputError` unless it has this type."""
    if not isinstance(record, dict):
        raise InputError(
            f"got {type(record).__name__}, expected an object with the field {name}; repair the "
            "file"
        )
    value = record.get(name)
    if isinstance(value, kind):
        return value
    got = type(value).__name__ if name in record else "nothing"
    raise InputError(f"field {name}: got {got}, expected {kind.__name__}; repair the record")


def optional(record: Raw, name: str, kind: type[Value]) -> Value:
    """Return a field as `field` does; a missing one is empty."""
    return field(record, name, kind) if name in record else kind()


def names(record: Raw, name: str) -> tuple[str, ...]:
    """Return a field of a raw record; raise `InputError` unless it is a list of strings."""
    values = field(record, name, list)
    for value in values:
        if not isinstance(value, str):
            got = reprlib.repr(value)
            raise InputError(
                f"field {name}: got {got} in the list, expected strings; repair the record"
            )
    return tuple(values)


def strings(value: Raw, count: int) -> tuple[str, ...]:
    """Return a list of ``count`` strings, such as speaker and text.

    Raise `InputError` for anything else.
    """
    if (
        not isinstance(value, list)
        or len(value) != count
        or not all(isinstance(part, str) for part in value)
    ):
        raise InputError(
            f"got {reprlib.repr(value)}, expected a list of {count} strings; repair the record"
        )
    return tuple(value)


def one_of(record: Raw, name: str, known: Iterable[str]) -> str:
    """Return a field of a raw record; raise `InputError` unless it is one of the known strings."""
    value = field(record, name, str)
    if value not in known:
        raise InputError(
            f"field {name}: got {reprlib.repr(value)}, expected {' or '.join(known)}; repair the "
            "record"
        )
    return value


@contextmanager
def placed(place: str) -> Iterator[None]:
    """Put the place before the message of an `InputError`."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{place}: {error}") from None


def convert_each(items: Iterable[Raw], name: str, convert: Callable[..., Item]) -> tuple[Item, ...]:
    """Convert the elements of a list as `converted` does.

    An error names the list and the element.
    """
    results = []
    for index, item in enumerate(items):
        try:
            results.append(converted(item, convert))
        except InputError as error:  # as `placed` does, without its cost for every turn of a corpus
            raise InputError(f"{name}[{index}]: {error}") from None
    return tuple(results)


def each_of(record: Raw, name: str, convert: Callable[[Raw], Item]) -> tuple[Item, ...]:
    """Convert the elements of the list that is a field of a record."""
    return convert_each(field(record, name, list), name, convert)


def flattened(parts: Iterable[Iterable[Item]]) -> tuple[Item, ...]:
    """Return the elements of all parts."""
    return tuple(chain.from_iterable(parts))


def distinct(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names in lower case, without repetitions."""
    return tuple(dict.fromkeys(name.lower() for name in names))


def hashed_split(identifier: str, parts: int = 10) -> str:
    """Return the split of an id where there is no official one.

    Of 10 parts, train has 8, dev one and test one.
    """
    part = (
        int.from_bytes(
            hashlib.blake2b(identifier.encode("utf-8", "replace"), digest_size=8).digest(), "big"
        )
        % parts
    )
    return {parts - 2: "dev", parts - 1: "test"}.get(part, "train")
