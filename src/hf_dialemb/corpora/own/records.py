"""Files of records, such as JSON and Parquet: each is a conversation of some form, or a row of a table."""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from .columns import parse_columns
from .findings import Finding, Notes, from_drafts
from .forms import RecordDrafts, Records
from .tables import Row, find_in_table, rows_of
from .workbook import is_flat, parquet_rows


def find_in_records(read: Records, name: str, notes: Notes) -> Iterator[Finding]:
    """Read conversations of any known form; the file's form is that of most of its records.

    Records without messages are the rows of a table; ``name`` is its place.
    """
    drafts = RecordDrafts(read, notes.options.columns)
    if not drafts.header:
        yield from from_drafts(drafts, notes)
        return

    def rows(_: Notes) -> Iterator[Row]:
        cells = ([record.get(field) for field in drafts.header] for record in drafts.rows())
        return iter(rows_of(drafts.header, cells))

    yield from find_in_table(rows, name, parse_columns(notes.options.columns), notes)


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
