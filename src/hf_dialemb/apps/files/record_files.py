"""Files of records: JSON, Parquet and tables.

Each record is a conversation of some form, or a row of a table.
"""

from collections.abc import Callable, Iterator, Sequence
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
from .columns import is_number, parse_columns
from .findings import Finding, Notes, from_drafts, from_record
from .record_dialogues import Read, RecordDrafts
from .table_files import parquet_rows, records_of, sheets_of, text_rows
from .text_encoding import encoding_of


def json_records(path: Path) -> Iterator[tuple[str, Any]]:
    """Read the values of a JSON file, or of one that holds a value a line."""
    with decompressed(path) as stream:
        content = stream.read()
    try:
        value = parse_json(str(path), content, "export it again as JSON")
    except InputError as error:
        if "Extra data" not in str(error):
            raise
        yield from line_records(path)
        return
    items = value if isinstance(value, list) else [value]
    for number, item in enumerate(items, start=1):
        yield f"{path}: dialogue {number}" if len(items) > 1 else str(path), item


def parquet_records(path: Path) -> Iterator[tuple[str, Any]]:
    """Read the rows of a Parquet file."""
    return ((f"{path}: row {index}", row) for index, row in enumerate(parquet_rows(path)))


def find_in(
    records: Callable[[Path], Iterator[tuple[str, Any]]], path: Path, notes: Notes
) -> Iterator[Finding]:
    """Read a file of records, which are conversations, or the rows of a table."""
    return find_in_records(partial(records, path), str(path), notes, is_file=True)


def whole_chat(files: Sequence[Path]) -> dict[str, Any]:
    """Join the files of a channel or a chat: days, or numbered parts; users may lie beside."""
    folder = files[0].parent
    whole: dict[str, Any] = {"id": folder.name, "channel": folder.name, "users": []}
    for people in (folder.parent / "users.json", folder / "users.json"):
        if people.is_file():
            whole["users"] = [person for _, person in json_records(people)]
    messages: list[Any] = []
    for _, value in chain.from_iterable(map(json_records, files)):
        is_part = isinstance(value, dict) and isinstance(value.get("messages"), list)
        if is_part:
            whole |= value
        messages += value["messages"] if is_part else [value]
    return whole | {"messages": messages}


def find_in_table(path: Path, notes: Notes) -> Iterator[Finding]:
    """Read a table in a file dialogue by dialogue, malformed ones too.

    The rows are read several times. Of a workbook, all sheets whose columns are known.
    """
    columns = parse_columns(notes.options.columns)
    numbered = any(map(is_number, columns.values()))
    if path.name.lower().endswith(".xlsx"):
        sheets = {title: partial(iter, rows) for title, rows in sheets_of(path, notes).items()}
    else:
        sheets = {"": partial(text_rows, path, encoding_of(path, notes))}
    tables: list[RecordDrafts] = []
    for title, read in sheets.items():
        name = f"{path}: {title}" if len(sheets) > 1 else str(path)
        records = partial(records_of, name, read, numbered=numbered)
        try:
            tables.append(RecordDrafts(records, name, columns, title if len(sheets) > 1 else ""))
        except InputError as error:
            if len(sheets) == 1:
                raise
            notes.add(f"passed over a sheet ({error})", name)
    yield from from_drafts(
        lambda notes: chain.from_iterable(table(notes) for table in tables), notes
    )
    for table in tables:
        table.take_account(notes)


def find_in_records(
    read: Read, name: str, notes: Notes, *, is_file: bool = False
) -> Iterator[Finding]:
    """Read conversations in records of any form.

    Records that are flat are the rows of a table; ``name`` is its place. A file of nothing but what
    `Dialogue.to_json` gives is read as it stands.
    """
    options = notes.options
    is_open = options.roles or options.gap or options.columns
    if not is_open and all(_is_written(record) for _, record in read()):
        yield from (from_record(place, record) for place, record in read())
    else:
        table = RecordDrafts(read, name, parse_columns(options.columns))
        yield from from_drafts(table, notes, None if is_file else table)
        table.take_account(notes)


def _is_written(record: Any) -> bool:
    """Return whether a record is a dialogue as `Dialogue.to_json` gives it, in order of time."""
    if not isinstance(record, dict) or not record.keys() <= WRITTEN:
        return False
    try:
        times = [turn.time for turn in Dialogue.from_json(record).turns if turn.time]
    except InputError:
        return False
    return times == sorted(times)
