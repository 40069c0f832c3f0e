"""The one door for dialogues: corpora by name, files, datasets on the Hub, and objects in memory."""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from ..dialogue import Dialogue
from ..errors import InputError
from .corpus import ALL, CORPORA, KINDS, get_corpus, unknown_corpus
from .own import hub_dataset, reading
from .own.columns import parse_columns
from .own.findings import Notes, dialogues, distinct, log
from .own.forms import from_records, turn_fields
from .own.options import ReadingOptions
from .own.tables import find_in_table, rows_of
from .published import find_source, read_split
from .source import Source

REGISTERED, OWN, HUB = "registered", "own", "hub"  # a corpus by name, a path, a dataset on the Hub

_HUB_DATASET = re.compile(r"[\w.-]+/[\w.-]+(:[\w.-]+)?")

EXPECTED = (
    "a list of dialogues, each a list of messages such as {'role': 'user', 'content': 'Hello'}, or a Dialogue; a "
    "datasets.Dataset, a DataFrame of turns, a path, or the name of a corpus"
)
_FIELDS = {"id", "messages", "domains", "time", "metadata"}  # of a mapping that needs no guess


def load_dialogues(
    source: Any,  # noqa: ANN401 - see Args
    data_dir: str | Path | None = None,
    split: str | None = None,
    *,
    skip_invalid: bool = False,
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
        source: The name of a corpus, such as ``sgd`` or ``sgd/test``; the path of a file or folder (see
            `own.read_own`); the id of a dataset on the Hub, such as ``org/name`` or ``org/name:config``; a list of
            `Dialogue` objects, of lists of chat messages, or of mappings with ``messages``; a ``datasets.Dataset``; or
            a DataFrame, with a turn or with ``messages`` a row. ``conversation`` and ``conversations`` (ShareGPT's
            too) are other names of ``messages``; ``prompt`` and ``completion`` are two turns.
        data_dir: The folder that holds ``<name>/``, ``<name>/<name>.tar.xz`` or ``<name>.tar.xz`` (also ``.tar.gz``,
            ``.zip``), that folder or archive itself, or ``hf://datasets/org/name``. The default is the folder in the
            environment variable ``HF_DIALEMB_DATA``. The corpus ``sample`` needs no files.
        split: A split of a corpus or of a dataset on the Hub, or ``"all"``; by default ``"train"``. A
            ``DatasetDict`` of several needs it.
        skip_invalid: Leave malformed dialogues out and log one warning that lists them, instead of raising.
        columns: The meaning of a table's columns, such as ``"id=call,role=speaker,content=text"``.
        roles: The speakers' roles, such as ``"Agent=assistant,Customer=user"``; guessed roles are logged.
        dates: The order of numbers in dates, ``"day-first"`` or ``"month-first"``.
        gap: The pause that ends a conversation, such as ``"4h"``.
        sheet: The sheet of a workbook, or ``"all"``.
        strict: Stop at what is malformed, or can be read in more than one way.
        raw: Keep HTML, quoted mail and signatures in the texts.

    Returns:
        At least one dialogue, always in the same order.

    Raises:
        MissingFilesError: The corpus or the split is not there.
        InputError: The source is unknown, empty or malformed.
    """
    options = ReadingOptions(columns, roles, dates, gap, sheet, strict, raw)
    if not isinstance(source, str | os.PathLike):
        if isinstance(source, list) and source and not split and options == ReadingOptions():
            read = []
            with suppress(InputError):  # other forms are read, or refused, below
                for item in source:
                    read.append(item if isinstance(item, Dialogue) else Dialogue.from_messages(item))
                return read
        return _from_objects(_of_split(source, split), options, skip_invalid)
    name = str(source)
    if (" " in name.strip() or "\n" in name) and not Path(name).expanduser().exists():
        raise InputError(f"dialogues: got the text {name[:40]!r}, expected {EXPECTED}")
    return list(iterate_dialogues(name, data_dir, split, skip_invalid=skip_invalid, **vars(options)))


def iterate_dialogues(
    corpus: str,
    data_dir: str | Path | None = None,
    split: str | None = None,
    *,
    skip_invalid: bool = False,
    **reading_options: Any,  # noqa: ANN401
) -> Iterator[Dialogue]:
    """Read a corpus, a path or a dataset on the Hub as `load_dialogues` does, a dialogue at a time.

    It has the same options of reading. An unknown corpus or split raises an `InputError` at once, a malformed record when it is reached.
    """
    options = ReadingOptions(**reading_options)
    corpus, split = with_split(str(corpus), split)
    form = form_of(corpus, options)
    if form == REGISTERED:
        known = get_corpus(corpus)
        if known.kind not in KINDS[:2]:
            raise InputError(
                f"Corpus {corpus} holds {known.kind}, expected dialogues; choose another corpus, or read it in Python "
                "with load_examples"
            )
        return read_split(known, data_dir, split or "train", skip_invalid)
    if form == OWN:
        check_no_split(corpus, split)
        return reading.read_own(corpus, options, skip_invalid=skip_invalid)
    return hub_dataset.load_hub_dataset(corpus, split or "train", skip_invalid=skip_invalid, **vars(options))


def with_split(corpus: str, split: str | None = None) -> tuple[str, str | None]:
    """Split ``sgd/test`` into a corpus's name and its split; leave all other names as they are."""
    name, slash, part = corpus.partition("/")
    if not slash or name not in CORPORA or reading.is_own(corpus):
        return corpus, split
    get_corpus(name).chosen(part)  # refuses an unknown split
    if split not in (None, "", part):
        raise InputError(f"split: got '{split}' for {corpus}, expected one split; leave one of the two out")
    return name, part


def check_no_split(source: str, split: str | None) -> None:
    """Refuse a split of a source that has none: figures would be reported for a part that was never taken."""
    if split not in (None, "", ALL):
        raise InputError(f"split: got '{split}', but {source} has no splits and is read whole; leave it out")


def form_of(corpus: str, options: ReadingOptions | None = None) -> str:
    """Return whether a corpus is `REGISTERED`, `OWN` or `HUB`; refuse settings that this form does not take."""
    options = options or ReadingOptions()
    if with_split(corpus)[0] in CORPORA:
        if options.columns or options.roles:
            raise InputError(
                f"corpus {corpus}: got columns or roles, which only files of your own take; leave them out"
            )
        return REGISTERED
    if reading.is_own(corpus):
        return OWN
    if not _HUB_DATASET.fullmatch(corpus):
        if "/" in corpus or Path(corpus).suffix:
            raise InputError(f"corpus {corpus}: no such file or folder; give one that exists, or a corpus by name")
        raise unknown_corpus(corpus)
    if options.columns:
        raise InputError(f"corpus {corpus}: got columns, which only tables of your own take; leave them out")
    return HUB


def data_hash(corpus: str, data_dir: str | Path | None = None) -> str | None:
    """Return a digest of a corpus's files; None for a corpus without files and for a dataset on the Hub."""
    form = form_of(corpus)
    if form == OWN:
        path = Path(corpus).expanduser()
        return _hash_folder(path) if path.is_dir() else _hash_file(path)
    if form == HUB:
        return None
    known = get_corpus(with_split(corpus)[0])
    source = find_source(known, data_dir)
    return None if source is None else _hash_source(source.path, tuple(sorted(known.patterns)))


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


def _of_split(source: Any, split: str | None) -> Any:  # noqa: ANN401
    """Return a split of a dictionary of datasets, which must be named where there are several."""
    if not isinstance(source, Mapping) or not source or not all(hasattr(part, "features") for part in source.values()):
        check_no_split("what is in memory", split)
        return source
    if split is None and len(source) > 1:
        raise InputError(
            f"dialogues: got a dictionary of the splits {', '.join(map(repr, source))}, expected one of them; say "
            f"load_dialogues(..., split={next(iter(source))!r}), or give that split alone"
        )
    names = list(source) if split is None else hub_dataset.chosen_splits("dialogues", split, source)
    if len(names) == 1:
        return source[names[0]]
    from datasets import concatenate_datasets

    return concatenate_datasets([source[name] for name in names])


def _from_objects(source: Any, options: ReadingOptions, skip_invalid: bool) -> list[Dialogue]:  # noqa: ANN401
    """Read what `load_dialogues` takes besides names and paths."""
    notes, place = Notes(options), "dialogues"
    names = getattr(source, "column_names", getattr(source, "columns", None))
    turns = turn_fields(map(str, names)) if names is not None else ()
    if names is not None and not turns:
        place = "the table"
        rows = rows_of(list(map(str, names)), (list(row.values()) for row in _records(source)))
        try:
            findings = find_in_table(lambda _: iter(rows), place, parse_columns(options.columns), notes)
            findings = distinct(findings, place, "one turn per row")
            read = list(dialogues(findings, place, skip_invalid=skip_invalid))
        except InputError as error:
            raise InputError(_in_python(str(error))) from None
    else:
        items = source if names is None else (hub_dataset.record_of(row, turns) for row in _records(source))
        if isinstance(items, Mapping | Dialogue) or not isinstance(items, Iterable):
            raise InputError(f"dialogues: got one {type(items).__name__}, expected {EXPECTED}; put it into a list")
        read = list(_of_items(items, notes, skip_invalid))
    log(replace(problem, message=_in_python(problem.message)) for problem in notes.remarks(place))
    if not read:
        raise InputError(f"dialogues: got none, expected {EXPECTED}; give at least one")
    return read


def listed(value: Any) -> Any:  # noqa: ANN401
    """Turn arrays at any depth into lists: tables return lists as arrays."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {name: listed(inner) for name, inner in value.items()}
    return [listed(inner) for inner in value] if isinstance(value, list | tuple) else value


def _records(table: Any) -> Iterable[Mapping[str, Any]]:  # noqa: ANN401
    """Return the rows of a table of pandas, polars, pyarrow or datasets; missing cells are None."""
    if hasattr(table, "iterrows"):
        return table.astype(object).where(table.notna(), None).to_dict("records")  # type: ignore[no-any-return]
    if hasattr(table, "to_dicts"):
        return table.to_dicts()  # type: ignore[no-any-return]
    return table.to_pylist() if hasattr(table, "to_pylist") else table  # type: ignore[no-any-return]


def _in_python(sentence: str) -> str:
    """Write an option of the command line as an argument."""
    return re.sub(r"--(columns|roles) ('[^']*')", r"load_dialogues(..., \1=\2)", sentence)


def _of_items(items: Iterable[Any], notes: Notes, skip_invalid: bool) -> Iterator[Dialogue]:
    for number, item in enumerate(items):
        place = f"dialogues[{number}]"
        try:
            yield from [item] if isinstance(item, Dialogue) else _dialogue(listed(item), place, notes)
        except InputError as error:
            if not skip_invalid:
                raise InputError(f"{place}: {error}") from None
            notes.add(f"left out a malformed dialogue: {error}", place)


def _dialogue(item: Any, place: str, notes: Notes) -> list[Dialogue]:  # noqa: ANN401
    """Read one dialogue; return none if nobody says anything."""
    fault = ""
    if isinstance(item, str):
        fault = f"got the text {item[:40]!r}, expected a list of messages; single utterances go to encode_utterances, "
        fault += "and files are given by their path alone"
    elif not isinstance(item, Mapping | Sequence):
        fault = f"got {type(item).__name__}, expected a list of messages or a Dialogue; leave it out"
    elif isinstance(item, Mapping) and "role" in item:
        fault = "got one message, expected a list of messages; put each dialogue into a list of its own"
    elif any(isinstance(message, str) for message in item) and not isinstance(item, Mapping):
        fault = "got a list of texts, expected messages such as {'role': 'user', 'content': 'Hello'}; say who speaks"
    if fault:
        raise InputError(fault)
    record = item if isinstance(item, Mapping) else {"messages": item}
    if not notes.roles.given and record.keys() <= _FIELDS:
        with suppress(InputError):  # of other names or of parts, below
            return [Dialogue.from_json(record)]
    findings = list(from_records(lambda: [(place, record)], notes))
    for problem in (problem for finding in findings for problem in finding.problems):
        raise InputError(problem.message)
    return [finding.dialogue for finding in findings if finding.dialogue]
