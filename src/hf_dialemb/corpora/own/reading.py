"""Your own conversations: the form of a file or folder, and its dialogues."""

import stat
from collections import Counter
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
from .findings import Finding, Notes, Problem, at_least_one, dialogues, distinct, with_remarks
from .forms import from_records
from .hub_dataset import parquet_records
from .jsonl import EXPECTED_LINES, json_records, line_records
from .roles import RoleMap
from .tables import WORKBOOK, file_rows, find_in_table
from .transcripts import ENDING, find_in_transcripts

TABLES = (".csv", ".tsv", WORKBOOK)
Records = Callable[[Path], Iterator[tuple[str, Any]]]
_RECORDS: dict[str, tuple[Records, str]] = {  # from an ending to the reader, and to what a file should hold
    ".jsonl": (line_records, EXPECTED_LINES),
    ".jsonl.gz": (line_records, EXPECTED_LINES),
    ".json": (json_records, "dialogues with messages"),
    ".parquet": (parquet_records, "rows with messages"),
}
ENDINGS = (*_RECORDS, ENDING, *TABLES, ".csv.gz", ".tsv.gz")  # of the files that are read

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

    The forms are: ``.jsonl`` (see `hf_dialemb.dialogue`), ``.csv`` and ``.tsv`` (see `tables.find_in_table`), each of
    them packed as ``.gz`` as well; ``.xlsx``; ``.json`` (see `forms`), also with an object a line; ``.parquet`` (see
    `hub_dataset`); ``.txt`` (see `transcripts.find_in_transcripts`); and folders of all but ``.parquet``. Speakers get
    their roles as `roles` says. An InputError refuses a missing file, another form, and malformed ``columns`` or
    ``roles`` at once, and a malformed dialogue, by ``path:line``, when it is reached.
    """
    return dialogues(find_own(path, columns=columns, roles=roles), path, skip_invalid=skip_invalid)


def find_own(path: str | Path, *, columns: str | None = None, roles: str | None = None) -> Iterator[Finding]:
    """Read a file or folder as `read_own` does, malformed dialogues too."""
    path = _readable(path)
    speakers, wanted, notes = RoleMap.parse(roles), parse_columns(columns), Notes()
    if wanted and not has_tables(path):
        raise InputError(f"{path}: got columns, which only {', '.join(TABLES)} files have; leave them out")
    find = _in_folder if path.is_dir() else _in_file
    return with_remarks(find(path, wanted, speakers, notes), speakers, notes, path)


def has_tables(path: Path) -> bool:
    """Return whether a file, or one of a folder, is a table."""
    return any(_ending(file).startswith(TABLES) for file in files_of(path))


def files_of(path: Path) -> Iterator[Path]:
    """List the files that are read of a folder, transcripts first; or the file itself."""
    files = [file for file in files_within(path) if _ending(file)] if path.is_dir() else [path]
    yield from (file for file in files if _ending(file) == ENDING)
    yield from (file for file in files if _ending(file) not in (ENDING, *(_ALONE if path.is_dir() else ())))


def _in_file(path: Path, columns: Mapping[str, str], roles: RoleMap, notes: Notes) -> Iterator[Finding]:
    ending = _ending(path)
    if ending in _RECORDS:
        records, expected = _RECORDS[ending]
        findings = from_records(records(path), roles, notes)
    elif ending == ENDING:
        findings, expected = find_in_transcripts(path, roles, notes), "lines 'SPEAKER: text'"
    else:
        findings = find_in_table(partial(file_rows, path), str(path), columns, roles, notes)
        expected = "one turn per row"
    return at_least_one(distinct(findings), path, expected)


def _in_folder(folder: Path, columns: Mapping[str, str], roles: RoleMap, notes: Notes) -> Iterator[Finding]:
    """Read the transcripts of a folder together, and each other file by itself; ids begin with the file's name."""
    for file in files_within(folder):
        if file.name.lower().endswith(_ALONE) and _ending(file) in ("", *_ALONE):
            notes.add("passed over a file that a folder is not read with; give it by itself", str(file))

    def findings() -> Iterator[Finding]:
        yield from distinct(find_in_transcripts(folder, roles, notes))
        for file in files_of(folder):
            if _ending(file) == ENDING:
                continue
            inner = file.relative_to(folder)
            try:  # each file is a source of its own for guesses
                for finding in _in_file(file, columns, replace(roles, spoken=Counter(), notes=set()), notes):
                    yield _of_folder(finding, inner)
            except InputError as error:
                sentence = str(error).removeprefix(f"{file}: ")
                yield Finding(str(file), problems=(Problem(str(file), sentence),))

    return at_least_one(findings(), folder, f"{', '.join((ENDING, *_RECORDS, *TABLES))} files")


def _of_folder(finding: Finding, file: Path) -> Finding:
    dialogue, name = finding.dialogue, f"{file.as_posix()}/{finding.id}"
    if not isinstance(dialogue, Dialogue):
        return finding
    domains = dialogue.domains or tuple(filter(None, (file.parent.name,)))
    return replace(finding, dialogue=replace(dialogue, id=name if finding.id else "", domains=domains))


def _ending(path: Path) -> str:
    # Only the packed file's own ending may be in capitals: that it is packed is told by ".gz" as it stands.
    name = path.name.removesuffix(".gz").lower() + (".gz" if path.name.endswith(".gz") else "")
    return next((ending for ending in sorted(ENDINGS, key=len, reverse=True) if name.endswith(ending)), "")


def _readable(given: str | Path) -> Path:
    known = f"{', '.join(ENDINGS)} or a folder of such files"
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
