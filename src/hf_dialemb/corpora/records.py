"""From raw records to dialogues: the one place that names, refuses or skips a malformed record, for every reader."""

import hashlib
import logging
import reprlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, TypeVar

from ..dialogue import Turn
from ..drawing import visible
from ..errors import InputError

Raw = Any  # what a file holds, whatever that is
Slots = tuple[tuple[str, str], ...]  # names and values
Label = tuple[str, str, str]  # act, slot and value

Item = TypeVar("Item")
Value = TypeVar("Value")

_logger = logging.getLogger(__name__)
_LISTED = 100
_LONGEST_SENTENCE = 1000


def convert_records(
    records: Iterable[tuple[str, Raw]], convert: Callable[..., Item], *, skip_invalid: bool = False
) -> Iterator[Item]:
    """Converts raw records one by one, each a pair of a place, such as ``"train.json: record 3"``, and what is there.

    A record is malformed where ``convert`` raises an `InputError`, or where its id was used before. The sentence names
    the place; with ``skip_invalid`` one warning counts and lists them instead.
    """
    seen: set[int] = set()  # hashes, since the ids and places of a large corpus take more memory than is due
    skipped: list[str] = []
    count = 0
    for place, raw in records:
        try:
            item = converted(raw, convert)
            identifier = getattr(item, "id", "")
            if identifier and hash(identifier) in seen:
                raise InputError(
                    f"field id: got {identifier!r}, which an earlier record has too; give each dialogue its own id"
                )
        except InputError as error:
            sentence = shortened(visible(f"{place}: {error}"), _LONGEST_SENTENCE)
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


def never_empty(items: Iterable[Item], error: InputError) -> Iterator[Item]:
    """Passes items on; raises the error where there is none."""
    empty = True
    for item in items:
        empty = False
        yield item
    if empty:
        raise error


def shortened(sentence: str, longest: int) -> str:
    """Cuts what is too long out of the middle of a sentence."""
    return sentence if len(sentence) <= longest else f"{sentence[: longest // 2]} ... {sentence[-longest // 2 :]}"


def converted(record: Raw, convert: Callable[..., Item]) -> Item:
    """Converts a record; a tuple holds several arguments: what the file holds, and the id, split or role beside it."""
    return convert(*record) if isinstance(record, tuple) else convert(record)


def field(record: Raw, name: str, kind: type[Value]) -> Value:
    """Takes one field of a raw record; raises `InputError` unless that is a dict with such a value."""
    if not isinstance(record, dict):
        raise InputError(f"got {type(record).__name__}, expected an object with the field {name}; repair the file")
    value = record.get(name)
    if isinstance(value, kind):
        return value
    got = type(value).__name__ if name in record else "nothing"
    raise InputError(f"field {name}: got {got}, expected {kind.__name__}; repair the record or skip invalid records")


def optional(record: Raw, name: str, kind: type[Value]) -> Value:
    """Takes one field as `field` does; one that is missing counts as empty."""
    return field(record, name, kind) if name in record else kind()


def names(record: Raw, name: str) -> tuple[str, ...]:
    """Takes one field of a raw record; raises `InputError` unless it is a list of strings."""
    values = field(record, name, list)
    for value in values:
        if not isinstance(value, str):
            got = reprlib.repr(value)
            raise InputError(f"field {name}: got {got} in the list, expected strings; repair the record")
    return tuple(values)


def strings(value: Raw, count: int) -> tuple[str, ...]:
    """Takes a list of so many strings, such as a pair of speaker and text; raises `InputError` for anything else."""
    if not isinstance(value, list) or len(value) != count or not all(isinstance(part, str) for part in value):
        raise InputError(f"got {reprlib.repr(value)}, expected a list of {count} strings; repair the record")
    return tuple(value)


def one_of(record: Raw, name: str, known: Iterable[str]) -> str:
    """Takes one field of a raw record; raises `InputError` unless it is one of a few known strings."""
    value = field(record, name, str)
    if value not in known:
        raise InputError(f"field {name}: got {reprlib.repr(value)}, expected {' or '.join(known)}; repair the record")
    return value


def convert_each(items: Iterable[Raw], name: str, convert: Callable[..., Item]) -> tuple[Item, ...]:
    """Converts the elements of a list as `converted` does, so that an error names the list and the element."""
    results = []
    for index, item in enumerate(items):
        try:
            results.append(converted(item, convert))
        except InputError as error:
            raise InputError(f"{name}[{index}]: {error}") from None
    return tuple(results)


def each_of(record: Raw, name: str, convert: Callable[[Raw], Item]) -> tuple[Item, ...]:
    """Converts the elements of a list, the field `name` of a record."""
    return convert_each(field(record, name, list), name, convert)


def flattened(parts: Iterable[Iterable[Item]]) -> tuple[Item, ...]:
    """The elements of all parts, where what was converted gave none, one or several."""
    return tuple(chain.from_iterable(parts))


def distinct(names: Iterable[str]) -> tuple[str, ...]:
    """Names in lower case, each once."""
    return tuple(dict.fromkeys(name.lower() for name in names))


def labelled(role: str, text: str, labels: Iterable[Label]) -> Turn:
    """Makes a turn of labels; one without a slot says nothing of any slot and is left out."""
    named = [label for label in labels if label[1]]
    slots = tuple((slot.lower(), value) for _, slot, value in named)
    return Turn(role, text, tuple(dict.fromkeys(act for act, _, _ in named)), slots)


def marked(utterance: Raw) -> Slots:
    """Reads the slots of an utterance: stretches of its ``tokens``."""
    spans = field(utterance, "slots", list)
    tokens = names(utterance, "tokens") if spans else ()
    slots = []
    for span in spans:
        slot, start, end = field(span, "slot", str), field(span, "start", int), field(span, "exclusive_end", int)
        slots.append((slot.lower(), " ".join(tokens[start:end])))
    return tuple(slots)


def hashed_split(identifier: str) -> str:
    """Assigns a dialogue of a corpus without official splits to train (80 %), dev (10 %) or test (10 %), by its id."""
    part = int.from_bytes(hashlib.blake2b(identifier.encode("utf-8", "replace"), digest_size=8).digest(), "big") % 10
    return {8: "dev", 9: "test"}.get(part, "train")
