"""Tables in files: CSV, TSV, Excel and Parquet; each row is a record by the header."""

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import chain
from math import isnan
from pathlib import Path
from typing import Any

from ...data.parsing import LONGEST_CELL
from ...errors import InputError, unknown_name
from .columns import SAY
from .findings import Notes
from .text_encoding import is_text, text_in

_FORMULA = ("=", "+", "-", "@")
_LISTED = 20  # columns that a sentence is about
_HEAD = 1 << 16  # characters that show what separates cells
_BATCH = 500  # rows of Parquet in memory

Row = tuple[int, Sequence[str], str]
"""A row of a table: its line in the file, its cells, and its fault."""


def records_of(
    name: str, read: Callable[[], Iterator[Row]], *, numbered: bool
) -> Iterator[tuple[str, Any]]:
    """Yield the rows of a table as objects by its header, or by the numbers of columns.

    The fault of a row stands under the name None. An InputError refuses a header that has one, and
    a header alone.
    """
    rows = read()
    first = next(rows, None)
    if first is None:
        return
    line, cells, fault = first
    if fault:
        raise InputError(f"{name}:{line}: {fault}")
    again = Counter[str]()
    header = []
    for number, cell in enumerate(cells, start=1):
        title = str(number) if numbered else cell.strip()
        again[title] += 1
        header.append(f"{title} ({again[title]})" if again[title] > 1 else title)
    count = 0
    for line, cells, fault in chain([first], rows) if numbered else rows:
        count += 1
        record: dict[str | None, Any] = dict(zip(header, map(plain_cell, cells), strict=False))
        if fault or len(cells) != len(header):
            record[None] = fault or (
                f"got {len(cells)} cell(s), expected {len(header)} as in the first row; put "
                "cells that hold the separator in quotation marks, or add what is missing"
            )
        yield f"{name}:{line}", record
    if not count:
        titles = ", ".join(header[:_LISTED])
        raise InputError(f"{name}:{line}: got no rows below a header ({titles}); {SAY}")


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
            cells: list[str] = []
            fault = ""
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                fault = (
                    f"got broken CSV ({error}), expected quoted cells to be closed, and "
                    "quotation marks in them doubled; repair the row"
                )
            whole = "".join(cells)
            if not is_text(whole):
                fault = "got bytes that are not UTF-8, expected text; save it as UTF-8"
            if fault or whole.strip():
                yield line, cells, fault


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


def sheets_of(path: Path, notes: Notes) -> dict[str, list[Row]]:
    """Read the rows of the sheet that the user names, or of all, whatever size one states.

    An InputError refuses what is no workbook, and names openpyxl if it is missing.
    """
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise InputError(
            f'{path}: needs openpyxl; pip install "hf-dialemb[apps]", or save it as CSV'
        ) from None
    sheets: dict[str, list[Row]] = {}
    with _readable(path, "save it again as .xlsx or as CSV"):
        book = load_workbook(path, read_only=True, data_only=True)
        for sheet in book.worksheets:
            rows = sheets.setdefault(sheet.title, [])
            sheet.reset_dimensions()
            for number, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
                texts = [cell_text(cell) for cell in cells]
                while texts and not texts[-1]:
                    texts.pop()
                width = len(rows[0][1]) if rows else len(texts)
                if len(texts) > width:
                    sentence = "left out what stands beside the columns"
                    notes.add(sentence, f"{path}: {sheet.title}:{number}")
                if texts:
                    missing = [""] * (width - len(texts))
                    rows.append((number, [*texts[:width], *missing], ""))
        book.close()
    wanted = notes.options.sheet
    if wanted and wanted not in sheets:
        raise InputError(f"{path}: {unknown_name('sheet', wanted, sheets)}")
    return {wanted: sheets[wanted]} if wanted else sheets


def parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Read a Parquet file without its lists of numbers, a few rows at a time."""
    from pyarrow import types
    from pyarrow.parquet import ParquetFile

    with _readable(path, "it is damaged or no parquet: write it again"), ParquetFile(path) as file:
        inner = {field.name: getattr(field.type, "value_type", None) for field in file.schema_arrow}
        columns = [
            name for name, kind in inner.items() if kind is None or not types.is_floating(kind)
        ]
        # one by one: pyarrow joins no lists of several
        for group in range(file.num_row_groups):
            for batch in file.iter_batches(_BATCH, row_groups=[group], columns=columns):
                yield from batch.to_pylist()


@contextmanager
def _readable(path: Path, remedy: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # of a library on a file that may be of any kind
        reason = " ".join(f"{error}".split())[:200] or type(error).__name__
        raise InputError(f"{path}: cannot be read ({reason}); {remedy}") from None
