"""Files of records: JSON, Parquet and tables.

Each record is a conversation of some form, or a row of a table.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
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
from .columns import is_number, parse_columns
from .findings import Finding, Notes, Problem, from_drafts, from_record
from .record_dialogues import Read, RecordDrafts
from .table_files import Row, parquet_rows, records_of, sheets_of, text_rows
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
    return find_in_records(partial(records, path), str(path), notes)


def whole_chat(files: Sequence[Path], notes: Notes) -> dict[str, Any]:
    """Join the files of a channel or a chat: days, or numbered parts; users may lie beside."""
    people = [_json(folder / "users.json") for folder in (files[0].parent, files[0].parents[1])]
    name = files[0].parent.name
    messages: list[Any] = []
    whole: dict[str, Any] = {"id": name, "channel": name, "users": next(filter(None, people), [])}
    for file in files:
        value = _json(file)
        if isinstance(value, dict):
            whole |= value
            value = value.get("messages")
        if isinstance(value, list):
            messages += value
        else:
            sentence = "is not JSON of messages, and was left out; export it again"
            notes.put(Problem(str(file), sentence, "warning"))
    return whole | {"messages": messages}


def _json(path: Path) -> Any:
    with suppress(ValueError, OSError):
        return json.loads(path.read_bytes())
    return None


def find_in_table(path: Path, notes: Notes) -> Iterator[Finding]:
    """Read a table in a file dialogue by dialogue, malformed ones too.

    The rows are read several times. Of a workbook, all sheets whose columns are known.
    """
    columns = parse_columns(notes.options.columns)
    numbered = any(map(is_number, columns.values()))
    reads: dict[str, Callable[[], Iterator[Row]]] = {}
    if path.name.lower().endswith(".xlsx"):
        for title, rows in sheets_of(path, notes).items():
            reads[title] = partial(iter, rows)
    else:
        reads[""] = partial(text_rows, path, encoding_of(path, notes))
    tables: list[RecordDrafts] = []
    for title, read in reads.items():
        name = f"{path}: {title}" if len(reads) > 1 else str(path)
        try:
            records = partial(records_of, name, read, numbered=numbered)
            tables.append(RecordDrafts(records, name, columns, title))
        except InputError as error:
            if len(reads) == 1:
                raise
            reason = re.sub(f"^{re.escape(name)}:\\d+: ", "", str(error)).partition(";")[0]
            notes.add(f"passed over the sheet {title!r}: {reason}", str(path))
    for table in tables:
        table.title = table.title if len(tables) > 1 else ""
    yield from from_drafts(
        lambda notes: chain.from_iterable(table(notes) for table in tables), notes
    )
    for table in tables:
        table.take_account(notes)


def find_in_records(read: Read, name: str, notes: Notes) -> Iterator[Finding]:
    """Read conversations in records of any form.

    Records that are flat are the rows of a table; ``name`` is its place. A file of nothing but what
    `Dialogue.to_json` gives is read as it stands.
    """
    options = notes.options
    is_open = options.roles or options.gap or options.columns
    if not is_open and all(_is_written(record) for _, record in read()):
        yield from (from_record(place, record) for place, record in read())
        return
    drafts = RecordDrafts(read, name, parse_columns(options.columns))
    yield from from_drafts(drafts, notes)
    drafts.take_account(notes)


def _is_written(record: Any) -> bool:
    """Return whether a record is a dialogue as `Dialogue.to_json` gives it, in order of time."""
    if not isinstance(record, dict) or not record.keys() <= WRITTEN:
        return False
    try:
        times = [turn.time for turn in Dialogue.from_json(record).turns if turn.time]
    except InputError:
        return False
    return times == sorted(times)


def check_target(path: Path, corpus: str) -> None:
    """Refuse a place where dialogues cannot be written, before they are read."""
    if path.is_dir():
        raise InputError(f"output '{path}': got a folder, expected a file; add a file name")
    if not path.name.endswith((".jsonl", ".jsonl.gz")) and (path.is_file() or not path.exists()):
        raise InputError(
            f"output '{path}': expected a name that ends in .jsonl or .jsonl.gz; rename it"
        )
    check_not_read(path, corpus)
