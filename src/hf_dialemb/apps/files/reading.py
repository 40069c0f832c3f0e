"""Read your own conversations: a file by the reader for its ending, or a folder of files."""

import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path

from ...data.corpus_names import TRANSCRIPTS, VECTORS, file_ending, files_of
from ...data.jsonl import EXPECTED_LINES, line_records
from ...data.reading_options import ReadingOptions
from ...data.source import files_within
from ...dialogue import Dialogue
from ...errors import InputError
from .captions import transcripts
from .columns import parse_columns
from .findings import Finding, Notes, Problem, dialogues, distinct, from_drafts, with_remarks
from .in_memory import read_objects as read_objects
from .in_memory import read_rows as read_rows
from .record_files import (
    find_in,
    find_in_records,
    find_in_table,
    json_records,
    parquet_records,
    whole_chat,
)

Find = Callable[[Path, Notes], Iterator[Finding]]
"""Reads a file, and notes what it left out or guessed."""


def _find_in_transcripts(path: Path, notes: Notes) -> Iterator[Finding]:
    return from_drafts(partial(transcripts, path), notes)


TABLES = (".csv", ".tsv", ".xlsx", ".csv.gz", ".tsv.gz")
LINES = (".jsonl", ".ndjson", ".jsonl.gz")
FORMS: dict[str, tuple[Find, str]] = {  # by ending: the reader, and what a file should hold
    **dict.fromkeys(LINES, (partial(find_in, line_records), EXPECTED_LINES)),
    ".json": (partial(find_in, json_records), "dialogues with messages"),
    ".parquet": (partial(find_in, parquet_records), "rows with messages"),
    **dict.fromkeys(TRANSCRIPTS, (_find_in_transcripts, "lines 'SPEAKER: text'")),
    **dict.fromkeys(TABLES, (find_in_table, "one turn per row")),
}
_PART = re.compile(r"\d{4}-\d\d-\d\d\.json|message_\d+\.json")  # of Slack, of Messenger


def read_own(
    path: str | Path, options: ReadingOptions | None = None, *, silent: bool = False
) -> Iterator[Dialogue]:
    """Read the dialogues of a file or folder, one at a time.

    `FORMS` lists the endings that are read; a folder's ``.parquet`` files are passed over, since
    vectors may lie in them. The module `roles` says which speaker gets which role. If ``silent``,
    nothing is logged. An InputError comes at once if the file is missing or of an unknown form, or
    an option is malformed; for a malformed dialogue, if it shall be strict, when it is reached; and
    at the end, if more than a fifth are.
    """
    notes = Notes(options)
    return dialogues(find_own(path, notes), path, notes, silent=silent)


def read_path(path: str, options: ReadingOptions) -> Iterator[Dialogue]:
    """Read a file or a folder for `load_dialogues`."""
    return read_own(path, options)


def find_own(path: str | Path, notes: Notes) -> Iterator[Finding]:
    """Read a file or folder as `read_own` does, and say of the malformed what is wrong."""
    path = _readable(path)
    endings = {file_ending(file) for file in files_of(path)}
    if parse_columns(notes.options.columns) and endings <= {*TRANSCRIPTS}:
        raise InputError(f"{path}: got columns, which no transcript has; leave them out")
    if notes.options.sheet and ".xlsx" not in endings:
        raise InputError(f"{path}: got a sheet, which only files of Excel have; leave it out")
    findings = _in_folder(path, notes) if path.is_dir() else _in_file(path, notes)
    return with_remarks(findings, notes, path)


def _in_file(path: Path, notes: Notes) -> Iterator[Finding]:
    find, expected = FORMS[file_ending(path)]
    notes.form = expected
    return distinct(find(path, notes), path, expected, notes)


def _in_folder(folder: Path, notes: Notes) -> Iterator[Finding]:
    """Read the transcripts of a folder together, and every other file by itself."""
    for file in files_within(folder):
        if file_ending(file) in ("", VECTORS):
            kind = file.suffix or "no ending"
            sentence = f"left out a file that a folder is not read with ({kind})"
            notes.add(sentence, str(file))
    endings = [ending for ending in FORMS if not ending.endswith((VECTORS, ".gz"))]
    return distinct(_in_files(folder, notes), folder, f"{', '.join(endings)} files", notes)


def _in_files(folder: Path, notes: Notes) -> Iterator[Finding]:
    yield from _find_in_transcripts(folder, notes)
    files = [file for file in files_of(folder) if file_ending(file) not in TRANSCRIPTS]
    options = notes.options
    tables = {file for file in files if file_ending(file) in TABLES}
    for name, parts in groupby(files, key=_whole):
        several = list(parts)
        file = several[0] if len(several) == 1 and name == several[0] else name
        notes.forget(str(file))
        # What is said of columns is said of the tables, where a folder has some.
        is_beside = bool(tables) and file not in tables
        notes.options = replace(options, columns=None) if is_beside else options
        try:
            if file in several:
                for finding in _in_file(file, notes):
                    yield _named_by_file(finding, file.relative_to(folder))
            else:
                record = whole_chat(several, notes)
                yield from find_in_records(partial(list, [(str(name), record)]), str(name), notes)
        except InputError as error:
            sentence = str(error).removeprefix(f"{file}: ")
            if "got no dialogue" in sentence or "no column for content" in sentence:
                notes.add(f"left out {file.name}, in which nobody says anything", str(file))
            else:
                yield Finding(str(file), problems=(Problem(str(file), sentence),))
    notes.options = options
    notes.form = ""  # of several


def _whole(file: Path) -> Path:
    """Return what a file is a part of: the folder of a channel or a chat, or itself."""
    return file.parent if _PART.fullmatch(file.name) else file


def _named_by_file(finding: Finding, file: Path) -> Finding:
    """Put the file before the id; a dialogue without a domain takes the subfolder's name."""
    name = f"{file.as_posix()}/{finding.id}" if finding.id else ""
    dialogue = finding.dialogue
    if dialogue is not None:
        domains = dialogue.domains or tuple(filter(None, (file.parent.name,)))
        dialogue = replace(dialogue, id=name, domains=domains)
    return replace(finding, dialogue=dialogue, id=name)


def _readable(given: str | Path) -> Path:
    """Return a path, with ``~`` expanded.

    Raises:
        InputError: It cannot be read, or its form is unknown.
    """
    known = f"{', '.join(FORMS)} or a folder of such files"
    try:
        path = Path(given).expanduser()
        if stat.S_ISREG(path.stat().st_mode):
            path.open("rb").close()
        else:
            next(path.iterdir(), None)  # only a folder allows this
    # of a NUL in the name, or the home of an unknown user
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{given}: cannot be read ({reason}); give {known}") from None
    if not path.is_dir() and not file_ending(path):
        raise InputError(f"{path}: got a file of an unknown form, expected {known}; convert it")
    return path
