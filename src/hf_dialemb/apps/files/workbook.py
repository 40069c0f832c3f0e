"""Excel workbooks and Parquet files, within bounds: a small workbook may unpack to gigabytes."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from ...errors import InputError

_MOST_ROWS = 1 << 20  # that a sheet of Excel can have
_MOST_CELLS = 1 << 26  # of a workbook in memory
# bytes that one byte may unpack to, and those that any file may; real sheets reach 25
_RATIO, _FREE = 100, 1 << 25
_LONGEST_PART = 1 << 22  # bytes of XML of one row, or of one string
_BLOCK = 1 << 20
_PART = re.compile(rb"<(?:\w+:)?(?:row|si)[\s/>]")
_BATCH = 500  # rows of Parquet in memory

Sheet = list[tuple[int, list[Any]]]  # the filled rows with their numbers


def read_sheets(path: Path) -> dict[str, Sheet]:
    """Read the rows of all sheets but for blank ones, whatever size a sheet states.

    An InputError refuses what is no workbook or unpacks to more than any table holds, and names
    openpyxl if it is missing.
    """
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise InputError(
            f'{path}: needs openpyxl; pip install "hf-dialemb[apps]", or save it as CSV'
        ) from None
    sheets: dict[str, Sheet] = {}
    left = _MOST_CELLS
    try:
        _check_size(path)
        book = load_workbook(path, read_only=True, data_only=True)
        for sheet in book.worksheets:
            rows = sheets.setdefault(sheet.title, [])
            sheet.reset_dimensions()
            for number, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
                filled = [place for place, cell in enumerate(cells, 1) if cell not in (None, "")]
                if filled:
                    rows.append((number, list(cells[: filled[-1]])))
                    left -= filled[-1]
                if left < 0 or number > _MOST_ROWS:
                    raise ValueError(f"it has more than {_MOST_CELLS:,} cells")
        book.close()
    except Exception as error:  # of a library on a file that may be of any kind
        reason = " ".join(f"{error}".split())[:200] or type(error).__name__
        raise InputError(
            f"{path}: cannot be read ({reason}); save it again as .xlsx or as CSV"
        ) from None
    return sheets


def _check_size(path: Path) -> None:
    """Refuse a workbook that unpacks to much more than its size, or has a huge row or string."""
    packed = path.stat().st_size
    with ZipFile(path) as archive:
        if sum(member.file_size for member in archive.infolist()) > _FREE + _RATIO * packed:
            raise ValueError("it unpacks to more than any table")
        for name in archive.namelist():
            if name.endswith((".xml", ".rels")) and "pivotCache" not in name:
                with archive.open(name) as stream:
                    _check_parts(iter(lambda: stream.read(_BLOCK), b""), _MOST_ROWS + packed)


def _check_parts(blocks: Iterator[bytes], most: int) -> None:
    count = length = 0
    for block in blocks:
        starts = [match.start() for match in _PART.finditer(block)]
        count += len(starts)
        length = len(block) - starts[-1] if starts else length + len(block)
        if count > most or length > _LONGEST_PART or b"<!" in block:
            raise ValueError("its XML is of no table")


def is_flat(path: Path) -> bool:
    """Return whether no column of a Parquet file holds lists or objects."""
    from pyarrow import types
    from pyarrow.parquet import read_schema

    with _readable(path):
        return not any(types.is_nested(field.type) for field in read_schema(path))


def parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Read a Parquet file without its lists of numbers, a few rows at a time."""
    from pyarrow import types
    from pyarrow.parquet import ParquetFile

    with _readable(path), ParquetFile(path) as file:
        inner = {field.name: getattr(field.type, "value_type", None) for field in file.schema_arrow}
        columns = [
            name for name, kind in inner.items() if kind is None or not types.is_floating(kind)
        ]
        # one by one: pyarrow joins no lists of several
        for group in range(file.num_row_groups):
            for batch in file.iter_batches(_BATCH, row_groups=[group], columns=columns):
                yield from batch.to_pylist()


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    from pyarrow import ArrowException

    try:
        yield
    except (ArrowException, OSError, UnicodeDecodeError) as error:
        reason = "".join(str(error).strip().splitlines()[:1])
        raise InputError(
            f"{path}: cannot be read ({reason}); it is damaged or no parquet: write it again"
        ) from None
