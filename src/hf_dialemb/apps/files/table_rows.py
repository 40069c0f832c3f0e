"""Rows of tables: of CSV and TSV files, of sheets, and of tables in memory."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import chain
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple

from ...data.parsing import LONGEST_CELL
from ...errors import InputError
from .columns import SAY
from .text_encoding import is_text, text_in
from .workbook import Sheet

_FORMULA = ("=", "+", "-", "@")
_LISTED = 20  # columns that a sentence is about
_HEAD = 1 << 16  # characters that show what separates cells


class Row(NamedTuple):
    """A row of a table: its line in the file, its cells, and its fault."""

    line: int
    cells: Sequence[str] = ()
    fault: str = ""


def records_of(name: str, rows: Iterator[Row], *, numbered: bool) -> Iterator[tuple[str, Any]]:
    """Yield the rows of a table as objects by its header, or by the numbers of columns.

    The fault of a row stands under the name None. An InputError refuses a header that has one, and
    a header alone.
    """
    first = next(rows, None)
    if first is None:
        return
    if first.fault:
        raise InputError(f"{name}:{first.line}: {first.fault}")
    again = Counter[str]()
    header = []
    for number, cell in enumerate(first.cells, start=1):
        title = str(number) if numbered else cell.strip()
        again[title] += 1
        header.append(f"{title} ({again[title]})" if again[title] > 1 else title)
    row = None
    for row in chain([first], rows) if numbered else rows:
        record: dict[str | None, Any] = dict(zip(header, map(plain_cell, row.cells), strict=False))
        fault = row.fault
        if not fault and len(row.cells) != len(header):
            fault = (
                f"got {len(row.cells)} cell(s), expected {len(header)} as in the first row; put "
                "cells that hold the separator in quotation marks, or add what is missing"
            )
        if fault:
            record[None] = fault
        yield f"{name}:{row.line}", record
    if row is None:
        titles = ", ".join(header[:_LISTED])
        raise InputError(f"{name}:{first.line}: got no rows below a header ({titles}); {SAY}")


def text_rows(path: Path, encoding: str) -> Iterator[Row]:
    """Yield the rows of a CSV or TSV file, without blank ones."""
    csv.field_size_limit(LONGEST_CELL)
    usual = "\t" if path.name.lower().removesuffix(".gz").endswith(".tsv") else ","
    with text_in(path, encoding) as text:
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


def sheet_rows(sheet: Sheet) -> Iterator[Row]:
    """Yield the rows of a sheet, as wide as the first of them."""
    width = len(sheet[0][1]) if sheet else 0
    for line, cells in sheet:
        missing = [""] * (width - len(cells))
        yield Row(line, [*map(cell_text, cells[:width]), *missing])


def plain_cell(cell: str) -> str:
    """Return a cell without the apostrophe that keeps a spreadsheet from computing it."""
    return cell[1:] if cell[:1] == "'" and cell[1:2] in _FORMULA else cell


def cell_text(cell: object) -> str:
    """Return the value of a cell as text; empty for a missing one."""
    if isinstance(cell, str):
        return cell
    if cell is None or (isinstance(cell, float) and isnan(cell)):
        return ""
    if isinstance(cell, float) and cell.is_integer():
        # an id that was typed as 12; a spreadsheet rounds longer ones
        return str(int(cell)) if abs(cell) < 1e15 else f"{cell:.14E}"
    return cell.isoformat() if isinstance(cell, datetime) else str(cell)
