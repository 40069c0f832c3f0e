"""Tables in files: CSV, TSV, Excel and Parquet; each row is a record by the header."""

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import chain
from math import isnan
from pathlib import Path
from typing import Any

from ...data.parsing import LONGEST_CELL
from ...data.source import undamaged
from ...errors import InputError, explained, unknown_name
from .findings import Notes
from .text_encoding import NOT_TEXT, is_text, text_of

_FORMULA = ("=", "+", "-", "@")
_HEAD = 1 << 16  # characters that show what separates cells
_BATCH = 500  # rows of Parquet in memory

Row = tuple[int, Sequence[str] | InputError]
"""A row of a table: its line in the file, and its cells or its fault."""


def records_of(
    name: str, read: Callable[[], Iterator[Row]], *, numbered: bool
) -> Iterator[tuple[str, Any]]:
    """Yield the rows of a table as objects by its header, or by the numbers of columns.

    A faulty row is yielded as its fault. An InputError refuses a faulty header.
    """
    rows = read()
    line, first = next(rows, (0, ()))
    if isinstance(first, InputError):
        raise InputError(f"{name}:{line}: {first}")
    titles = [cell.strip() for cell in first]
    again = [titles[:place].count(title) + 1 for place, title in enumerate(titles)]
    header = [f"{t} ({n})" if n > 1 else t for t, n in zip(titles, again, strict=True)]
    if numbered:
        header = [str(number) for number in range(1, len(first) + 1)]
        rows = chain([(line, first)], rows)
    for line, cells in rows:
        if isinstance(cells, InputError):
            yield f"{name}:{line}", cells
        elif len(cells) == len(header):
            yield f"{name}:{line}", dict(zip(header, map(plain_cell, cells), strict=True))
        else:
            fault = (
                f"got {len(cells)} cell(s), expected {len(header)} as in the first row; put cells "
                "that hold the separator in quotation marks, or add what is missing"
            )
            yield f"{name}:{line}", InputError(fault)


def text_rows(path: Path, encoding: str) -> Iterator[Row]:
    """Yield the rows of a CSV or TSV file, without blank ones."""
    csv.field_size_limit(LONGEST_CELL)
    with text_of(path, encoding) as text:
        head = text.read(_HEAD) + text.readline()
        head = re.sub(r"\Asep=.(?=\r?\n)", "", head)  # of Excel
        delimiter = _delimiter(head, ".tsv" in path.name.lower())
        lines = chain(io.StringIO(head, newline=""), text)
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        while True:
            line = reader.line_num + 1
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                fault = f"got broken CSV ({error}), expected quoted cells to be closed, and "
                yield line, InputError(f"{fault}quotation marks in them doubled; repair the row")
                continue
            whole = "".join(cells)
            if whole.strip():
                yield line, cells if is_text(whole) else InputError(NOT_TEXT)


def _delimiter(head: str, is_tsv: bool) -> str:
    """Return the mark that parts most rows into as many cells as the first.

    The file's ending decides a draw.
    """

    def score(mark: str) -> tuple[float, int]:
        rows = csv.reader(io.StringIO(head, newline=""), delimiter=mark)
        widths = [len(cells) for cells in rows if cells] or [0]
        alike = widths.count(widths[0]) / len(widths)
        return (round(alike, 1), widths[0]) if widths[0] > 1 else (0, 0)

    return max("\t;,|" if is_tsv else ",;\t|", key=score)


def plain_cell(cell: str) -> str:
    """Return a cell without the apostrophe that keeps a spreadsheet from computing it."""
    return cell[1:] if cell[:1] == "'" and cell[1:2] in _FORMULA else cell


def cell_text(cell: object) -> str:
    """Return the value of a cell as text; empty for a missing one."""
    if isinstance(cell, float) and cell.is_integer():
        # an id that was typed as 12; a spreadsheet rounds longer ones
        return str(int(cell)) if abs(cell) < 1e15 else f"{cell:.14E}"
    if cell is None or (isinstance(cell, float) and isnan(cell)):
        return ""
    return cell.isoformat() if isinstance(cell, datetime) else str(cell)


def sheets_of(path: Path, notes: Notes) -> dict[str, list[Row]]:
    """Read the rows of the sheet that the user names, or of all, whatever size one states.

    An InputError refuses what is no workbook.
    """
    from openpyxl import load_workbook

    wanted = notes.options.sheet
    sheets: dict[str, list[Row]] = {}
    with undamaged(path), explained(path, "save it again as .xlsx or as CSV"):
        book = load_workbook(path, read_only=True, data_only=True)
        for sheet in book.worksheets:
            sheet.reset_dimensions()
            sheets[sheet.title] = list(_rows_in(sheet.iter_rows(values_only=True), path, notes))
        book.close()
    if wanted and wanted not in sheets:
        raise InputError(f"{path}: {unknown_name('sheet', wanted, sheets)}")
    return {wanted: sheets[wanted]} if wanted else sheets


def _rows_in(cells: Iterator[Sequence[Any]], path: Path, notes: Notes) -> Iterator[Row]:
    """Yield the rows of a sheet that are not blank, all as wide as the first."""
    width = 0
    for number, values in enumerate(cells, start=1):
        texts = [cell_text(value) for value in values]
        width = width or max((place for place, text in enumerate(texts, 1) if text), default=0)
        if any(texts[width:]):
            notes.add("left out what stands beside the columns", f"{path}:{number}")
        if any(texts):
            yield number, [*texts, *[""] * width][:width]


def parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Read a Parquet file without its lists of numbers, a few rows at a time."""
    from pyarrow import types
    from pyarrow.parquet import ParquetFile

    with undamaged(path), explained(path, "write it again"), ParquetFile(path) as file:
        inner = {field.name: getattr(field.type, "value_type", None) for field in file.schema_arrow}
        columns = [at for at, kind in inner.items() if kind is None or not types.is_floating(kind)]
        # one by one: pyarrow joins no lists of several
        for group in range(file.num_row_groups):
            for batch in file.iter_batches(_BATCH, row_groups=[group], columns=columns):
                yield from batch.to_pylist()
