"""Dialogues in your own files: one JSON object per line, errors that name the line, writing that is all or nothing."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..models.dialogue import Dialogue
from ..models.errors import InputError
from .records import convert_records
from .source import parse_json


def read_jsonl(path: str | Path, *, skip_invalid: bool = False) -> Iterator[Dialogue]:
    """Reads dialogues line by line; lines that are blank are passed over.

    Args:
        path: The file; each line is an object as `Dialogue.from_json` takes it.
        skip_invalid: Leave malformed lines out with one warning, instead of raising.

    Yields:
        The dialogues, in the order of the lines.

    Raises:
        InputError: The file is missing or holds no dialogue, or a line is malformed; the sentence begins with
            ``path:line``.
    """
    empty = True
    for dialogue in convert_records(_lines(Path(path)), _dialogue, skip_invalid=skip_invalid):
        empty = False
        yield dialogue
    if empty:
        raise InputError(f"{path}: got no dialogue, expected one JSON object with 'messages' per line; fill the file")


def write_jsonl(dialogues: Iterable[Dialogue], path: str | Path) -> int:
    """Writes dialogues, one per line: the file is there in full or, if anything fails, as it was before.

    Args:
        dialogues: At least one dialogue.
        path: The file to write or to replace.

    Returns:
        How many dialogues were written.

    Raises:
        InputError: The folder does not exist, there is no dialogue, or a text cannot be encoded.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise InputError(f"{path}: the folder {path.parent} does not exist; create it first")
    # In the same folder, since a rename is atomic only within one file system.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    count = 0
    try:
        with temporary.open("x", encoding="utf-8", newline="\n") as stream:
            for dialogue in dialogues:
                stream.write(_line(dialogue, f"{path}: dialogue {count} (id {dialogue.id!r})"))
                count += 1
            stream.flush()
            os.fsync(stream.fileno())
        if not count:
            raise InputError(f"{path}: got no dialogue to write, expected at least one; the file is left as it was")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return count


def _lines(path: Path) -> Iterator[tuple[str, bytes]]:
    try:
        stream = path.open("rb")
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror}); give a .jsonl file with one dialogue per line"
        ) from None
    with stream:
        for number, line in enumerate(stream, start=1):
            if line.strip():
                yield f"{path}:{number}", line


def _dialogue(line: bytes) -> Dialogue:
    record = parse_json("", line.rstrip(b"\r\n"), "write one JSON object per line, encoded as UTF-8")
    dialogue = Dialogue.from_json(record)
    if b"\\ud" in line.lower():
        _line(dialogue, "field messages")
    return dialogue


def _line(dialogue: Dialogue, place: str) -> str:
    text = json.dumps(dialogue.to_json(), ensure_ascii=False) + "\n"
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        # JSON can spell half a character as an escape; no tokenizer and no file can hold it.
        raise InputError(f"{place}: got the lone surrogate {text[error.start]!r}, expected text; remove it") from None
    return text
