"""Files of records, such as JSON and Parquet.

Each record is a conversation of some form, or a row of a table.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
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
from .record_dialogues import Read, RecordDrafts
from .workbook import parquet_rows


def find_in_lines(path: Path, notes: Notes) -> Iterator[Finding]:
    """Read a file with one JSON value a line."""
    return find_in_records(partial(line_records, path), str(path), notes)


def find_in_json(path: Path, notes: Notes) -> Iterator[Finding]:
    """Read a JSON file, or one that holds a value a line."""
    return find_in_records(partial(_json_records, path), str(path), notes)


def _json_records(path: Path) -> Iterator[tuple[str, Any]]:
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
    value = parse_json(str(path), content, "export it again as JSON")
    items = value if isinstance(value, list) else [value]
    for number, item in enumerate(items, start=1):
        yield f"{path}: dialogue {number}" if len(items) > 1 else str(path), item


def whole_chat(files: Sequence[Path], notes: Notes) -> dict[str, Any]:
    """Join the files of a channel or a chat: days, or numbered parts; users may lie beside."""
    people = [_json(folder / "users.json") for folder in (files[0].parent, files[0].parents[1])]
    whole: dict[str, Any] = {
        "id": files[0].parent.name,
        "channel": files[0].parent.name,
        "users": next(filter(None, people), []),
        "messages": [],
    }
    for file in files:
        value = _json(file)
        if isinstance(value, dict):
            whole |= {name: inner for name, inner in value.items() if name != "messages"}
            value = value.get("messages")
        if isinstance(value, list):
            whole["messages"] += value
        else:
            sentence = "is not JSON of messages, and was left out; export it again"
            notes.put(Problem(str(file), sentence, "warning"))
    return whole


def _json(path: Path) -> Any:
    with suppress(ValueError, OSError):
        return json.loads(path.read_bytes())
    return None


def find_in_parquet(path: Path, notes: Notes) -> Iterator[Finding]:
    """Read a file whose rows are conversations, or the rows of a table."""

    def records() -> Iterator[tuple[str, Any]]:
        return ((f"{path}: row {index}", row) for index, row in enumerate(parquet_rows(path)))

    yield from find_in_records(records, str(path), notes)


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
