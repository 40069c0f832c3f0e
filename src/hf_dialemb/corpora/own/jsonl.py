"""JSON files of dialogues: read with the line of every error, written whole or not at all."""

import gzip
import io
import json
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from ...dialogue import Dialogue
from ...errors import InputError
from ...runs.files import check_not_read, write_atomically
from ..parsing import parse_json
from ..source import decompressed
from .findings import Notes, dialogues, distinct, from_drafts, with_remarks
from .forms import RecordDrafts
from .options import ReadingOptions

EXPECTED_LINES = "one JSON object with 'messages' per line"


def read_jsonl(path: str | Path, *, strict: bool = False) -> Iterator[Dialogue]:
    """Read dialogues, one per line, as `Dialogue.from_json` takes them; unpack ``.gz``, pass over blank lines.

    Malformed lines are left out with one warning; if ``strict``, the first raises an `InputError` with its place.
    """
    notes = Notes(ReadingOptions(strict=strict))
    findings = distinct(
        from_drafts(RecordDrafts(partial(line_records, Path(path))), notes), path, EXPECTED_LINES, notes
    )
    yield from dialogues(with_remarks(findings, notes, path), path, notes)


def line_records(path: Path) -> Iterator[tuple[str, Any]]:
    """Read the values of a file with one JSON value a line; an `InputError` stands for a malformed line."""
    with decompressed(path) as stream:
        for number, line in enumerate(stream, start=1):
            if line.strip():
                try:
                    remedy = "write one JSON object per line, encoded as UTF-8"
                    yield f"{path}:{number}", parse_json("", line.rstrip(b"\r\n"), remedy)
                except InputError as error:
                    yield f"{path}:{number}", error


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
        raise InputError(f"output '{path}': expected a name that ends in .jsonl or .jsonl.gz; rename it")
    check_not_read(path, corpus)


def write_jsonl(dialogues: Iterable[Dialogue], path: str | Path) -> int:
    """Write at least one dialogue, one per line, packed if the name ends in ``.gz``; return how many there were.

    If anything fails, the file stays as it was. An InputError refuses a missing folder and half characters.
    """
    path, count = Path(path), 0
    if not path.parent.is_dir():
        raise InputError(f"{path}: the folder {path.parent} does not exist; create it first")

    def write(temporary: Path) -> None:
        nonlocal count
        with temporary.open("wb") as file:
            # Without a time in its header, the same dialogues give the same file.
            packed = gzip.GzipFile("", "wb", fileobj=file, mtime=0) if path.name.endswith(".gz") else file
            with io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as stream:
                for dialogue in dialogues:
                    line = json.dumps(dialogue.to_json(), ensure_ascii=False) + "\n"
                    try:
                        line.encode("utf-8")
                    except UnicodeEncodeError:
                        place = f"{path}: dialogue {count} (id {dialogue.id!r})"
                        raise InputError(f"{place}: got a lone surrogate, expected text; remove it") from None
                    stream.write(line)
                    count += 1
        if not count:
            raise InputError(f"{path}: got no dialogue to write, expected at least one; the file is left as it was")

    write_atomically(path, write)
    return count
