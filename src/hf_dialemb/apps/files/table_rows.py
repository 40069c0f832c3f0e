"""Rows of tables: of CSV and TSV files, of sheets, and of tables in memory."""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain
from math import isnan
from pathlib import Path
from typing import NamedTuple

from ...data.parsing import LONGEST_CELL
from .findings import Notes
from .text_encoding import is_text, text_of
from .workbook import Sheet

_FORMULA = ("=", "+", "-", "@")
_HEAD = 1 << 16  # characters that show what separates cells


class Row(NamedTuple):
    """A row of a table: its line in the file, its cells, and its fault."""

    line: int
    cells: Sequence[str] = ()
    fault: str = ""


Rows = Callable[[Notes], Iterator[Row]]


def rows_in_memory(header: Sequence[str], cells: Iterable[Iterable[object]]) -> Iterator[Row]:
    """Yield the rows of a table in memory, as a file of it would give them."""
    yield Row(1, header)
    for line, row in enumerate(cells, start=2):
        texts = list(map(cell_text, row))
        if any(text.strip() for text in texts):
            yield Row(line, texts)


def text_rows(path: Path, notes: Notes) -> Iterator[Row]:
    """Yield the rows of a CSV or TSV file, without blank ones."""
    csv.field_size_limit(LONGEST_CELL)
    usual = "\t" if path.name.lower().removesuffix(".gz").endswith(".tsv") else ","
    with text_of(path, notes) as text:
        head = text.read(_HEAD) + text.readline()
        mark = re.match("sep=(.)\r?\n", head)  # of Excel
        delimiter = mark[1] if mark else _delimiter(head, usual)
        rest = io.StringIO(head[mark.end() if mark else 0 :], newline="")
        reader = csv.reader(chain(rest, text), delimiter=delimiter, strict=True)
        while True:
            line = reader.line_num + 1 + bool(mark)
            try:
                row = Row(line, next(reader))
            except StopIteration:
                return
            except csv.Error as error:
                row = Row(
                    line,
                    fault=f"got broken CSV ({error}), expected quoted cells to be closed, and "
                    "quotation marks in them doubled; repair the row",
                )
            joined = "".join(row.cells)
            if not is_text(joined):
                fault = "got bytes that are not UTF-8, expected text; save it as UTF-8"
                row = row._replace(fault=fault)
            if row.fault or joined.strip():
                yield row


def _delimiter(head: str, usual: str) -> str:
    """Return the mark that parts most rows into as many cells as the first.

    The file's ending decides a draw.
    """

    def score(mark: str) -> tuple[float, int]:
        rows = csv.reader(io.StringIO(head, newline=""), delimiter=mark)
        widths = [len(cells) for cells in rows if cells] or [0]
        alike = widths.count(widths[0]) / len(widths)
        return (round(alike, 1), widths[0]) if widths[0] > 1 else (0, 0)

    return max((usual, ";", "\t", ",", "|"), key=score)


def sheet_rows(sheet: Sheet, name: str, notes: Notes) -> Iterator[Row]:
    """Yield the rows of a sheet, as wide as the first of them."""
    width = len(sheet[0][1]) if sheet else 0
    for line, cells in sheet:
        if len(cells) > width:
            notes.add("left out what stands beside the columns", f"{name}:{line}")
        missing = [""] * (width - len(cells))
        yield Row(line, [*map(cell_text, cells[:width]), *missing])


def plain_cell(cell: str) -> str:
    """Return a cell without the apostrophe that keeps a spreadsheet from computing it."""
    return cell[1:] if cell[:1] == "'" and cell[1:2] in _FORMULA else cell


def cell_text(cell: object) -> str:
    """Return the value of a cell as text; empty for a missing one."""
    if cell is None or (isinstance(cell, float) and isnan(cell)):
        return ""
    if isinstance(cell, float) and cell.is_integer():
        # an id that was typed as 12; a spreadsheet rounds longer ones
        return str(int(cell)) if abs(cell) < 1e15 else f"{cell:.14E}"
    return cell.isoformat() if isinstance(cell, datetime) else str(cell)
