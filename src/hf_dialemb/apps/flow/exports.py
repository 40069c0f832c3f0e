"""Write a flow as tables for spreadsheets."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...display import visible
from ...storage.files import write_atomically, write_text_atomically
from .flow import Flow
from .paths import ends

CLUSTERS, ENDS = "clusters.csv", "ends.csv"

_NO_CHARACTERS = str.maketrans("\ufffe\uffff", "\ufffd\ufffd")  # no XML may hold them
_FORMULA = ("=", "+", "-", "@")  # the beginning of a cell that a spreadsheet computes
_WIDTH = 18  # of columns, in characters


class Share(float):
    """A number in ``[0, 1]`` that a workbook shows in percent."""


class Id(str):
    """A name that no table changes, but for an apostrophe before what would be a formula."""


def write_tables(flow: Flow, folder: Path) -> None:
    """Write ``clusters.csv``, a row for each cluster, and ``ends.csv``, one for each dialogue."""
    clusters = [
        {
            "id": own.id,
            "role": own.role,
            "name": own.name,
            "utterances": own.size,
            "phrases": " | ".join(own.phrases),
            "examples": " | ".join(own.examples),
        }
        for own in flow.clusters
    ]
    end_of = {name: end for end in ends(flow) for name in end.dialogues}
    ended = [
        {
            "dialogue": Id(name),
            "end": end_of[name].kind,
            "state": end_of[name].state[1],
            "name": flow.by_state[end_of[name].state].name,
        }
        for name in flow.utterances.dialogues
    ]
    write_table(folder / CLUSTERS, clusters)
    write_table(folder / ENDS, ended)


def write_table(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write rows with the same columns as CSV; see `cell_of`."""
    file, lines = io.StringIO(), (map(cell_of, row.values()) for row in rows)
    csv.writer(file, lineterminator="\n").writerows([map(as_cell, rows[0]), *lines])
    # Lone surrogates, which no file can hold, are replaced.
    write_text_atomically(path, file.getvalue().encode("utf-8", "replace").decode("utf-8"))


def line_of(text: str) -> str:
    """Return a text as one line that any file can hold; invisible characters become escapes."""
    return _legal(" ".join(text.split()))


def _legal(text: str) -> str:
    return visible(text).translate(_NO_CHARACTERS)


def as_cell(text: str) -> str:
    """Return a text as one visible line that no spreadsheet takes for a formula."""
    line = line_of(text)
    return f"'{line}" if line.startswith(_FORMULA) else line


def cell_of(value: Any) -> Any:
    """Return a value as a cell: numbers as they are, texts and lists of them by `as_cell`.

    None becomes an empty cell.
    """
    if isinstance(value, Id):
        return f"'{value}" if value.startswith(_FORMULA) else str(value)
    if isinstance(value, tuple | list):
        value = "; ".join(map(str, value))
    if value is None:
        return ""
    return as_cell(value) if isinstance(value, str) else value


def write_workbook(path: Path, sheets: Mapping[str, Sequence[Mapping[str, object]]]) -> None:
    """Write tables as sheets of a workbook, in which no cell is a formula."""
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.styles import Font

    def cell(sheet: Any, value: object, bold: bool = False) -> Any:
        shown = cell_of(value)
        made = WriteOnlyCell(sheet, _legal(shown) if isinstance(shown, str) else shown)
        if bold:
            made.font = Font(bold=True)
        if isinstance(value, Share):
            made.number_format = "0.0%"
        return made

    book = Workbook(write_only=True)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        sheet.freeze_panes = "B2"
        sheet.sheet_format.defaultColWidth = _WIDTH
        columns = list(dict.fromkeys(column for row in rows for column in row))
        sheet.append([cell(sheet, column, bold=True) for column in columns])
        for row in rows:
            sheet.append([cell(sheet, row.get(column)) for column in columns])
    write_atomically(path, book.save)
