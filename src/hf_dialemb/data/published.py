"""Read the published corpora of the registry: find their files, convert their records."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

from ..dialogue import Dialogue
from ..display import table_lines
from ..errors import explained
from .corpus import CORPORA, SPLITS, Corpus, Records, get_corpus
from .raw_records import convert_records, readable
from .source import ARCHIVE_SUFFIXES, MissingFilesError, Source, is_archive, undamaged

DATA_VARIABLE = "HF_DIALEMB_DATA"  # the environment variable that names the data folder


def iterate_examples(
    corpus: str, data_dir: str | Path | None = None, split: str = "train", *, strict: bool = False
) -> Iterator[Any]:
    """Read one split of a published corpus of any kind, an item at a time.

    The corpus's kind decides the type, such as `Dialogue`. Malformed records are left
    out and counted; if ``strict``, the first one is an error.
    """
    return read_split(get_corpus(corpus), data_dir, split, strict)


def load_examples(
    corpus: str, data_dir: str | Path | None = None, split: str = "train", *, strict: bool = False
) -> list[Any]:
    """Load the items of `iterate_examples` into a list."""
    return list(iterate_examples(corpus, data_dir, split, strict=strict))


def single_domain(dialogues: Iterable[Dialogue]) -> list[Dialogue]:
    """Keep the dialogues of exactly one domain, in order.

    The dial2vec paper's dev and test sets (section 4.2).
    """
    return [dialogue for dialogue in dialogues if len(dialogue.domains) == 1]


def splits_at_hand(
    corpus: Corpus, data_dir: str | Path | None = None, splits: Sequence[str] = SPLITS
) -> Iterator[str]:
    """List those splits of a corpus that can be read."""
    for split in corpus.splits:
        if split in splits:
            with suppress(MissingFilesError):
                next(read_split(corpus, data_dir, split, strict=False), None)
                yield split


def find_source(corpus: Corpus, data_dir: str | Path | None = None) -> Source | None:
    """Find the files of a corpus.

    Return None if it needs none, raise `MissingFilesError` if they are not there.
    """
    if not corpus.patterns:
        return None
    folder = data_dir or os.environ.get(DATA_VARIABLE)
    if not folder:
        raise MissingFilesError(
            f"Corpus {corpus.name} needs its files: got no data folder; give --data-dir or set "
            f"{DATA_VARIABLE}"
        )
    base = Path(folder)
    with suppress(RuntimeError):  # the home of an unknown user
        base = base.expanduser()
    if is_archive(base):
        return Source(base)
    if not base.is_dir():
        raise MissingFilesError(
            f"Corpus {corpus.name}: no such folder or archive: {base}; correct --data-dir or "
            f"{DATA_VARIABLE}"
        )
    for name in dict.fromkeys((corpus.name, corpus.folder or corpus.name)):
        for candidate in (
            folder / f"{name}{ending}"
            for folder in (base / name, base)
            for ending in ("", *ARCHIVE_SUFFIXES)
        ):
            if candidate.is_dir() or is_archive(candidate):
                return Source(candidate)
    # A folder by another name holds the corpus only if the files lie right there. A deeper search
    # could find files of another corpus that have the same names.
    name = corpus.folder or corpus.name
    if base.resolve().name in (corpus.name, name) or any(
        any(base.glob(pattern)) for pattern in corpus.patterns
    ):
        return Source(base)
    raise MissingFilesError(
        f"Corpus {corpus.name}: {base} holds neither {name}/ nor {name}.tar.xz (.tar.gz, .zip); "
        f"give the folder that does with --data-dir or {DATA_VARIABLE}"
    )


def read_split(
    corpus: Corpus, data_dir: str | Path | None, split: str, strict: bool
) -> Iterator[Any]:
    """Read and convert the records of a split, or of all splits.

    Raise `InputError` if there is none.
    """
    splits = corpus.chosen(split)
    source = find_source(corpus, data_dir)
    place = f"{source.path if source else corpus.name}: split {' '.join(splits)}"
    patterns = ", ".join(
        dict.fromkeys(pattern for name in splits for pattern in corpus.files[name])
    )
    missing = f"looked for {patterns}; add such files or choose another split"
    empty = MissingFilesError(f"{place} of corpus {corpus.name} gave nothing; {missing}")
    items = convert_records(_records(corpus, source, splits), corpus.convert)
    return readable(items, place, strict=strict, empty=empty)


def _records(corpus: Corpus, source: Source | None, splits: Sequence[str]) -> Records:
    place = source.path if source else corpus.name
    with (
        explained(place, "repair it, or get the file again"),
        undamaged(source.path) if source else nullcontext(),
    ):
        for split in splits:
            yield from corpus.records(source, split)  # type: ignore[arg-type]


def catalogue() -> str:
    """Return the registered corpora as a Markdown table.

    Contents, splits, licence, and whether the reader was run.
    """
    columns = ("corpus", "holds", "splits", "licence", "terms", "run on", "source")
    rows = []
    for corpus in map(get_corpus, sorted(CORPORA)):
        run_on = corpus.extract or "the real files"
        if not corpus.real:
            run_on = "not run on the real files"
        splits = ", ".join(corpus.splits)
        rows.append(
            (corpus.name, corpus.kind, splits, corpus.licence, corpus.terms, run_on, corpus.source)
        )
    return "\n".join(table_lines(columns, (), rows))
