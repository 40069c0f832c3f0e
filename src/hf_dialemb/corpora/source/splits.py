"""The records of one split: out of files of its own, or out of files that hold every split."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from ..records import hashed_split
from .files import Source

Records = Iterator[tuple[str, Any]]
"""Pairs of a place, such as ``"train.json: record 3"``, and the raw record found there."""

Reading = Callable[[Source, str], Records]
"""What gives the records of a split."""

Files = Mapping[str, tuple[str, ...]]
"""From each split to patterns for the end of the paths of its files."""


def split_files(read: Callable[..., Records], files: Files, **options: Any) -> Reading:  # noqa: ANN401
    """Reads the files that each split has; where there are several patterns, the first."""
    return lambda source, split: read(source, files[split][0], **options)


def out_of_all(read: Callable[..., Records], pattern: str, split_of: Callable[[Any], str]) -> Reading:
    """Reads files that hold every split; a malformed record of no split, "", is told whichever split is read."""
    return lambda source, split: (each for each in read(source, pattern) if split_of(each[1]) in (split, ""))


def hashed_by(name: str) -> Callable[[Any], str]:
    """Lets a hash of the field that is the id decide, where there is no official split."""
    return lambda raw: hashed_split(str(raw.get(name)) if isinstance(raw, dict) else "")


def named_by(name: str, splits: Mapping[str, str]) -> Callable[[Any], str]:
    """Lets a field decide that says the split, in words of its own."""
    return lambda raw: splits.get(str(raw.get(name)), "") if isinstance(raw, dict) else ""


def with_split(records: Reading) -> Reading:
    """Puts the split before each record, where ids repeat between the splits."""
    return lambda source, split: ((place, (split, raw)) for place, raw in records(source, split))


def numbered(records: Reading) -> Reading:
    """Puts an id such as ``train/0`` before each record, where the files have none."""

    def named(source: Source, split: str) -> Records:
        for number, (place, raw) in enumerate(records(source, split)):
            yield place, (f"{split}/{number}", raw)

    return named


def grouped(rows: Iterable[tuple[str, Any]], key: Callable[[tuple[str, Any]], Any]) -> Records:
    """Puts rows together that follow each other and have one key; the place is that of the first."""
    for _, group in groupby(rows, key):
        placed = list(group)
        yield placed[0][0], [row for _, row in placed]
