"""The one door for dialogues.

Corpora by name, files, datasets on the Hub, and objects in memory.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import Any

from ..apps.files import hub_dataset, reading
from ..apps.files.findings import Finding, Notes, dialogues, with_remarks
from ..apps.files.forms import conversations_of, record_forms
from ..apps.files.json_files import WRITTEN, find_in_records
from ..apps.files.reading_options import ReadingOptions
from ..dialogue import Dialogue
from ..errors import InputError
from .corpus import ALL, CORPORA, KINDS, get_corpus, unknown_corpus
from .published import find_source, read_split
from .source import MissingFilesError, Source, files_within

REGISTERED, OWN, HUB = "registered", "own", "hub"  # a corpus by name, a path, a dataset on the Hub

_HUB_DATASET = re.compile(r"[\w.-]+/[\w.-]+(:[\w.-]+)?")

EXPECTED = (
    "a list of dialogues, each a list of messages such as {'role': 'user', 'content': 'Hello'}, or "
    "a Dialogue; a "
    "datasets.Dataset, a DataFrame of turns, a path, or the name of a corpus"
)
_OPTIONS = "columns|roles|dates|gap|sheet"  # that take a value


def load_dialogues(
    source: Any,
    data_dir: str | Path | None = None,
    split: str | None = None,
    *,
    columns: str | None = None,
    roles: str | None = None,
    dates: str | None = None,
    gap: str | None = None,
    sheet: str | None = None,
    strict: bool = False,
    raw: bool = False,
) -> list[Dialogue]:
    """Load dialogues from files, from a published corpus, from the Hub or from objects in memory.

    Examples:
        >>> load_dialogues([[{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]])
        >>> load_dialogues("sgd/test", data_dir="data")

    Args:
        source: The name of a corpus, such as ``sgd`` or ``sgd/test``; the path of a file or folder
            (see `own.read_own`); the id of a dataset on the Hub, such as ``org/name`` or
            ``org/name:config``; a list of `Dialogue` objects, of lists of chat messages, or of
            mappings with ``messages``; a ``datasets.Dataset``; or a DataFrame, with a turn or with
            ``messages`` a row. ``conversation`` and ``conversations`` (ShareGPT's too) are other
            names of ``messages``; ``prompt`` and ``completion`` are two turns.
        data_dir: The folder that holds ``<name>/``, ``<name>/<name>.tar.xz`` or ``<name>.tar.xz``
            (also ``.tar.gz``, ``.zip``), that folder or archive itself, or
            ``hf://datasets/org/name``. The default is the folder in the environment variable
            ``HF_DIALEMB_DATA``. The corpus ``sample`` needs no files.
        split: A split of a corpus or of a dataset on the Hub, or ``"all"``; by default ``"train"``.
            A ``DatasetDict`` of several needs it.
        columns: The meaning of a table's columns, such as ``"id=call,role=speaker,content=text"``.
        roles: The speakers' roles, such as ``"Agent=assistant,Customer=user"``; guessed roles are
            logged.
        dates: The order of numbers in dates, ``"day-first"`` or ``"month-first"``.
        gap: The pause that ends a conversation, such as ``"4h"``.
        sheet: The sheet of a workbook, or ``"all"``.
        strict: Stop at what is malformed, or can be read in more than one way. Otherwise malformed
            dialogues are left out and counted in a warning, and it says what was guessed.
        raw: Keep HTML, quoted mail and signatures in the texts.

    Returns:
        At least one dialogue, always in the same order.

    Raises:
        MissingFilesError: The corpus or the split is not there.
        InputError: The source is unknown, empty or malformed.
    """
    options = ReadingOptions(columns, roles, dates, gap, sheet, strict, raw)
    if not isinstance(source, str | os.PathLike):
        return _from_objects(_of_split(source, split), options)
    name = str(source)
    if (" " in name.strip() or "\n" in name) and not Path(name).expanduser().exists():
        raise InputError(f"dialogues: got the text {name[:40]!r}, expected {EXPECTED}")
    return list(iterate_dialogues(name, data_dir, split, **vars(options)))


def load_all(dialogues: Any) -> list[Dialogue]:
    """Load dialogues as `load_dialogues` does, but leave none of a list out.

    What is made of them has their rows.
    """
    if not isinstance(dialogues, list | tuple):
        return load_dialogues(dialogues)
    read = _from_objects(dialogues, ReadingOptions(), strict=True)
    if len(read) != len(dialogues):
        raise InputError(
            f"dialogues: got {len(dialogues)}, but only {len(read)} say something; leave out the "
            "others"
        )
    return read


def iterate_dialogues(
    corpus: str, data_dir: str | Path | None = None, split: str | None = None, **options: Any
) -> Iterator[Dialogue]:
    """Read a corpus, a path or a dataset on the Hub as `load_dialogues` does, a dialogue at a time,
    with its options.

    An unknown corpus or split raises an `InputError` at once. Malformed dialogues raise it when
    they are reached if it shall be strict, otherwise at the end if there are too many.
    """
    how = ReadingOptions(**options)
    corpus, split = with_split(str(corpus), split)
    form = form_of(corpus, how)
    if form == REGISTERED:
        known = get_corpus(corpus)
        if known.kind not in KINDS[:2]:
            raise InputError(
                f"Corpus {corpus} holds {known.kind}, expected dialogues; choose another corpus, "
                "or read it in Python "
                "with load_examples"
            )
        return read_split(known, data_dir, split or "train", how.strict)
    if form == OWN:
        check_no_split(corpus, split)
        return reading.read_own(corpus, how)
    return hub_dataset.load_hub_dataset(corpus, split or "train", **options)


def with_split(corpus: str, split: str | None = None) -> tuple[str, str | None]:
    """Split ``sgd/test`` into a corpus's name and its split; leave all other names as they are."""
    name, slash, part = corpus.partition("/")
    if not slash or name not in CORPORA or reading.is_own(corpus):
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

    Refuse settings that this form does not take.
    """
    options = options or ReadingOptions()
    if with_split(corpus)[0] in CORPORA:
        if wrong := list(options.chosen.keys() - {"strict"}):
            raise InputError(
                f"corpus {corpus}: got {wrong[0]}, which only files of your own take; leave it out"
            )
        return REGISTERED
    if reading.is_own(corpus):
        return OWN
    if not _HUB_DATASET.fullmatch(corpus):
        if "/" in corpus or Path(corpus).suffix:
            raise InputError(
                f"corpus {corpus}: no such file or folder; give one that exists, or a corpus by "
                "name"
            )
        raise unknown_corpus(corpus)
    if wrong := [name for name in ("columns", "sheet") if name in options.chosen]:
        raise InputError(
            f"corpus {corpus}: got {wrong[0]}, which only tables of your own take; leave it out"
        )
    return HUB


def data_hash(corpus: str, data_dir: str | Path | None = None) -> str | None:
    """Return a digest of a corpus's files.

    None for a corpus without files and for a dataset on the Hub.
    """
    form = form_of(corpus)
    if form == OWN:
        path = Path(corpus).expanduser()
        return _hash_folder(path) if path.is_dir() else _hash_file(path)
    if form == HUB:
        return None
    known = get_corpus(with_split(corpus)[0])
    source = find_source(known, data_dir)
    return None if source is None else _hash_source(source.path, tuple(sorted(known.patterns)))


def files_behind(corpus: str, data_dir: str | Path | None = None) -> list[Path]:
    """List the files that a corpus is read from.

    None for a dataset on the Hub and for files that are gone.
    """
    name = with_split(corpus)[0]
    if name not in CORPORA:
        path = Path(corpus).expanduser()
        return list(reading.files_of(path)) if path.is_dir() else [path] if path.is_file() else []
    try:
        source = find_source(get_corpus(name), data_dir)
    except MissingFilesError:
        return []
    path = source.path if source else Path()
    return [path] if path.is_file() else list(files_within(path)) if source else []


@lru_cache(maxsize=64)
def _hash_source(path: Path, patterns: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    source = Source(path)
    for pattern in patterns:
        for place, stream in source.files(pattern):
            digest.update(PurePosixPath(place).name.encode())
            hashlib.file_digest(stream, lambda: digest)
    return digest.hexdigest()


def _hash_folder(folder: Path) -> str:
    digest = hashlib.sha256()
    for file in reading.files_of(folder):
        inner = file.relative_to(folder).as_posix()  # the dialogue's id, and its label
        digest.update(f"{inner}\0{_hash_file(file)}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


def _hash_file(file: Path) -> str:
    digest = hashlib.sha256(file.name.encode(errors="surrogateescape"))
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: digest).hexdigest()


def _of_split(source: Any, split: str | None) -> Any:
    """Return a split of a dictionary of datasets, which must be named where there are several."""
    if (
        not isinstance(source, Mapping)
        or not source
        or not all(hasattr(part, "features") for part in source.values())
    ):
        check_no_split("what is in memory", split)
        return source
    if split is None and len(source) > 1:
        raise InputError(
            f"dialogues: got a dictionary of the splits {', '.join(map(repr, source))}, expected "
            "one of them; say "
            f"load_dialogues(..., split={next(iter(source))!r}), or give that split alone"
        )
    names = list(source) if split is None else hub_dataset.chosen_splits("dialogues", split, source)
    if len(names) == 1:
        return source[names[0]]
    from datasets import concatenate_datasets

    return concatenate_datasets([source[name] for name in names])


def _from_objects(source: Any, options: ReadingOptions, strict: bool = False) -> list[Dialogue]:
    """Read what `load_dialogues` takes besides names and paths.

    If ``strict``, the first malformed one is an error.
    """
    names = getattr(source, "column_names", getattr(source, "columns", None))
    items = source if names is None else _records(source)
    if isinstance(items, Mapping | Dialogue) or not isinstance(items, Iterable):
        raise InputError(
            f"dialogues: got one {type(items).__name__}, expected {EXPECTED}; put it into a list"
        )
    items = list(items)
    if names is None and not (options.roles or options.gap) and (plain := plain_dialogues(items)):
        return plain
    notes, place = Notes(options), "dialogues"
    findings = _found(items, notes, names is not None)
    try:
        read = list(
            dialogues(
                map(_finding_in_python, with_remarks(findings, notes, place)),
                place,
                notes,
                strict=strict,
            )
        )
    except InputError as error:
        raise InputError(_in_python(str(error))) from None
    if not read:
        raise InputError(f"dialogues: got none, expected {EXPECTED}; give at least one")
    return read


def listed(value: Any) -> Any:
    """Turn arrays at any depth into lists: tables return lists as arrays."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {name: listed(inner) for name, inner in value.items()}
    return [listed(inner) for inner in value] if isinstance(value, list | tuple) else value


def _records(table: Any) -> Iterable[Mapping[str, Any]]:
    """Return the rows of a table of pandas, polars, pyarrow or datasets; missing cells are None."""
    if hasattr(table, "iterrows"):
        return table.astype(object).where(table.notna(), None).to_dict("records")  # type: ignore[no-any-return]
    if hasattr(table, "to_dicts"):
        return table.to_dicts()  # type: ignore[no-any-return]
    return table.to_pylist() if hasattr(table, "to_pylist") else table  # type: ignore[no-any-return]


def _finding_in_python(finding: Finding) -> Finding:
    remarks = (replace(remark, message=_in_python(remark.message)) for remark in finding.remarks)
    return replace(finding, remarks=tuple(remarks))


def _in_python(sentence: str) -> str:
    """Write options of the command line as arguments."""
    sentence = re.sub(rf"--({_OPTIONS}) '([^']*)'|--({_OPTIONS}) ([\w-]+)", _argument, sentence)
    return re.sub(r"--(strict|raw)\b", r"\1=True", sentence)


def _argument(option: re.Match[str]) -> str:
    name, value = filter(None, option.groups())
    return f"load_dialogues(..., {name}={value!r})"


def plain_dialogues(items: Any) -> list[Dialogue]:
    """Make dialogues of a list in which none needs a guess.

    Give none if one does, or of anything else.
    """
    read = []
    with suppress(InputError):
        for item in items if isinstance(items, list | tuple) else ():
            whole = isinstance(item, Mapping) and item.keys() <= WRITTEN
            read.append(
                item
                if isinstance(item, Dialogue)
                else (Dialogue.from_json if whole else Dialogue.from_messages)(item)
            )
        return read
    return []


def _found(items: Iterable[Any], notes: Notes, rows: bool) -> Iterator[Finding]:
    """Read dialogues in memory, or the rows of a table.

    Those that stand together are read as one file.
    """
    placed = ((f"dialogues[{number}]", item) for number, item in enumerate(items))
    for made, group in groupby(placed, key=lambda pair: isinstance(pair[1], Dialogue)):
        if made:
            yield from (Finding(place, item) for place, item in group)
        else:
            records = [
                (place, listed(item) if rows else _record(listed(item))) for place, item in group
            ]
            if not rows and all(
                isinstance(record, Mapping) for _, record in records
            ):  # perhaps a single export's
                whole = conversations_of([record for _, record in records], record_forms())
                records = [("dialogues", whole[0])] if len(whole) == 1 < len(records) else records
            yield from find_in_records(partial(iter, records), "the table", notes)


def _record(item: Any) -> Any:
    """Return what `find_in_records` reads, or an `InputError` in its place."""
    fault = ""
    if isinstance(item, str):
        fault = (
            f"got the text {item[:40]!r}, expected a list of messages; single utterances go "
            "to "
            "encode_utterances, "
        )
        fault += "and files are given by their path alone"
    elif not isinstance(item, Mapping | Sequence):
        fault = (
            f"got {type(item).__name__}, expected a list of messages or a Dialogue; leave it out"
        )
    elif isinstance(item, Mapping) and "role" in item:
        fault = (
            "got one message, expected a list of messages; put each dialogue into a list of its own"
        )
    elif any(isinstance(message, str) for message in item) and not isinstance(item, Mapping):
        fault = (
            "got a list of texts, expected messages such as {'role': 'user', 'content': "
            "'Hello'}; say who speaks"
        )
    return InputError(fault) if fault else item
