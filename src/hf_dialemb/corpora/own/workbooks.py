"""Tables in Excel workbooks: the rows of the first sheet that has any, as texts."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ...models.errors import InputError

if TYPE_CHECKING:
    from .findings import Notes

WORKBOOK = ".xlsx"


def workbook_rows(path: Path, notes: Notes) -> Iterator[tuple[int, list[str]]]:
    """Yields the number and the cells of each row."""
    try:
        from openpyxl import load_workbook
        from openpyxl.utils.exceptions import InvalidFileException
    except ImportError:
        raise InputError(f'{path}: needs openpyxl; pip install "hf-dialemb[excel]", or save it as CSV') from None
    from zipfile import BadZipFile

    try:
        book = load_workbook(path, read_only=True, data_only=True)
    except (InvalidFileException, BadZipFile, KeyError, OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error}); save it again as .xlsx or as CSV") from None
    try:
        sheet = next((each for each in book.worksheets if each.max_row is None or each.max_row > 1), book.worksheets[0])
        if len(book.worksheets) > 1:
            notes.add(f"read the sheet {sheet.title!r} alone", str(path))
        for line, cells in enumerate(sheet.iter_rows(values_only=True), 1):
            yield line, list(map(_text, cells))
    finally:
        book.close()


def _text(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # an id that was typed as 12
    return value.isoformat() if isinstance(value, datetime.datetime) else "" if value is None else str(value)
