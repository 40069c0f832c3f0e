"""Corpora: published dialogue corpora in their original formats, and your own files, read as `Dialogue` objects."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..dialogue import Dialogue
from ..errors import InputError
from .audit.statistics import describe
from .corpus import ALL, SPLITS, Corpus
from .own import hub_dataset, reading
from .own.jsonl import read_jsonl, write_jsonl
from .records import convert_records, never_empty
from .registry import CORPORA, get_corpus, unknown_corpus
from .source import hub_files
from .source.files import ARCHIVE_SUFFIXES, MissingFilesError, Source, is_archive

__all__ = [
    "CORPORA",
    "MissingFilesError",
    "Source",
    "describe",
    "find_source",
    "get_corpus",
    "iterate_dialogues",
    "iterate_examples",
    "load_dialogues",
    "load_examples",
    "read_jsonl",
    "single_domain",
    "write_jsonl",
]

DATA_VARIABLE = "HF_DIALEMB_DATA"  # the environment variable that names the data folder when none is given
REGISTERED, OWN, HUB = "registered", "own", "hub"  # how a corpus may be named: in `CORPORA`, as a path, as on the Hub

_HUB_DATASET = re.compile(r"[\w.-]+/[\w.-]+(:[\w.-]+)?")


def load_dialogues(
    corpus: Any,  # noqa: ANN401 - see as_dialogues
    data_dir: str | Path | None = None,
    split: str | None = None,
    *,
    skip_invalid: bool = False,
    columns: str | None = None,
    roles: str | None = None,
) -> list[Dialogue]:
    """Loads one split of a corpus into memory; takes, gives and raises what `iterate_dialogues` does.

    What is in memory, such as a DataFrame, it reads as `objects.as_dialogues` does.

    Returns:
        The dialogues, always in the same order.
    """
    if not isinstance(corpus, str | os.PathLike):
        from .objects import as_dialogues

        return as_dialogues(corpus, split=split, columns=columns, roles=roles, skip_invalid=skip_invalid)
    more = {"columns": columns, "roles": roles}
    return list(iterate_dialogues(str(corpus), data_dir, split, skip_invalid=skip_invalid, **more))


def iterate_dialogues(
    corpus: str,
    data_dir: str | Path | None = None,
    split: str | None = None,
    *,
    skip_invalid: bool = False,
    columns: str | None = None,
    roles: str | None = None,
) -> Iterator[Dialogue]:
    """Reads one split of a corpus, a dialogue at a time.

    Args:
        corpus: A name in `CORPORA`; or the path of your own file or folder (see `own.read_own`); or the id of a dataset
            on the Hub whose rows hold chat messages, such as ``"org/name"`` or ``"org/name:config"``.
        data_dir: Where a registered corpus lies: a folder that holds ``<name>/``, ``<name>/<name>.tar.xz`` or
            ``<name>.tar.xz`` (``.tar.gz`` and ``.zip`` do as well), that folder or archive itself, or
            ``hf://datasets/org/name``. None means the folder that the environment variable ``HF_DIALEMB_DATA`` names.
            The corpus ``sample`` needs no files.
        split: One of the corpus's splits, or ``"all"``; by default ``"train"``. Your own files have none.
        skip_invalid: Leave malformed records out and log one warning that lists them, instead of raising.
        columns: For your own table: which column is what, such as ``"id=call,role=speaker,content=text"``.
        roles: For your own files: who is who, such as ``"Agent=assistant,Customer=user"``.

    Returns:
        The dialogues, always in the same order. An utterance of a corpus of utterances is a dialogue of one turn.

    Raises:
        MissingFilesError: The corpus is not there; or, on reading, the split is not.
        InputError: The corpus or split is unknown or holds no dialogues; or, on reading, a record is malformed.
    """
    form = form_of(corpus, columns, roles)
    if form == REGISTERED:
        known = get_corpus(corpus)
        if known.kind not in ("dialogues", "utterances"):
            raise InputError(
                f"Corpus {corpus} holds {known.kind}, expected dialogues; choose another corpus, or read it in Python "
                "with load_examples"
            )
        return _read(known, data_dir, split or "train", skip_invalid)
    if form == OWN:
        check_no_split(corpus, split)
        return reading.read_own(corpus, columns=columns, roles=roles, skip_invalid=skip_invalid)
    return hub_dataset.load_hub_dataset(corpus, split or "train", roles=roles, skip_invalid=skip_invalid)


def check_no_split(source: str, split: str | None) -> None:
    """Refuses a part of what has none: figures would be told as those of a part of it."""
    if split not in (None, "", ALL):
        raise InputError(f"split: got '{split}', but {source} has no splits and is read whole; leave it out")


def form_of(corpus: str, columns: str | None = None, roles: str | None = None) -> str:
    """Says whether a corpus is `REGISTERED`, `OWN` or `HUB`, and refuses settings that it does not take."""
    if corpus in CORPORA:
        if columns or roles:
            raise InputError(
                f"corpus {corpus}: got columns or roles, which only files of your own take; leave them out"
            )
        return REGISTERED
    if reading.is_own(corpus):
        return OWN
    name, _, given = corpus.partition("/")
    if name in CORPORA and given in (*SPLITS, ALL):
        raise InputError(f"corpus: got '{corpus}', expected a name; write --corpus {name} --split {given}")
    if not _HUB_DATASET.fullmatch(corpus):
        if "/" in corpus or Path(corpus).suffix:
            raise InputError(f"corpus {corpus}: no such file or folder; give one that exists, or a corpus by name")
        raise unknown_corpus(corpus)
    if columns:
        raise InputError(f"corpus {corpus}: got columns, which only tables of your own take; leave them out")
    return HUB


def iterate_examples(
    corpus: str, data_dir: str | Path | None = None, split: str = "train", *, skip_invalid: bool = False
) -> Iterator[Any]:
    """Reads one split of a registered corpus of any kind, an item at a time, as `iterate_dialogues` reads dialogues.

    Its kind says what comes: `Dialogue`, `examples.SentencePair`, `RetrievalQuery` or `ResponseSelection`.
    """
    return _read(get_corpus(corpus), data_dir, split, skip_invalid)


def load_examples(
    corpus: str, data_dir: str | Path | None = None, split: str = "train", *, skip_invalid: bool = False
) -> list[Any]:
    """Loads what `iterate_examples` reads into a list."""
    return list(iterate_examples(corpus, data_dir, split, skip_invalid=skip_invalid))


def single_domain(dialogues: Iterable[Dialogue]) -> list[Dialogue]:
    """Keeps the dialogues of exactly one domain, in order: the dial2vec paper's dev and test sets (section 4.2)."""
    return [dialogue for dialogue in dialogues if len(dialogue.domains) == 1]


def sets_at_hand(
    data_dir: str | Path | None = None,
    splits: Sequence[str] = SPLITS,
    *,
    names: Sequence[str] = (),
    skip_invalid: bool = False,
) -> Iterator[str]:
    """Finds the sets that can be read, such as ``"sgd/test"``: of the corpora named, or else of all that have files."""
    for corpus in map(get_corpus, sorted(names or CORPORA)):
        for split in corpus.splits if names or corpus.patterns else ():
            if split in splits:
                with suppress(MissingFilesError):
                    next(_read(corpus, data_dir, split, skip_invalid))
                    yield f"{corpus.name}/{split}"


def find_source(corpus: Corpus, data_dir: str | Path | None = None) -> Source | None:
    """Finds the files of a corpus; None for one that needs none. An InputError says that they are not in the folder."""
    if not corpus.patterns:
        return None
    given = data_dir or os.environ.get(DATA_VARIABLE)
    if not given:
        raise MissingFilesError(
            f"Corpus {corpus.name} needs its files: got no data folder; give --data-dir or set {DATA_VARIABLE}"
        )
    if str(given).startswith(hub_files.PREFIX):
        return Source(hub_files.download(str(given), corpus.patterns))
    try:
        return Source(_find(corpus, Path(given).expanduser()))
    except RuntimeError as error:  # nobody's home
        raise MissingFilesError(f"Corpus {corpus.name}: {given}: {error}; correct --data-dir") from None


def _read(corpus: Corpus, data_dir: str | Path | None, split: str, skip_invalid: bool) -> Iterator[Any]:
    splits = corpus.chosen(split)
    source = find_source(corpus, data_dir)
    place = f"{source.path if source else corpus.name}: split {' '.join(splits)}"
    patterns = dict.fromkeys(pattern for each in splits for pattern in corpus.files[each])
    missing = MissingFilesError(
        f"{place} of corpus {corpus.name} gave nothing; looked for {', '.join(patterns)}; add such files or choose "
        "another split"
    )
    found = (record for each in splits for record in corpus.records(source, each))  # type: ignore[arg-type]
    items = convert_records(never_empty(found, missing), corpus.convert, skip_invalid=skip_invalid)
    return never_empty(items, InputError(f"{place} has no record that is not malformed; get the files again"))


def _find(corpus: Corpus, base: Path) -> Path:
    if is_archive(base):
        return base
    if not base.is_dir():
        raise MissingFilesError(
            f"Corpus {corpus.name}: no such folder or archive: {base}; correct --data-dir or {DATA_VARIABLE}"
        )
    for name in dict.fromkeys((corpus.name, corpus.folder or corpus.name)):
        endings = ("", *ARCHIVE_SUFFIXES)
        for candidate in (where / f"{name}{ending}" for where in (base / name, base) for ending in endings):
            if candidate.is_dir() or is_archive(candidate):
                return candidate
    # A folder by another name is taken for the corpus itself only if its files lie right there: searching deeper could
    # find the files of another corpus that are named alike.
    if base.resolve().name in (corpus.name, corpus.folder) or any(any(base.glob(each)) for each in corpus.patterns):
        return base
    name = corpus.folder or corpus.name
    raise MissingFilesError(
        f"Corpus {corpus.name}: {base} holds neither {name}/ nor {name}.tar.xz (.tar.gz, .zip); "
        f"give the folder that does with --data-dir or {DATA_VARIABLE}"
    )
