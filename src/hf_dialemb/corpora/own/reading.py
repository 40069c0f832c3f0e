"""Your own conversations: which of the forms a file or folder has, and its dialogues."""

import stat
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from ...dialogue import Dialogue
from ...errors import InputError, nearest
from ..source.files import files_within
from . import exports
from .columns import parse_columns
from .findings import Finding, Notes, Problem, at_least_one, dialogues, told
from .hub_dataset import find_in_parquet
from .jsonl import find_in_jsonl, has_lines
from .roles import RoleMap
from .tables import WORKBOOK, file_rows, find_in_table
from .transcripts import ENDING, find_in_transcripts

TABLES = (".csv", ".tsv", WORKBOOK)
_READERS = {
    ".jsonl": find_in_jsonl,
    ".jsonl.gz": find_in_jsonl,
    exports.ENDING: exports.find_in_export,
    ".parquet": find_in_parquet,
    ENDING: find_in_transcripts,
}
ENDINGS = (*_READERS, *TABLES, ".csv.gz", ".tsv.gz")  # the endings of the files that are read

_ALONE = (".parquet", ".gz")  # of a folder they are passed over: vectors may lie there


def is_own(corpus: str | Path) -> bool:
    """Says whether a corpus is given as a file or folder, and not by a name."""
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
    """Reads the dialogues of a file or folder, one at a time.

    The forms are: ``.jsonl`` (see `models.dialogue`), ``.csv`` and ``.tsv`` (see `tables.find_in_table`), each of them
    packed as ``.gz`` as well; ``.xlsx``; ``.json`` (see `exports`), also with an object a line; ``.parquet`` (see
    `hub_dataset`); ``.txt`` (see `transcripts.find_in_transcripts`); and folders of all but ``.parquet``. Speakers get
    their roles as `roles` says. An InputError says at once that there is no such file, that it has no form that is
    read, or that ``columns`` or ``roles`` are malformed; while reading, that a dialogue is, by ``path:line``.
    """
    return dialogues(find_own(path, columns=columns, roles=roles), path, skip_invalid=skip_invalid)


def find_own(path: str | Path, *, columns: str | None = None, roles: str | None = None) -> Iterator[Finding]:
    """Reads a file or folder as `read_own` does, malformed dialogues too."""
    path = _readable(path)
    named, wanted, notes = RoleMap.parse(roles), parse_columns(columns), Notes()
    if wanted and not has_tables(path):
        raise InputError(f"{path}: got columns, which only {', '.join(TABLES)} files have; leave them out")
    found = _in_folder(path, wanted, named, notes) if path.is_dir() else _in_file(path, wanted, named, notes)
    return told(found, named, notes, path)


def has_tables(path: Path) -> bool:
    """Says whether a file, or one of a folder, is a table."""
    return any(_ending(file).startswith(TABLES) for file in files_of(path))


def files_of(path: Path) -> Iterator[Path]:
    """Lists the files that are read of a folder, transcripts first; or the file itself."""
    found = [file for file in files_within(path) if _ending(file)] if path.is_dir() else [path]
    yield from (file for file in found if _ending(file) == ENDING)
    yield from (file for file in found if _ending(file) not in (ENDING, *(_ALONE if path.is_dir() else ())))


def _in_file(path: Path, columns: Mapping[str, str], roles: RoleMap, notes: Notes) -> Iterator[Finding]:
    ending = _ending(path)
    if ending.startswith(TABLES):
        return find_in_table(partial(file_rows, path), str(path), columns, roles, notes)
    if ending == exports.ENDING and has_lines(path):
        ending = ".jsonl"
    return _READERS[ending](path, roles, notes)


def _in_folder(folder: Path, columns: Mapping[str, str], roles: RoleMap, notes: Notes) -> Iterator[Finding]:
    """Reads the transcripts of a folder together, and each other file by itself; ids begin with the file's name."""
    for file in files_within(folder):
        if file.name.lower().endswith(_ALONE) and _ending(file) in ("", *_ALONE):
            notes.add("passed over a file that a folder is not read with; give it by itself", str(file))

    def findings() -> Iterator[Finding]:
        yield from find_in_transcripts(folder, roles, notes)
        for file in files_of(folder):
            if _ending(file) == ENDING:
                continue
            inner = file.relative_to(folder)
            try:  # who is who, each file tells for itself
                for finding in _in_file(file, columns, replace(roles, spoken=Counter(), notes=set()), notes):
                    yield _of_folder(finding, inner)
            except InputError as error:
                sentence = str(error).removeprefix(f"{file}: ")
                yield Finding(str(file), problems=(Problem(str(file), sentence),))

    return at_least_one(findings(), folder, f"{', '.join(dict.fromkeys((ENDING, *_READERS, *TABLES)))} files")


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
            next(path.iterdir(), None)  # which only a folder lets one do
    except OSError as error:
        remedy = f"; give {known}"
        with suppress(OSError):
            beside = [each.name for each in Path(given).expanduser().parent.iterdir()]
            remedy = nearest(Path(given).name, beside) or remedy
        raise InputError(f"{given}: cannot be read ({error.strerror or error}){remedy}") from None
    except (ValueError, RuntimeError) as error:  # a NUL in the name; nobody's home
        raise InputError(f"{str(given)!r}: cannot be read ({error}); give {known}") from None
    if not path.is_dir() and not _ending(path):
        raise InputError(f"{path}: got a file of another form, expected {known}; convert it to one of these")
    return path
