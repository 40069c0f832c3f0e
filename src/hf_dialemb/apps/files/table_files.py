"""Tables in files: CSV and TSV, and the sheets of a workbook."""

import re
from collections.abc import Iterator
from functools import partial
from itertools import chain, combinations, islice
from pathlib import Path
from typing import Any

from ...errors import InputError, unknown_name
from .columns import is_number, parse_columns
from .findings import Draft, Finding, Notes, from_drafts
from .json_values import opened
from .record_dialogues import Read, RecordDrafts
from .row_groups import are_numbers, number_of
from .table_rows import records_of, sheet_rows, text_rows
from .text_encoding import encoding_of
from .workbook import Sheet, read_sheets

_SURVEYED = 200  # rows that show which columns hold numbers


def find_in_file(path: Path, notes: Notes) -> Iterator[Finding]:
    """Read a table in a file dialogue by dialogue, malformed ones too.

    The rows are read several times. Of a workbook, all sheets that have the same columns.
    """
    columns = parse_columns(notes.options.columns)
    numbered = any(map(is_number, columns.values()))
    if path.name.lower().endswith(".xlsx"):
        several = _chosen_sheets(path, notes, columns, numbered)
    else:
        read = partial(_file_records, path, encoding_of(path, notes), numbered)
        several = [table_drafts(read, str(path), columns)]

    def drafts(notes: Notes) -> Iterator[Draft]:
        return chain.from_iterable(table(notes) for table in several)

    for first, second in combinations(several, 2):
        shared = first.sizes.keys() & second.sizes.keys()
        first.clashing |= shared
        second.clashing |= shared
    yield from from_drafts(drafts, notes)
    for table in several:
        table.take_account(notes)


def table_drafts(read: Read, name: str, columns: dict[str, str], title: str = "") -> RecordDrafts:
    """Return what makes the dialogues of a table, whose cells may hold whole conversations."""
    drafts = RecordDrafts(read, name, columns, title)
    if drafts.rows:
        return drafts
    sample = [record for _, record in islice(read(), _SURVEYED)]
    numbers = {
        path
        for path in (sample[0] if sample else ())
        if are_numbers(row.get(path) for row in sample)
    }

    def records() -> Iterator[tuple[str, Any]]:
        for number, (place, row) in enumerate(read(), start=1):
            cells = {path: opened(cell) for path, cell in row.items()}
            cells |= {path: number_of(row[path]) for path in numbers if row.get(path)}
            yield place, {"": str(number), **cells}

    return RecordDrafts(records, name, columns, title)


def _chosen_sheets(
    path: Path, notes: Notes, columns: dict[str, str], numbered: bool
) -> list[RecordDrafts]:
    """Return the sheet that the user names, or all that have the columns of the longest one.

    Note the others.
    """
    sheets, wanted = read_sheets(path), notes.options.sheet
    if wanted not in (None, "all", *sheets):
        raise InputError(f"{path}: {unknown_name('sheet', str(wanted), [*sheets, 'all'])}")
    tables: list[RecordDrafts] = []
    reasons: list[str] = []
    for title in sheets if wanted in (None, "all") else [wanted]:
        name = str(path) if len(sheets) == 1 else f"{path}: {title}"
        read = partial(_sheet_records, name, sheets[title], numbered)
        try:
            tables.append(table_drafts(read, name, columns, title))
        except InputError as error:
            reason = re.sub(f"^{re.escape(name)}:\\d+: ", "", str(error))
            reasons.append(f"the sheet {title!r}: {reason}")
            continue
        width = len(sheets[title][0][1])
        for line, cells in sheets[title]:
            if len(cells) > width:
                notes.add("left out what stands beside the columns", f"{name}:{line}")
    if not tables or (wanted == "all" and reasons):
        raise InputError(f"{path}: {'; '.join(reasons)}")
    for reason in reasons:
        notes.add(f"passed over {reason.partition(';')[0]}", str(path))
    return tables if wanted else _alike(tables, path, notes)


def _file_records(path: Path, encoding: str, numbered: bool) -> Iterator[tuple[str, Any]]:
    return records_of(str(path), text_rows(path, encoding), numbered=numbered)


def _sheet_records(name: str, sheet: Sheet, numbered: bool) -> Iterator[tuple[str, Any]]:
    if not sheet:
        raise InputError("has no rows")
    return records_of(name, sheet_rows(sheet), numbered=numbered)


def _alike(tables: list[RecordDrafts], path: Path, notes: Notes) -> list[RecordDrafts]:
    """Return the tables that have the columns of the longest one; note the others."""
    longest = max(tables, key=lambda table: table.sizes.total())
    alike = [table for table in tables if table.header == longest.header]
    for table in tables:
        if table not in alike:
            notes.guess(
                f"passed over the sheet {table.title!r}, which has other columns than "
                f"{longest.title!r}; for it, say --sheet {table.title!r}",
                str(path),
            )
    return alike
