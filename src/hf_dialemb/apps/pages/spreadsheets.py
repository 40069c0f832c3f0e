"""Write tables as a workbook."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...display import visible
from ...storage.files import write_atomically

_NO_CHARACTERS = str.maketrans("\ufffe\uffff", "\ufffd\ufffd")  # no XML may hold them
_FORMULA = ("=", "+", "-", "@")  # the beginning of a cell that a spreadsheet computes
_WIDTH = 18  # of columns, in characters


class Share(float):
    """A number in ``[0, 1]`` that a workbook shows in percent."""


class Id(str):
    """A name whose blanks stay as they are."""


def line_of(text: str) -> str:
    """Return a text as one line that any file can hold; invisible characters become escapes."""
    return _legal(" ".join(text.split()))


def _legal(text: str) -> str:
    return visible(text).translate(_NO_CHARACTERS)


def cell_of(value: Any) -> Any:
    """Return a value as a cell that no spreadsheet takes for a formula: texts are one line."""
    if isinstance(value, tuple | list):
        value = "; ".join(map(str, value))
    if not isinstance(value, str):
        return value
    text = _legal(value) if isinstance(value, Id) else line_of(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def write_workbook(path: Path, sheets: Mapping[str, Sequence[Mapping[str, object]]]) -> None:
    """Write tables as sheets of a workbook, in which no cell is a formula."""
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.styles import Font

    def cell(sheet: Any, value: object, bold: bool = False) -> Any:
        made = WriteOnlyCell(sheet, cell_of(value))
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
