"""From raw records to dialogues.

Malformed records of all readers are named, and refused or left out here.
"""

import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, TypeVar

from ..display import visible
from ..errors import InputError

Raw = Any  # of a file
Slots = tuple[tuple[str, str], ...]  # names and values

Item = TypeVar("Item")
Value = TypeVar("Value")

MISFORMED = (ValueError, TypeError, AttributeError, LookupError)
"""What readers raise at a record of another form; `InputError` is a `ValueError`."""

_logger = logging.getLogger(__name__)
_NAMED = 3  # malformed items
_MOST = 0.2  # share of malformed items
_LONGEST_SENTENCE = 1000


def convert_records(
    records: Iterable[tuple[str, Raw]], convert: Callable[..., Item]
) -> Iterator[Item | InputError]:
    """Convert raw records one by one.

    They are pairs of a place, such as ``"train.json: record 3"``, and the record, or a tuple of the
    record and what stands beside it, such as its id. A record is malformed if ``convert`` raises an
    `InputError` or finds no such field, or if its id was used before. An error that names the place
    stands for it.
    """
    seen: set[int] = set()  # hashes: the ids of a large corpus take much memory
    for place, raw in records:
        try:
            item = convert(*raw) if isinstance(raw, tuple) else convert(raw)
            identifier = getattr(item, "id", "")
            key = hash(identifier)
            if identifier and key in seen:
                raise InputError(
                    f"field id: got {identifier!r}, which an earlier record has too; give each "
                    "dialogue its own id"
                )
        except MISFORMED as error:
            yield InputError(f"{place}: {fault_of(error)}")
        else:
            seen.add(key)
            yield item


def readable(
    items: Iterable[Item | InputError],
    place: str,
    form: Callable[[], str] = str,
    *,
    strict: bool,
    silent: bool = False,
    empty: InputError | None = None,
) -> Iterator[Item]:
    """Pass on what could be read; what could not is left out, counted and named in one warning.

    One malformed item never stops the others. Several are an error if they are more than a fifth of
    all; it names the ``form`` that was assumed. If ``strict``, the first one is an error.
    Without any item, ``empty`` is.
    """
    malformed: list[str] = []
    count = 0
    total = 0
    for item in items:
        total += 1
        if not isinstance(item, InputError):
            yield item
            continue
        sentence = shortened(visible(str(item)), _LONGEST_SENTENCE)
        if strict:
            raise InputError(sentence)
        count += 1
        if count <= _NAMED:
            malformed.append(sentence)
    if empty and not total:
        raise empty
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
        named = "\n  ".join(malformed + (["..."] if count > _NAMED else []))
        _logger.warning(
            "%s: left out %s of %s, which cannot be read:\n  %s",
            place,
            f"{count:,}",
            f"{total:,}",
            named,
        )


def fault_of(error: Exception) -> str:
    """Say what is wrong with a record or a file of a corpus."""
    if isinstance(error, InputError):
        return str(error)
    kind = type(error).__name__
    return f"got another form than expected ({kind}: {error}); repair it, or get the file again"


def shortened(sentence: str, longest: int) -> str:
    """Cut the middle out of a sentence that is too long."""
    return (
        sentence
        if len(sentence) <= longest
        else f"{sentence[: longest // 2]} ... {sentence[-longest // 2 :]}"
    )


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
