"""Files of records, such as JSON and Parquet.

Each record is a conversation of some form, or a row of a table.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from ...data.conversations import WRITTEN
from ...data.jsonl import line_records
from ...data.parsing import parse_json
from ...data.source import decompressed
from ...dialogue import Dialogue
from ...errors import InputError
from ...storage.files import check_not_read
from .columns import parse_columns
from .findings import Finding, Notes, Problem, from_drafts, from_record
from .forms import RecordDrafts, Records
from .table_rows import Row, rows_in_memory
from .turn_tables import find_in_table
from .workbook import is_flat, parquet_rows


def json_records(path: Path) -> Iterator[tuple[str, Any]]:
    """Read the conversations of a JSON file, or of one that holds a value a line."""
    with decompressed(path) as stream:
        content = stream.read()
    first, *rest = [line for line in content.splitlines() if line.strip()][:2] or [b""]
    try:
        has_lines = bool(rest) and isinstance(parse_json("", first, ""), dict | list)
    except InputError:
        has_lines = False
    if has_lines:
        yield from line_records(path)
        return
    yield str(path), parse_json(str(path), content, "export it again as JSON")


def check_target(path: Path, corpus: str) -> None:
    """Refuse a place where dialogues cannot be written, before they are read."""
    if path.is_dir():
        raise InputError(f"output '{path}': got a folder, expected a file; add a file name")
    if not path.name.endswith((".jsonl", ".jsonl.gz")) and (path.is_file() or not path.exists()):
        raise InputError(
            f"output '{path}': expected a name that ends in .jsonl or .jsonl.gz; rename it"
        )
    check_not_read(path, corpus)


def find_in_records(read: Records, name: str, notes: Notes) -> Iterator[Finding]:
    """Read conversations of any known form; the file's form is that of most of its records.

    Records without messages are the rows of a table; ``name`` is its place. A file of nothing but
    what `Dialogue.to_json` gives is read as it stands.
    """
    options = notes.options
    if not (options.roles or options.gap or options.columns) and all(
        _is_written(record) for _, record in read()
    ):
        yield from (from_record(place, record) for place, record in read())
        return
    drafts = RecordDrafts(read, notes.options.columns)
    if not drafts.header:
        yield from from_drafts(drafts, notes)
        return
    for place, record in drafts.records():
        if not isinstance(record, dict):
            fault = (
                str(record)
                if isinstance(record, InputError)
                else f"got {type(record).__name__}, expected an object"
            )
            yield Finding(place, problems=(Problem(place, fault),))

    def rows(_: Notes) -> Iterator[Row]:
        objects = (record for _, record in drafts.records() if isinstance(record, dict))
        rows = rows_in_memory(
            drafts.header, ([record.get(field) for field in drafts.header] for record in objects)
        )
        # the header has no line of its own
        return (row._replace(line=max(1, row.line - 1)) for row in rows)

    yield from find_in_table(rows, name, parse_columns(notes.options.columns), notes)


def _is_written(record: Any) -> bool:
    """Return whether a record is a dialogue as `Dialogue.to_json` gives it, in order of time."""
    if not isinstance(record, dict) or not record.keys() <= WRITTEN:
        return False
    try:
        times = [turn.time for turn in Dialogue.from_json(record).turns if turn.time]
    except InputError:
        return False
    return times == sorted(times)


def find_in_parquet(path: Path, columns: Mapping[str, str], notes: Notes) -> Iterator[Finding]:
    """Read a file whose rows are conversations.

    Without lists and objects, they are the rows of a table.
    """

    def records() -> Iterator[tuple[str, Any]]:
        return ((f"{path}: row {index}", row) for index, row in enumerate(parquet_rows(path)))

    if is_flat(path):
        yield from find_in_table(partial(_parquet_table, path), str(path), columns, notes)
    else:
        yield from find_in_records(records, str(path), notes)


def _parquet_table(path: Path, _: Notes) -> Iterator[Row]:
    rows = parquet_rows(path)
    first = next(rows, {})
    return rows_in_memory(list(first), (row.values() for row in chain([first], rows)))
