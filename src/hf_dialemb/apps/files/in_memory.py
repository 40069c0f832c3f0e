"""Objects in memory and rows on the Hub, in any form in which people have their conversations."""

from collections.abc import Iterator
from functools import partial
from itertools import chain, islice
from typing import Any

from ...data.conversations import conversation_fault
from ...data.hub_dataset import hub_rows
from ...data.reading_options import ReadingOptions
from ...dialogue import Dialogue
from ...errors import InputError
from .findings import Finding, Notes, dialogues, distinct, from_drafts, with_remarks
from .record_dialogues import RecordDrafts
from .record_files import find_in_records

_SURVEYED = 1000  # rows that decide who speaks, and how times are written


def read_objects(
    items: list[Any], options: ReadingOptions, *, rows: bool, strict: bool
) -> list[Dialogue]:
    """Read dialogues in memory, or the rows of a table; if ``strict``, leave none out."""
    notes, place = Notes(options), "dialogues"
    records = [
        (f"dialogues[{number}]", item if rows else _record(item))
        for number, item in enumerate(items)
    ]
    findings = find_in_records(partial(iter, records), "the table", notes) if records else ()
    return list(dialogues(with_remarks(findings, notes, place), place, notes, strict=strict))


def read_rows(identifier: str, split: str, options: ReadingOptions) -> Iterator[Dialogue]:
    """Read the dialogues of a dataset on the Hub as a stream, without a copy of it."""
    notes = Notes(options)
    return dialogues(find_in_hub_dataset(identifier, split, notes), identifier, notes)


def find_in_hub_dataset(identifier: str, split: str, notes: Notes) -> Iterator[Finding]:
    """Read a dataset on the Hub as `read_rows` does, malformed rows too."""
    rows = hub_rows(identifier, split, notes.options.revision, notes.options.token)
    first = list(islice(rows, _SURVEYED))  # a stream is read once: its first rows stand for all
    passes = chain([first, first, first], [chain(first, rows)])
    drafts = RecordDrafts(lambda: next(passes), identifier, {})
    if drafts.rows:
        raise InputError(
            f"{identifier}: got rows that are turns, expected a column with lists of messages; "
            "give the .parquet files of the dataset, or rename or convert yours"
        )
    findings = distinct(from_drafts(drafts, notes), identifier, "rows with messages", notes)
    return with_remarks(findings, notes, identifier)


def _record(item: Any) -> Any:
    """Return what `find_in_records` reads, or an `InputError` in its place."""
    if isinstance(item, Dialogue):
        return item.to_json()
    fault = conversation_fault(item)
    return InputError(fault) if fault else item
