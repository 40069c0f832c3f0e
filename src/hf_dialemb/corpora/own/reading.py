"""Your own conversations: the form of a file or folder, and its dialogues."""

import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ...dialogue import Dialogue
from ...errors import InputError, nearest
from ..source import files_within
from .columns import parse_columns
from .findings import Finding, Notes, Problem, dialogues, distinct, from_drafts, with_remarks
from .forms import from_records
from .hub_dataset import parquet_records
from .jsonl import EXPECTED_LINES, json_records, line_records
from .tables import file_rows, find_in_table
from .transcripts import transcripts

Find = Callable[[Path, Mapping[str, str], Notes], Iterator[Finding]]
"""Reads a file, given what its columns mean."""


def _records(read: Callable[[Path], Iterator[tuple[str, Any]]]) -> Find:
    return lambda path, columns, notes: from_records(read(path), notes)


def _table(path: Path, columns: Mapping[str, str], notes: Notes) -> Iterator[Finding]:
    return find_in_table(partial(file_rows, path), str(path), columns, notes)


def _transcripts(path: Path, columns: Mapping[str, str], notes: Notes) -> Iterator[Finding]:
    return from_drafts(partial(transcripts, path), notes)


TRANSCRIPT = ".txt"
TABLES = (".csv", ".tsv", ".xlsx")
FORMS: dict[str, tuple[Find, str]] = {  # from an ending to the reader, and to what a file should hold
    ".jsonl": (_records(line_records), EXPECTED_LINES),
    ".jsonl.gz": (_records(line_records), EXPECTED_LINES),
    ".json": (_records(json_records), "dialogues with messages"),
    ".parquet": (_records(parquet_records), "rows with messages"),
    TRANSCRIPT: (_transcripts, "lines 'SPEAKER: text'"),
    **dict.fromkeys((*TABLES, ".csv.gz", ".tsv.gz"), (_table, "one turn per row")),
}
_ALONE = (".parquet", ".gz")  # passed over in a folder: vectors may lie there


def is_own(corpus: str | Path) -> bool:
    """Return whether a corpus is given as a file or folder, and not by a name."""
    text = str(corpus)
    if not text or _ending(Path(text)) or text.startswith(("/", "./", "../", "~")):
        return bool(text)
    try:
        return Path(text).exists()
    except (OSError, ValueError):  # a name too long, or with a NUL in it
        return False


def read_own(
    path: str | Path, *, columns: str | None = None, roles: str | None = None, skip_invalid: bool = False
) -> Iterator[Dialogue]:
    """Read the dialogues of a file or folder, one at a time.

    `FORMS` has the forms by their endings; folders are read of all but ``.parquet`` and packed files. Speakers get
    their roles as `roles` says. An InputError refuses a missing file, another form, and malformed ``columns`` or
    ``roles`` at once, and a malformed dialogue, by ``path:line``, when it is reached.
    """
    return dialogues(find_own(path, columns=columns, roles=roles), path, skip_invalid=skip_invalid)


def find_own(path: str | Path, *, columns: str | None = None, roles: str | None = None) -> Iterator[Finding]:
    """Read a file or folder as `read_own` does, malformed dialogues too."""
    path = _readable(path)
    notes, wanted = Notes(roles), parse_columns(columns)
    if wanted and not has_tables(path):
        raise InputError(f"{path}: got columns, which only {', '.join(TABLES)} files have; leave them out")
    find = _in_folder if path.is_dir() else _in_file
    return with_remarks(find(path, wanted, notes), notes, path)


def has_tables(path: Path) -> bool:
    """Return whether a file, or one of a folder, is a table."""
    return any(_ending(file).startswith(TABLES) for file in files_of(path))


def files_of(path: Path) -> Iterator[Path]:
    """List the files that are read of a folder, transcripts first; or the file itself."""
    files = [file for file in files_within(path) if _ending(file)] if path.is_dir() else [path]
    yield from (file for file in files if _ending(file) == TRANSCRIPT)
    yield from (file for file in files if _ending(file) not in (TRANSCRIPT, *(_ALONE if path.is_dir() else ())))


def _in_file(path: Path, columns: Mapping[str, str], notes: Notes) -> Iterator[Finding]:
    find, expected = FORMS[_ending(path)]
    return distinct(find(path, columns, notes), path, expected)


def _in_folder(folder: Path, columns: Mapping[str, str], notes: Notes) -> Iterator[Finding]:
    """Read the transcripts of a folder together, and each other file by itself; ids begin with the file's name."""
    for file in files_within(folder):
        if file.name.lower().endswith(_ALONE) and _ending(file) in ("", *_ALONE):
            notes.add("passed over a file that a folder is not read with; give it by itself", str(file))

    def findings() -> Iterator[Finding]:
        yield from _transcripts(folder, columns, notes)
        for file in files_of(folder):
            if _ending(file) == TRANSCRIPT:
                continue
            notes.roles.forget()
            try:
                for finding in _in_file(file, columns, notes):
                    yield _of_folder(finding, file.relative_to(folder))
            except InputError as error:
                sentence = str(error).removeprefix(f"{file}: ")
                yield Finding(str(file), problems=(Problem(str(file), sentence),))

    endings = [ending for ending in FORMS if not ending.endswith(_ALONE)]
    return distinct(findings(), folder, f"{', '.join(endings)} files")


def _of_folder(finding: Finding, file: Path) -> Finding:
    name = f"{file.as_posix()}/{finding.id}" if finding.id else ""
    dialogue = finding.dialogue
    if isinstance(dialogue, Dialogue):
        domains = dialogue.domains or tuple(filter(None, (file.parent.name,)))
        dialogue = replace(dialogue, id=name, domains=domains)
    return replace(finding, dialogue=dialogue, id=name)


def _ending(path: Path) -> str:
    # Only the packed file's own ending may be in capitals: that it is packed is told by ".gz" as it stands.
    name = path.name.removesuffix(".gz").lower() + (".gz" if path.name.endswith(".gz") else "")
    return next((ending for ending in sorted(FORMS, key=len, reverse=True) if name.endswith(ending)), "")


def _readable(given: str | Path) -> Path:
    known = f"{', '.join(FORMS)} or a folder of such files"
    try:
        path = Path(given).expanduser()
        if stat.S_ISREG(path.stat().st_mode):
            path.open("rb").close()
        else:
            next(path.iterdir(), None)  # only a folder allows this
    except (OSError, ValueError, RuntimeError) as error:  # also a NUL in the name, and the home of an unknown user
        remedy = ""
        with suppress(OSError, ValueError, RuntimeError):
            remedy = nearest(Path(given).name, [file.name for file in Path(given).expanduser().parent.iterdir()])
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{given}: cannot be read ({reason}){remedy or f'; give {known}'}") from None
    if not path.is_dir() and not _ending(path):
        raise InputError(f"{path}: got a file of another form, expected {known}; convert it to one of these")
    return path
