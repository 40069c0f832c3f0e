"""Write tables as a workbook, and metadata as columns of tables."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...dialogue import Dialogue
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


def metadata_columns(
    dialogues: Sequence[Dialogue], others: Collection[str] = ()
) -> dict[str, list[Any]]:
    """Return the metadata as columns of a table, with None where a dialogue has no such value.

    The values of a column have one type: texts, numbers, booleans or lists of texts. A name that
    ``others`` has too begins with ``metadata_``.
    """
    columns = {}
    for name in dict.fromkeys(name for dialogue in dialogues for name in dialogue.metadata):
        values = [dialogue.metadata.get(name) for dialogue in dialogues]
        kinds = {type(value) for value in values if value is not None}
        if len(kinds) > 1 and not kinds <= {int, float}:
            values = [
                value if value is None or isinstance(value, str) else json.dumps(value)
                for value in values
            ]
        plain_name = re.sub(r"[.`]", "_", name)  # a dot leads to a field of a column
        # databases have own columns such as _rowid
        taken = plain_name.lower() in others or plain_name[:1] in ("", "_")
        columns[f"metadata_{plain_name}" if taken else plain_name] = values
    return columns
