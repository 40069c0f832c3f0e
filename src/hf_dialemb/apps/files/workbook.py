"""Excel workbooks and Parquet files within bounds: a small file may unpack to gigabytes."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

from ...errors import InputError

if TYPE_CHECKING:
    from pyarrow import Array, RecordBatch

_MOST_ROWS = 1 << 20  # that a sheet of Excel can have
_MOST_CELLS = 1 << 26  # of a workbook in memory
# bytes that one byte may unpack to, and those that any file may; real sheets reach 25
_RATIO, _FREE = (100, 1 << 25)
_LONGEST = 1 << 22  # bytes of XML of one row, or of one string
_BLOCK = 1 << 20
_PART = re.compile(rb"<(?:\w+:)?(?:row|si)[\s/>]")
_BATCH, _LONGEST_BATCH = 500, 1 << 26  # rows of Parquet in memory, and their bytes
_NO_TABLE = "as no table does: it is damaged, or made to fill the memory; save it as CSV"

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
            for number, cells in enumerate(
                islice(sheet.iter_rows(values_only=True), _MOST_ROWS), start=1
            ):
                width = next(
                    (
                        place
                        for place in range(len(cells), 0, -1)
                        if cells[place - 1] not in (None, "")
                    ),
                    0,
                )
                left -= width
                if left < 0:
                    raise InputError(
                        f"{path}: got more than {_MOST_CELLS:,} cells; save the sheet as CSV"
                    )
                if width:
                    rows.append((number, list(cells[:width])))
        book.close()
    except InputError:
        raise
    except Exception as error:  # of a library on a file that may be of any kind
        reason = " ".join(f"{error}".split())[:200] or type(error).__name__
        raise InputError(
            f"{path}: cannot be read ({reason}); save it again as .xlsx or as CSV"
        ) from None
    return sheets


def _check_size(path: Path) -> None:
    """Refuse a workbook that unpacks to much more than its size, to more rows than there can be, or
    to a huge one.
    """
    packed = path.stat().st_size
    with ZipFile(path) as archive:
        parts = [
            member for member in archive.infolist() if member.filename.endswith((".xml", ".rels"))
        ]
        size = sum(member.file_size for member in archive.infolist())
        fault = f"unpacks to {size:,} bytes" if size > _FREE + _RATIO * packed else ""
        for member in parts if not fault else ():
            count = length = 0
            with archive.open(member) as stream:
                while block := stream.read(_BLOCK):
                    starts = [match.start() for match in _PART.finditer(block)]
                    count += len(starts)
                    length = len(block) - starts[-1] if starts else length + len(block)
                    if count > _MOST_ROWS + packed or (
                        length > _LONGEST and "pivotCache" not in member.filename
                    ):
                        fault = f"{member.filename} holds too many or too large parts"
                    if b"<!" in block:
                        fault = f"{member.filename} holds declarations"
    if fault:
        raise InputError(f"{path}: {fault}, {_NO_TABLE}")


def is_flat(path: Path) -> bool:
    """Return whether no column of a Parquet file holds lists or objects."""
    from pyarrow import types
    from pyarrow.parquet import read_schema

    with _readable(path):
        return not any(types.is_nested(field.type) for field in read_schema(path))


def parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Read a Parquet file without its lists of numbers, a few rows at a time.

    Equal strings are unpacked late.
    """
    from pyarrow import types
    from pyarrow.parquet import ParquetFile, read_metadata

    with _readable(path):
        about = read_metadata(path)
        leaves = [about.schema.column(index) for index in range(len(about.schema))]
        strings = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
        for group in map(about.row_group, range(about.num_row_groups)):
            chunks = list(map(group.column, range(group.num_columns)))
            if any(
                chunk.total_uncompressed_size > _FREE + _RATIO * chunk.total_compressed_size
                for chunk in chunks
            ):
                raise InputError(f"{path}: unpacks to {group.total_byte_size:,} bytes, {_NO_TABLE}")
        with ParquetFile(path, read_dictionary=strings) as file:
            inner = {
                field.name: getattr(field.type, "value_type", None) for field in file.schema_arrow
            }
            columns = [
                name for name, type in inner.items() if type is None or not types.is_floating(type)
            ]
            for group in range(
                about.num_row_groups
            ):  # one by one: pyarrow joins no lists of several
                for batch in file.iter_batches(_BATCH, row_groups=[group], columns=columns):
                    yield from _unpacked(batch)


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


def _unpacked(batch: "RecordBatch") -> Iterator[dict[str, Any]]:
    if len(batch) > 1 and sum(map(_size, batch.columns)) > _LONGEST_BATCH:
        for half in (batch.slice(0, len(batch) // 2), batch.slice(len(batch) // 2)):
            yield from _unpacked(half)
    else:
        yield from batch.to_pylist()


def _size(array: "Array") -> int:
    """Return the bytes of an array as Python objects, about."""
    import pyarrow as pa
    from pyarrow import compute

    if pa.types.is_dictionary(array.type):
        lengths = compute.binary_length(array.dictionary)
        return 64 * len(array) + (compute.sum(compute.take(lengths, array.indices)).as_py() or 0)
    if pa.types.is_nested(array.type):
        inner = array.flatten()
        return 64 * len(array) + sum(map(_size, inner if isinstance(inner, list) else [inner]))
    return 64 * len(array)
