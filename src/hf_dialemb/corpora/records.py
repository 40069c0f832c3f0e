"""From raw records to dialogues: the one place that names, refuses or skips a malformed record, for every reader."""

from __future__ import annotations

import hashlib
import logging
import reprlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from ..models.errors import InputError
from .show import visible

Raw = TypeVar("Raw")
Item = TypeVar("Item")
Value = TypeVar("Value")
Converted = TypeVar("Converted")

_logger = logging.getLogger(__name__)
_LISTED = 100
_LONGEST_SENTENCE = 1000


def convert_records(
    records: Iterable[tuple[str, Raw]], convert: Callable[[Raw], Item], *, skip_invalid: bool = False
) -> Iterator[Item]:
    """Converts raw records, one by one.

    Args:
        records: Pairs of a place, such as ``"train.json: record 3"``, and what was found there.
        convert: Makes the dialogue, or whatever has an ``id``; raises `InputError` for a malformed record.
        skip_invalid: Leave malformed records out and log one warning that counts and lists them, instead of raising.

    Yields:
        What was made, in the order of the records.

    Raises:
        InputError: A record is malformed, or its id was used before; the sentence names the place and the field.
    """
    seen: set[int] = set()  # hashes, since the ids and places of a large corpus take more memory than is due
    skipped: list[str] = []
    count = 0
    for place, raw in records:
        try:
            item = convert(raw)
            identifier = getattr(item, "id", "")
            if identifier and hash(identifier) in seen:
                raise InputError(
                    f"field id: got {identifier!r}, which an earlier record has too; give each dialogue its own id"
                )
        except InputError as error:
            sentence = _shortened(visible(f"{place}: {error}"))
            if not skip_invalid:
                raise InputError(sentence) from None
            count += 1
            if count <= _LISTED:
                skipped.append(sentence)
            continue
        if identifier:
            seen.add(hash(identifier))
        yield item
    if count:
        more = [f"and {count - _LISTED:,} more"] if count > _LISTED else []
        _logger.warning("Skipped %d malformed record(s):\n  %s", count, "\n  ".join(skipped + more))


def _shortened(sentence: str) -> str:
    half = _LONGEST_SENTENCE // 2
    return sentence if len(sentence) <= _LONGEST_SENTENCE else f"{sentence[:half]} ... {sentence[-half:]}"


def field(record: Any, name: str, kind: type[Value]) -> Value:  # noqa: ANN401 - whatever the file holds
    """Takes one field of a raw record.

    Args:
        record: The record, which should be a dict.
        name: The field's name.
        kind: The type that the field's value should have.

    Returns:
        The field's value.

    Raises:
        InputError: The record is no dict, or the field is missing or of another type.
    """
    if not isinstance(record, dict):
        raise InputError(f"got {type(record).__name__}, expected an object with the field {name}; repair the file")
    value = record.get(name)
    if isinstance(value, kind):
        return value
    got = type(value).__name__ if name in record else "nothing"
    raise InputError(f"field {name}: got {got}, expected {kind.__name__}; repair the record or skip invalid records")


def names(record: Any, name: str) -> tuple[str, ...]:  # noqa: ANN401
    """Takes one field of a raw record that should be a list of strings.

    Args:
        record: The record, which should be a dict.
        name: The field's name.

    Returns:
        The strings.

    Raises:
        InputError: The field is missing or is no list of strings.
    """
    values = field(record, name, list)
    for value in values:
        if not isinstance(value, str):
            raise InputError(
                f"field {name}: got {reprlib.repr(value)} in the list, expected strings; repair the record"
            )
    return tuple(values)


def strings(value: Any, count: int) -> tuple[str, ...]:  # noqa: ANN401
    """Takes a value that should be a list of so many strings, such as a pair of speaker and text.

    Args:
        value: The value.
        count: How many.

    Returns:
        The strings.

    Raises:
        InputError: It is anything else.
    """
    if not isinstance(value, list) or len(value) != count or not all(isinstance(part, str) for part in value):
        raise InputError(f"got {reprlib.repr(value)}, expected a list of {count} strings; repair the record")
    return tuple(value)


def one_of(record: Any, name: str, known: Iterable[str]) -> str:  # noqa: ANN401
    """Takes one field of a raw record that should be one of a few strings, such as the names of the speakers.

    Args:
        record: The record, which should be a dict.
        name: The field's name.
        known: The strings.

    Returns:
        The string.

    Raises:
        InputError: The field is missing or is none of them.
    """
    value = field(record, name, str)
    if value not in known:
        raise InputError(f"field {name}: got {reprlib.repr(value)}, expected {' or '.join(known)}; repair the record")
    return value


def convert_each(items: Sequence[Raw], name: str, convert: Callable[[Raw], Converted]) -> tuple[Converted, ...]:
    """Converts the elements of a list, so that an error names the element.

    Args:
        items: The elements.
        name: What the list is called, such as ``"turns"``.
        convert: Makes one result; raises `InputError` for a malformed element.

    Returns:
        The results, in order.

    Raises:
        InputError: An element is malformed.
    """
    results = []
    for index, item in enumerate(items):
        try:
            results.append(convert(item))
        except InputError as error:
            raise InputError(f"{name}[{index}]: {error}") from None
    return tuple(results)


def hashed_split(identifier: str) -> str:
    """Assigns a dialogue of a corpus without official splits to train (80 %), dev (10 %) or test (10 %).

    Args:
        identifier: The dialogue's id: what decides, so that the rest of the corpus does not matter.

    Returns:
        ``"train"``, ``"dev"`` or ``"test"``.
    """
    part = int.from_bytes(hashlib.blake2b(identifier.encode("utf-8", "replace"), digest_size=8).digest(), "big") % 10
    return {8: "dev", 9: "test"}.get(part, "train")
