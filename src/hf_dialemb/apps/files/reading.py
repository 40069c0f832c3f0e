"""Read your own conversations: files, folders, objects in memory, and rows on the Hub."""

import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any

from ...data.conversations import conversation_fault
from ...data.corpus_names import TRANSCRIPTS, VECTORS, file_ending, files_of
from ...data.hub_dataset import hub_rows
from ...data.jsonl import EXPECTED_LINES, line_records
from ...data.reading_options import ReadingOptions
from ...data.source import files_within
from ...dialogue import Dialogue
from ...errors import InputError
from .captions import transcripts
from .columns import parse_columns
from .findings import Finding, Notes, Problem, dialogues, distinct, from_drafts, with_remarks
from .record_dialogues import RecordDrafts
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
_SURVEYED = 1000  # rows of the Hub that decide who speaks, and how times are written
_PART = re.compile(r"\d{4}-\d\d-\d\d\.json|message_\d+\.json")  # of Slack, of Messenger


def read_path(
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


def find_own(path: str | Path, notes: Notes) -> Iterator[Finding]:
    """Read a file or folder as `read_path` does, and say of the malformed what is wrong."""
    path = _readable(path)
    endings = {file_ending(file) for file in files_of(path)}
    if parse_columns(notes.options.columns) and endings <= {*TRANSCRIPTS}:
        raise InputError(f"{path}: got columns, which no transcript has; leave them out")
    if notes.options.sheet and ".xlsx" not in endings:
        raise InputError(f"{path}: got a sheet, which only files of Excel have; leave it out")
    findings = _in_folder(path, notes) if path.is_dir() else _in_file(path, notes)
    return with_remarks(findings, notes, path)


def read_objects(
    items: list[Any], options: ReadingOptions, *, rows: bool, strict: bool
) -> list[Dialogue]:
    """Read dialogues in memory, or the rows of a table; if ``strict``, leave none out."""
    notes = Notes(options)
    place = "dialogues"
    records = []
    for number, item in enumerate(items):
        record = item.to_json() if isinstance(item, Dialogue) else item
        fault = "" if rows else conversation_fault(record)
        records.append((f"{place}[{number}]", InputError(fault) if fault else record))
    findings = find_in_records(partial(iter, records), "the table", notes) if records else ()
    return list(dialogues(with_remarks(findings, notes, place), place, notes, strict=strict))


def read_rows(identifier: str, split: str, options: ReadingOptions) -> Iterator[Dialogue]:
    """Read the dialogues of a dataset on the Hub as a stream, without a copy of it."""
    notes = Notes(options)
    return dialogues(find_in_hub_dataset(identifier, split, notes), identifier, notes)


def find_in_hub_dataset(identifier: str, split: str, notes: Notes) -> Iterator[Finding]:
    """Read a dataset on the Hub as `read_rows` does, malformed rows too."""
    rows = hub_rows(identifier, split, notes.options.revision, notes.options.token)
    first = list(islice(rows, _SURVEYED))  # a stream is read once: its first rows stand for all
    passes = chain([first, first, first], [chain(first, rows)])
    drafts = RecordDrafts(lambda: next(passes), identifier, {})
    if drafts.rows:
        raise InputError(
            f"{identifier}: got rows that are turns, expected a column with lists of messages; "
            "give the .parquet files of the dataset, or rename or convert yours"
        )
    findings = distinct(from_drafts(drafts, notes, drafts), identifier, "rows with messages", notes)
    return with_remarks(findings, notes, identifier)


def _in_file(path: Path, notes: Notes) -> Iterator[Finding]:
    find, expected = FORMS[file_ending(path)]
    notes.form = expected
    return distinct(find(path, notes), path, expected, notes)


def _in_folder(folder: Path, notes: Notes) -> Iterator[Finding]:
    """Read the transcripts of a folder together, and every other file by itself."""
    for file in files_within(folder):
        if file_ending(file) in ("", VECTORS):
            kind = file.suffix or "no ending"
            notes.add(f"left out a file that a folder is not read with ({kind})", str(file))
    endings = [ending for ending in FORMS if not ending.endswith((VECTORS, ".gz"))]
    return distinct(_in_files(folder, notes), folder, f"{', '.join(endings)} files", notes)


def _in_files(folder: Path, notes: Notes) -> Iterator[Finding]:
    yield from _find_in_transcripts(folder, notes)
    files = [file for file in files_of(folder) if file_ending(file) not in TRANSCRIPTS]
    options = notes.options
    has_tables = any(file_ending(file) in TABLES for file in files)
    for name, group in groupby(files, key=_whole):
        parts = list(group)
        file = parts[0] if len(parts) == 1 else name
        notes.forget(str(file))
        # What is said of columns is said of the tables, where a folder has some.
        is_beside = has_tables and file_ending(file) not in TABLES
        notes.options = replace(options, columns=None) if is_beside else options
        try:
            if len(parts) == 1 and name == file:
                for finding in _in_file(file, notes):
                    yield _named_by_file(finding, file.relative_to(folder))
            else:
                records = [(str(name), whole_chat(parts))]
                yield from find_in_records(partial(iter, records), str(name), notes)
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
