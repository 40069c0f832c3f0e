"""Forms of records that only the papers' corpora have: lines side by side, rows in groups."""

from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, zip_longest
from typing import Any

from ...data.corpus import Reading, Records, Source
from ...data.parsing import GET_AGAIN
from ...data.raw_records import Raw, Slots, hashed_split
from ...dialogue import Turn
from ...errors import InputError

Label = tuple[str, str, str]  # act, slot and value

USER_AND_SYSTEM = {"user": "user", "system": "assistant"}
"""The roles of speakers, as many corpora name them."""


def text_lines(source: Source, pattern: str) -> Iterator[tuple[str, str]]:
    """Read text files line by line, blank lines too."""
    for name, stream in source.files(pattern):
        for number, line in enumerate(stream, start=1):
            text = line.removeprefix(BOM_UTF8) if number == 1 else line
            try:
                yield f"{name}:{number}", text.decode("utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise InputError(
                    f"{name}:{number}: broken UTF-8 at byte {error.start}; {GET_AGAIN}"
                ) from None


def parallel_lines(
    source: Source, patterns: Sequence[str]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Read text files whose lines of the same number belong together."""
    for lines in zip_longest(*(text_lines(source, pattern) for pattern in patterns)):
        if None in lines:
            place = next(line[0] for line in lines if line is not None)
            raise InputError(
                f"{place}: {patterns[lines.index(None)]} has no such line; get the files again"
            )
        yield lines[0][0], tuple(text for _, text in lines)


def out_of_all(
    read: Callable[..., Records], pattern: str, split_of: Callable[[Any], str]
) -> Reading:
    """Read files that hold every split; a malformed record without a split, "", is part of each."""
    return lambda source, split: (
        record for record in read(source, pattern) if split_of(record[1]) in (split, "")
    )


def hashed_by(name: str) -> Callable[[Any], str]:
    """Choose the split by a hash of the field that is the id, where there is no official split."""
    return lambda raw: hashed_split(str(raw.get(name)) if isinstance(raw, dict) else "")


def named_by(name: str, splits: Mapping[str, str]) -> Callable[[Any], str]:
    """Choose the split by a field that names it in other words."""
    return lambda raw: splits[raw[name]]


def without_empty(name: str, records: Reading) -> Reading:
    """Leave out the records whose list of turns, the field ``name``, is empty."""
    return lambda source, split: (
        record
        for record in records(source, split)
        if not isinstance(record[1], dict) or record[1].get(name) != []
    )


def grouped(rows: Iterable[tuple[str, Any]], key: Callable[[tuple[str, Any]], Any]) -> Records:
    """Put successive rows of the same key together; the place is that of the first."""
    for _, group in groupby(rows, key):
        placed = list(group)
        yield placed[0][0], [row for _, row in placed]


def labelled(role: str, text: str, labels: Iterable[Label]) -> Turn:
    """Make a turn with labels; a label without a slot is left out."""
    named = [label for label in labels if label[1]]
    slots = tuple((slot.lower(), value) for _, slot, value in named)
    return Turn(role, text, tuple(dict.fromkeys(act for act, _, _ in named)), slots)


def marked(utterance: Raw) -> Slots:
    """Return the slots of an utterance: stretches of its ``tokens``."""
    spans = utterance["slots"]
    tokens = tuple(utterance["tokens"]) if spans else ()
    slots = []
    for span in spans:
        slot = span["slot"]
        start = span["start"]
        end = span["exclusive_end"]
        slots.append((slot.lower(), " ".join(tokens[start:end])))
    return tuple(slots)
