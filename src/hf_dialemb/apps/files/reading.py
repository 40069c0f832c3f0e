"""Read your own conversations: a file by the reader for its ending, or a folder of files."""

import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ...data.corpus_names import TRANSCRIPTS, VECTORS, file_ending, files_of, has_tables
from ...data.jsonl import EXPECTED_LINES, line_records
from ...data.reading_options import ReadingOptions
from ...data.source import files_within
from ...dialogue import Dialogue
from ...errors import InputError, nearest
from .captions import transcripts
from .columns import parse_columns
from .findings import Finding, Notes, Problem, dialogues, distinct, from_drafts, with_remarks
from .forms import form_of_folder
from .in_memory import read_objects as read_objects
from .in_memory import read_rows as read_rows
from .json_files import find_in_parquet, find_in_records, json_records
from .turn_tables import find_in_file

Find = Callable[[Path, Mapping[str, str], Notes], Iterator[Finding]]
"""Reads a file, given what its columns mean, and notes what it left out or guessed."""


def _reader_of(read: Callable[[Path], Iterator[tuple[str, Any]]]) -> Find:
    """Make a reader for a form of records, which have no columns."""
    return lambda path, columns, notes: find_in_records(partial(read, path), str(path), notes)


def _read_transcripts(path: Path, columns: Mapping[str, str], notes: Notes) -> Iterator[Finding]:
    return from_drafts(partial(transcripts, path), notes)


TABLES = (".csv", ".tsv", ".xlsx")
FORMS: dict[str, tuple[Find, str]] = {  # by ending: the reader, and what a file should hold
    ".jsonl": (_reader_of(line_records), EXPECTED_LINES),
    ".jsonl.gz": (_reader_of(line_records), EXPECTED_LINES),
    ".json": (_reader_of(json_records), "dialogues with messages"),
    ".parquet": (find_in_parquet, "rows with messages"),
    **dict.fromkeys(TRANSCRIPTS, (_read_transcripts, "lines 'SPEAKER: text'")),
    **dict.fromkeys((*TABLES, ".csv.gz", ".tsv.gz"), (find_in_file, "one turn per row")),
}
_PACKED = (".zip", ".7z", ".tar", ".tgz", ".rar")


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
    """Read a file or folder as `read_own` does, but with the malformed dialogues and what is wrong
    with them.
    """
    path = _readable(path)
    meanings = parse_columns(notes.options.columns)
    if meanings and not has_tables(path):
        raise InputError(f"{path}: got columns, which no transcript has; leave them out")
    if notes.options.sheet and not any(file_ending(file) == ".xlsx" for file in files_of(path)):
        raise InputError(
            f"{path}: got the sheet {notes.options.sheet!r}, which only files of Excel have; leave "
            "it out"
        )
    form = form_of_folder(path) if path.is_dir() else None
    if form and form.drafts:
        findings = distinct(
            from_drafts(partial(form.drafts, path), notes), path, form.dialogue, notes
        )
    else:
        findings = (_in_folder if path.is_dir() else _in_file)(path, meanings, notes)
    return with_remarks(findings, notes, path)


def _in_file(path: Path, columns: Mapping[str, str], notes: Notes) -> Iterator[Finding]:
    find, notes.form = FORMS[file_ending(path)]
    expected = notes.form
    return distinct(find(path, columns, notes), path, expected, notes)


def _in_folder(folder: Path, columns: Mapping[str, str], notes: Notes) -> Iterator[Finding]:
    """Read the transcripts of a folder together, and every other file by itself.

    Ids begin with the file's name.
    """
    for file in files_within(folder):
        if file_ending(file) == VECTORS or (
            not file_ending(file) and file.name.lower().endswith(".gz")
        ):
            notes.add(
                "left out a file that a folder is not read with; give it by itself", str(file)
            )
        elif not file_ending(file):
            notes.add(
                f"left out a file of an unknown form ({file.suffix or 'no ending'})", str(file)
            )

    def findings() -> Iterator[Finding]:
        yield from _read_transcripts(folder, columns, notes)
        for file in files_of(folder):
            if file_ending(file) in TRANSCRIPTS:
                continue
            notes.forget(str(file))
            try:
                for finding in _in_file(file, columns, notes):
                    yield _named_by_file(finding, file.relative_to(folder))
            except InputError as error:
                sentence = str(error).removeprefix(f"{file}: ")
                yield Finding(str(file), problems=(Problem(str(file), sentence),))
        notes.form = ""  # of several

    endings = [ending for ending in FORMS if not ending.endswith((VECTORS, ".gz"))]
    return distinct(findings(), folder, f"{', '.join(endings)} files", notes)


def _named_by_file(finding: Finding, file: Path) -> Finding:
    """Put the file before the id; a dialogue without a domain takes the subfolder's name."""
    name = f"{file.as_posix()}/{finding.id}" if finding.id else ""
    dialogue = finding.dialogue
    if isinstance(dialogue, Dialogue):
        domains = dialogue.domains or tuple(filter(None, (file.parent.name,)))
        dialogue = replace(dialogue, id=name, domains=domains)
    return replace(finding, dialogue=dialogue, id=name)


def _readable(given: str | Path) -> Path:
    """Return a path, with ``~`` expanded.

    Raise InputError if it cannot be read, or its form is unknown.
    """
    known = f"{', '.join(FORMS)} or a folder of such files"
    try:
        path = Path(given).expanduser()
        if stat.S_ISREG(path.stat().st_mode):
            path.open("rb").close()
        else:
            next(path.iterdir(), None)  # only a folder allows this
    except (
        OSError,
        ValueError,
        RuntimeError,
    ) as error:  # of a NUL in the name, or the home of an unknown user
        remedy = ""
        with suppress(OSError, ValueError, RuntimeError):
            remedy = nearest(
                Path(given).name, [file.name for file in Path(given).expanduser().parent.iterdir()]
            )
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"{given}: cannot be read ({reason}){remedy or f'; give {known}'}"
        ) from None
    if not path.is_dir() and not file_ending(path):
        remedy = "unpack it" if path.suffix.lower() in _PACKED else "convert it to one of these"
        raise InputError(f"{path}: got a file of an unknown form, expected {known}; {remedy}")
    return path
