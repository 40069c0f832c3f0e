"""Tables in files: CSV and TSV, and the sheets of a workbook."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from ...errors import InputError, unknown_name
from .findings import Draft, Finding, Notes, from_drafts
from .json_values import opened
from .record_dialogues import RecordDrafts, header_of_flat
from .table_rows import Rows, plain_cell, sheet_rows, text_rows
from .turn_tables import Table, are_numbers, number_of
from .workbook import read_sheets

_SURVEYED = 200  # rows that show whether cells hold whole conversations


def find_in_table(rows: Rows, name: str, notes: Notes) -> Iterator[Finding]:
    """Read the rows of a table dialogue by dialogue, malformed ones too.

    The rows are read several times. A dialogue has the labels of all its rows; ``a|b`` in a cell is
    two labels, or two dialogue acts. A row of more or fewer cells counts to the dialogue whose id
    it has, or to the one before it. Other columns that have one value in each dialogue are
    metadata. Problems name the table.
    """
    first = next(rows(Notes()), None)
    if first is None:
        return

    numbers: set[str] = set()

    def records() -> Iterator[tuple[str, Any]]:
        header = list(map(str.strip, first.cells))
        for number, row in enumerate(islice(rows(Notes()), 1, None), start=1):
            cells = dict(zip(header, map(opened, map(plain_cell, row.cells)), strict=False))
            cells |= {title: number_of(cells[title]) for title in numbers if cells.get(title)}
            yield f"{name}:{row.line}", {"": str(number), **cells}

    sample = [record for _, record in islice(records(), _SURVEYED)]
    if notes.options.columns or header_of_flat(sample) or not sample:
        table = Table(rows, name, notes)
        yield from from_drafts(table.drafts, notes)
        table.take_account(notes)
        return
    numbers |= {title for title in sample[0] if title and are_numbers(row[title] for row in sample)}
    drafts = RecordDrafts(records)
    yield from from_drafts(drafts, notes)
    drafts.take_account(notes)


def find_in_file(path: Path, notes: Notes) -> Iterator[Finding]:
    """Read a table in a file as `find_in_table` does.

    Of a workbook, all sheets that have the same columns.
    """
    if not path.name.lower().endswith(".xlsx"):
        yield from find_in_table(partial(text_rows, path), str(path), notes)
        return
    tables = _chosen_sheets(path, notes)
    ids = Counter(chain.from_iterable(table.rows_of for table in tables))
    for table in tables:
        table.clashing = {id for id in table.rows_of if ids[id] > 1}

    def drafts(notes: Notes) -> Iterator[Draft]:
        return chain.from_iterable(table.drafts(notes) for table in tables)

    yield from from_drafts(drafts, notes)
    for table in tables:
        table.take_account(notes)


def _chosen_sheets(path: Path, notes: Notes) -> list[Table]:
    """Return the sheet that the user names, or all that have the columns of the longest one.

    Note the others.
    """
    sheets, wanted = read_sheets(path), notes.options.sheet
    if wanted not in (None, "all", *sheets):
        raise InputError(f"{path}: {unknown_name('sheet', str(wanted), [*sheets, 'all'])}")
    tables: list[Table] = []
    reasons: list[str] = []
    for title, sheet in sheets.items():
        if wanted not in (None, "all", title):
            continue
        name = str(path) if len(sheets) == 1 else f"{path}: {title}"
        try:
            if len(sheet) < 2:
                raise InputError("has no rows below a header")
            rows = partial(sheet_rows, sheet, name)
            tables.append(Table(rows, name, Notes(notes.options), title))
        except InputError as error:
            reason = re.sub(f"^{re.escape(name)}:\\d+: ", "", str(error))
            reasons.append(f"the sheet {title!r}: {reason}")
    if not tables or (wanted == "all" and reasons):
        raise InputError(f"{path}: {'; '.join(reasons)}")
    for reason in reasons:
        notes.add(f"passed over {reason.partition(';')[0]}", str(path))
    alike = tables if wanted else _alike(tables, path, notes)
    for table in alike:
        for problem in table.notes.problems(table.name):
            notes.put(problem)
    return alike


def _alike(tables: list[Table], path: Path, notes: Notes) -> list[Table]:
    """Return the tables that have the columns of the longest one; note the others."""
    longest = max(tables, key=lambda table: table.count)
    alike = [table for table in tables if table.titles == longest.titles]
    for table in tables:
        if table not in alike:
            notes.guess(
                f"passed over the sheet {table.title!r}, which has other columns than "
                f"{longest.title!r}; for it, say --sheet {table.title!r}",
                str(path),
            )
    return alike
