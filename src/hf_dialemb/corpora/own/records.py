"""Files of records, such as JSON and Parquet: each is a conversation of some form, or a row of a table."""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from ...dialogue import Dialogue
from ...errors import InputError
from .columns import parse_columns
from .findings import Finding, Notes, Problem, from_drafts, from_record
from .forms import RecordDrafts, Records
from .tables import Row, find_in_table, rows_of
from .workbook import is_flat, parquet_rows

WRITTEN = {"id", "messages", "domains", "time", "metadata"}
"""The fields of `Dialogue.to_json`."""


def find_in_records(read: Records, name: str, notes: Notes) -> Iterator[Finding]:
    """Read conversations of any known form; the file's form is that of most of its records.

    Records without messages are the rows of a table; ``name`` is its place. A file of nothing but what
    `Dialogue.to_json` gives is read as it stands.
    """
    options = notes.options
    if not (options.roles or options.gap or options.columns) and all(_is_written(record) for _, record in read()):
        yield from (from_record(place, record) for place, record in read())
        return
    drafts = RecordDrafts(read, notes.options.columns)
    if not drafts.header:
        yield from from_drafts(drafts, notes)
        return
    for place, record in drafts.records():
        if not isinstance(record, dict):
            fault = (
                str(record) if isinstance(record, InputError) else f"got {type(record).__name__}, expected an object"
            )
            yield Finding(place, problems=(Problem(place, fault),))

    def rows(_: Notes) -> Iterator[Row]:
        objects = (record for _, record in drafts.records() if isinstance(record, dict))
        rows = rows_of(drafts.header, ([record.get(field) for field in drafts.header] for record in objects))
        return (row._replace(line=max(1, row.line - 1)) for row in rows)  # the header has no line of its own

    yield from find_in_table(rows, name, parse_columns(notes.options.columns), notes)


def _is_written(record: Any) -> bool:  # noqa: ANN401
    """Return whether a record is a dialogue as `Dialogue.to_json` gives it, in order of time."""
    if not isinstance(record, dict) or not record.keys() <= WRITTEN:
        return False
    try:
        times = [turn.time for turn in Dialogue.from_json(record).turns if turn.time]
    except InputError:
        return False
    return times == sorted(times)


def find_in_parquet(path: Path, columns: Mapping[str, str], notes: Notes) -> Iterator[Finding]:
    """Read a file whose rows are conversations; without lists and objects, they are the rows of a table."""

    def records() -> Iterator[tuple[str, Any]]:
        return ((f"{path}: row {index}", row) for index, row in enumerate(parquet_rows(path)))

    if is_flat(path):
        yield from find_in_table(partial(_parquet_table, path), str(path), columns, notes)
    else:
        yield from find_in_records(records, str(path), notes)


def _parquet_table(path: Path, _: Notes) -> Iterator[Row]:
    rows = parquet_rows(path)
    first = next(rows, {})
    return rows_of(list(first), (row.values() for row in chain([first], rows)))
