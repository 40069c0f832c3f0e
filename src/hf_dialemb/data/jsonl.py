"""Files of one dialogue a line: read with the line of every error, written whole or not at all."""

import gzip
import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..dialogue import Dialogue
from ..errors import InputError
from ..storage.files import write_atomically
from .parsing import parse_json
from .raw_records import convert_records, readable
from .source import decompressed

EXPECTED_LINES = "one JSON object with 'messages' per line"


def read_jsonl(path: str | Path, *, strict: bool = False) -> Iterator[Dialogue]:
    """Read dialogues, one per line, as `Dialogue.from_json` takes them; unpack ``.gz``.

    Malformed lines are left out with one warning.

    Args:
        path: The file.
        strict: Whether the first malformed line raises an `InputError` with its place.

    Raises:
        InputError: The file is missing or empty, or more than a fifth of it is malformed.
    """
    empty = InputError(f"{path}: got no dialogue, expected {EXPECTED_LINES}; fill the file")
    dialogues = convert_records(line_records(Path(path)), _dialogue)
    yield from readable(dialogues, str(path), strict=strict, empty=empty)


def _dialogue(record: Any) -> Dialogue:
    if isinstance(record, InputError):
        raise record
    return Dialogue.from_json(record)


def line_records(path: Path) -> Iterator[tuple[str, Any]]:
    """Read the values of a file with one JSON value a line; pass over blank lines.

    An `InputError` stands for a malformed line.
    """
    remedy = "write one JSON object per line, encoded as UTF-8"
    with decompressed(path) as stream:
        for number, line in enumerate(stream, start=1):
            if line.strip():
                try:
                    record = parse_json("", line.rstrip(b"\r\n"), remedy)
                except InputError as error:
                    record = error
                yield f"{path}:{number}", record


def write_jsonl(dialogues: Iterable[Dialogue], path: str | Path) -> int:
    """Write at least one dialogue, one per line, packed if the name ends in ``.gz``.

    If anything fails, the file stays as it was.

    Returns:
        The number of dialogues.

    Raises:
        InputError: There is no dialogue.
    """
    path = Path(path)
    count = 0

    def write(temporary: Path) -> None:
        nonlocal count
        with temporary.open("wb") as file:
            stored: Any = file
            if path.name.endswith(".gz"):
                # without a time in its header, the same dialogues give the same file
                stored = gzip.GzipFile("", "wb", fileobj=file, mtime=0)
            with io.TextIOWrapper(stored, encoding="utf-8", newline="\n") as stream:
                for dialogue in dialogues:
                    stream.write(json.dumps(dialogue.to_json(), ensure_ascii=False) + "\n")
                    count += 1
        if not count:
            raise InputError(
                f"{path}: got no dialogue to write, expected at least one; the file is left as it "
                "was"
            )

    write_atomically(path, write)
    return count
