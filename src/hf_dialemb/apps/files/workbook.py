"""Excel workbooks and Parquet files."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...errors import InputError

_MOST_CELLS = 1 << 26  # of a workbook in memory
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
        book = load_workbook(path, read_only=True, data_only=True)
        for sheet in book.worksheets:
            rows = sheets.setdefault(sheet.title, [])
            sheet.reset_dimensions()
            for number, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
                filled = [place for place, cell in enumerate(cells, 1) if cell not in (None, "")]
                if filled:
                    rows.append((number, list(cells[: filled[-1]])))
                    left -= filled[-1]
                if left < 0:
                    raise ValueError(f"it has more than {_MOST_CELLS:,} cells")
        book.close()
    except Exception as error:  # of a library on a file that may be of any kind
        reason = " ".join(f"{error}".split())[:200] or type(error).__name__
        raise InputError(
            f"{path}: cannot be read ({reason}); save it again as .xlsx or as CSV"
        ) from None
    return sheets


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
