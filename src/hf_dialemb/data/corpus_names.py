"""The names of corpora: registered ones such as ``sgd/test``, paths, and datasets on the Hub."""

import re
from collections.abc import Iterator
from pathlib import Path

from ..errors import InputError
from .corpus import ALL, CORPORA, get_corpus, unknown_corpus
from .reading_options import ReadingOptions
from .source import files_within

REGISTERED = "registered"  # a corpus by name
OWN = "own"  # a path
HUB = "hub"  # a dataset there

TRANSCRIPTS = (".txt", ".vtt", ".srt", ".sbv")
"""The endings of files that hold what was said in one conversation."""

VECTORS = ".parquet"  # passed over in a folder, where such files may hold vectors

_TABLES = (".csv.gz", ".tsv.gz", ".csv", ".tsv", ".xlsx")

ENDINGS = (".jsonl.gz", ".jsonl", ".ndjson", ".json", VECTORS, *_TABLES, *TRANSCRIPTS)
"""The endings of files that hold dialogues, longer ones first."""

_HUB_DATASET = re.compile(r"[\w.-]+/[\w.-]+(:[\w.-]+)?")


def is_own(corpus: str | Path) -> bool:
    """Return whether a corpus is given as a file or folder, and not by a name."""
    text = str(corpus)
    if file_ending(Path(text)) or text.startswith(("/", "./", "../", "~")):
        return True
    try:
        return bool(text) and Path(text).exists()
    except (OSError, ValueError):  # a name too long, or with a NUL in it
        return False


def file_ending(path: Path) -> str:
    """Return the ending of a file by which its reader is chosen; empty for an unknown one."""
    # Capitals do not matter, except in ".gz": the functions that unpack files look for small
    # letters.
    name = path.name.lower()
    if name.endswith(".gz") and not path.name.endswith(".gz"):
        return ""
    return next((ending for ending in ENDINGS if name.endswith(ending)), "")


def with_split(corpus: str, split: str | None = None) -> tuple[str, str | None]:
    """Split ``sgd/test`` into a corpus's name and its split; leave all other names as they are."""
    name, slash, part = corpus.partition("/")
    if not slash or name not in CORPORA or is_own(corpus):
        return corpus, split
    get_corpus(name).chosen(part)  # refuses an unknown split
    if split not in (None, "", part):
        raise InputError(
            f"split: got '{split}' for {corpus}, expected one split; leave one of the two out"
        )
    return name, part


def check_no_split(source: str, split: str | None) -> None:
    """Refuse a split of a source that has none.

    Figures would be reported for a part that was never taken.
    """
    if split not in (None, "", ALL):
        raise InputError(
            f"split: got '{split}', but {source} has no splits and is read whole; leave it out"
        )


def form_of(corpus: str, options: ReadingOptions | None = None) -> str:
    """Return whether a corpus is `REGISTERED`, `OWN` or `HUB`.

    Raises:
        InputError: It is none of them, or this form does not take an option.
    """
    chosen = options.chosen if options else {}
    if with_split(corpus)[0] in CORPORA:
        if wrong := list(chosen.keys() - {"strict"}):
            raise InputError(
                f"corpus {corpus}: got {wrong[0]}, which only files of your own take; leave it out"
            )
        return REGISTERED
    if is_own(corpus):
        return OWN
    if not _HUB_DATASET.fullmatch(corpus):
        if "/" in corpus or Path(corpus).suffix:
            raise InputError(
                f"corpus {corpus}: no such file or folder; give one that exists, or a corpus by "
                "name"
            )
        raise unknown_corpus(corpus)
    if wrong := [name for name in ("columns", "sheet") if name in chosen]:
        raise InputError(
            f"corpus {corpus}: got {wrong[0]}, which only tables of your own take; leave it out"
        )
    return HUB


def files_of(path: Path) -> Iterator[Path]:
    """Yield the files of a folder that are read, transcripts first; or the file itself."""
    if not path.is_dir():
        yield path
        return
    files = [file for file in files_within(path) if file_ending(file) not in ("", VECTORS)]
    yield from sorted(files, key=lambda file: file_ending(file) not in TRANSCRIPTS)


def has_tables(path: Path) -> bool:
    """Return whether a file has columns or fields, or a folder has such a file."""
    return any(file_ending(file) not in TRANSCRIPTS for file in files_of(path))
