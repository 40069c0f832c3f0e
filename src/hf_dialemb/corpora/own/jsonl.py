"""Dialogues in your own files: one JSON object per line, errors that name the line, writing that is all or nothing."""

import gzip
import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from ...dialogue import Dialogue
from ...errors import InputError
from ...runs.files import check_not_read, write_atomically
from ..source.parsing import parse_json
from ..source.streams import decompressed
from .exports import find_in_record
from .findings import Finding, Notes, Problem, at_least_one, dialogues, distinct, told
from .roles import RoleMap


def read_jsonl(path: str | Path, *, skip_invalid: bool = False) -> Iterator[Dialogue]:
    """Reads dialogues line by line; lines that are blank are passed over.

    Args:
        path: The file, packed if its name ends in ``.gz``; each line is an object as `Dialogue.from_json` takes it.
        skip_invalid: Leave malformed lines out with one warning, instead of raising.

    Yields:
        The dialogues, in the order of the lines.

    Raises:
        InputError: The file is missing or holds no dialogue, or a line is malformed; the sentence begins with
            ``path:line``.
    """
    roles, notes = RoleMap(), Notes()
    found = told(find_in_jsonl(Path(path), roles, notes), roles, notes, path)
    yield from dialogues(found, path, skip_invalid=skip_invalid)


def find_in_jsonl(path: Path, roles: RoleMap, notes: Notes) -> Iterator[Finding]:
    """Reads a file line by line, malformed lines too."""
    findings = distinct(filter(None, _find(path, roles, notes)))
    yield from at_least_one(findings, path, "one JSON object with 'messages' per line")


def has_lines(path: Path) -> bool:
    """Says whether a file holds a JSON value a line, and not one in all."""
    with decompressed(path) as stream:
        lines = (line for line in stream if line.strip())
        first = next(lines, b"")
        try:
            return bool(next(lines, b"")) and isinstance(parse_json("", first, ""), dict | list)
        except InputError:
            return False


def check_target(path: Path, corpus: str) -> None:
    """Makes sure that dialogues can be written before they are read."""
    if path.is_dir():
        raise InputError(f"output '{path}': got a folder, expected a file; add a file name")
    if not path.name.endswith((".jsonl", ".jsonl.gz")) and (path.is_file() or not path.exists()):
        raise InputError(f"output '{path}': expected a name that ends in .jsonl or .jsonl.gz; rename it")
    check_not_read(path, corpus)


def write_jsonl(dialogues: Iterable[Dialogue], path: str | Path) -> int:
    """Writes dialogues, one per line: the file is there in full or, if anything fails, as it was before.

    Args:
        dialogues: At least one dialogue.
        path: The file to write or to replace; packed if its name ends in ``.gz``.

    Returns:
        How many dialogues were written.

    Raises:
        InputError: The folder does not exist, there is no dialogue, or a text cannot be encoded.
    """
    path, count = Path(path), 0
    if not path.parent.is_dir():
        raise InputError(f"{path}: the folder {path.parent} does not exist; create it first")

    def write(temporary: Path) -> None:
        nonlocal count
        with temporary.open("wb") as file:
            # Without the time in its header, the same dialogues give the same file.
            packed = gzip.GzipFile("", "wb", fileobj=file, mtime=0) if path.name.endswith(".gz") else file
            with io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as stream:
                for dialogue in dialogues:
                    stream.write(_line(dialogue, f"{path}: dialogue {count} (id {dialogue.id!r})"))
                    count += 1
        if not count:
            raise InputError(f"{path}: got no dialogue to write, expected at least one; the file is left as it was")

    write_atomically(path, write)
    return count


def _find(path: Path, roles: RoleMap, notes: Notes) -> Iterator[Finding | None]:
    with decompressed(path) as stream:
        for number, line in enumerate(stream, start=1):
            if line.strip():
                yield _finding(f"{path}:{number}", line, roles, notes)


def _finding(place: str, line: bytes, roles: RoleMap, notes: Notes) -> Finding | None:
    try:
        record = parse_json("", line.rstrip(b"\r\n"), "write one JSON object per line, encoded as UTF-8")
    except InputError as error:
        return Finding(place, problems=(Problem(place, str(error)),))
    return find_in_record(place, record, roles, notes)


def _line(dialogue: Dialogue, place: str) -> str:
    text = json.dumps(dialogue.to_json(), ensure_ascii=False) + "\n"
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        # JSON can spell half a character as an escape; no tokenizer and no file can hold it.
        raise InputError(f"{place}: got the lone surrogate {text[error.start]!r}, expected text; remove it") from None
    return text
