"""From raw records to dialogues: the one place that names, refuses or skips a malformed record, for every reader."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from ..models.dialogue import Dialogue
from ..models.errors import InputError

Raw = TypeVar("Raw")
Value = TypeVar("Value")
Converted = TypeVar("Converted")

_logger = logging.getLogger(__name__)


def convert_records(
    records: Iterable[tuple[str, Raw]], convert: Callable[[Raw], Dialogue], *, skip_invalid: bool = False
) -> Iterator[Dialogue]:
    """Converts raw records, one by one.

    Args:
        records: Pairs of a place, such as ``"train.json: record 3"``, and what was found there.
        convert: Makes the dialogue; raises `InputError` for a malformed record.
        skip_invalid: Leave malformed records out and log one warning that counts them, instead of raising.

    Yields:
        The dialogues, in the order of the records.

    Raises:
        InputError: A record is malformed, or its id was used before; the sentence names the place and the field.
    """
    places: dict[str, str] = {}
    skipped, first = 0, ""
    for place, raw in records:
        try:
            dialogue = convert(raw)
            if dialogue.id in places:
                raise InputError(
                    f"field id: got {dialogue.id!r}, which {places[dialogue.id]} has too; give each dialogue its own id"
                )
        except InputError as error:
            sentence = f"{place}: {error}"
            if not skip_invalid:
                raise InputError(sentence) from None
            skipped, first = skipped + 1, first or sentence
            continue
        if dialogue.id:
            places[dialogue.id] = place
        yield dialogue
    if skipped:
        _logger.warning("Skipped %d malformed record(s); the first: %s", skipped, first)


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
            raise InputError(f"field {name}: got {value!r} in the list, expected strings; repair the record")
    return tuple(values)


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
