"""The door for dialogues: corpora by name, files, datasets on the Hub, and objects in memory."""

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ..dialogue import Dialogue
from ..errors import InputError
from ..hooks import entries
from .conversations import CONVERSATIONS, from_conversation, plain_dialogues
from .corpus import KINDS, get_corpus
from .corpus_names import OWN, REGISTERED, check_no_split, form_of, with_split
from .hub_dataset import chosen_splits, dataset_folder, hub_rows
from .jsonl import read_jsonl
from .published import read_split
from .raw_records import convert_records, readable
from .reading_options import ReadingOptions

EXPECTED = (
    "a list of dialogues, each a list of messages such as {'role': 'user', 'content': 'Hello'}, or "
    "a Dialogue; a datasets.Dataset, a DataFrame of turns, a path, or the name of a corpus"
)
APPS = 'pip install "hf-dialemb[apps]"'


@cache
def _reader() -> Any:
    """Return what reads every other form: the entry point of ``hf_dialemb.readers``, or None.

    It has ``read_path(path, options)`` for files and folders, ``read_rows(identifier, split,
    options)`` for datasets on the Hub, and ``read_objects(items, options, *, rows, strict)`` for
    objects in memory, or the rows of a table; if ``strict``, it leaves none out.
    """
    reader = next(iter(entries("readers").values()), None)
    return reader.load() if reader else None


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
    revision: str | None = None,
    token: str | None = None,
) -> list[Dialogue]:
    """Load dialogues from files, from a published corpus, from the Hub or from objects in memory.

    Examples:
        >>> load_dialogues([[{"role": "user", "content": "Hello"}]])

    Args:
        source: The name of a corpus, such as ``sgd/test``; the path of a file, a folder of them, or
            a stored dataset; the id of a dataset on the Hub, such as ``org/name:config``; a list of
            `Dialogue` objects, of lists of chat messages, or of mappings with ``messages``; a
            ``datasets.Dataset``; or a DataFrame, with a turn or with ``messages`` a row.
            ``conversation`` and ``conversations`` (ShareGPT's too) are other names of ``messages``;
            ``prompt`` and ``completion`` are two turns.
        data_dir: The folder that holds ``<name>/``, ``<name>/<name>.tar.xz`` or ``<name>.tar.xz``
            (also ``.tar.gz``, ``.zip``), that folder or archive itself, or
            ``hf://datasets/org/name``; by default that of ``HF_DIALEMB_DATA``.
        split: A split of a corpus or of a dataset, or ``"all"``; by default ``"train"``. A
            ``DatasetDict`` of several needs it.
        columns: The meaning of a table's columns, such as ``"id=call,role=speaker,content=text"``.
        roles: The speakers' roles, such as ``"Agent=assistant,Customer=user"``; else guessed.
        dates: The order of numbers in dates, ``"day-first"`` or ``"month-first"``.
        gap: The pause that ends a conversation, such as ``"4h"``.
        sheet: The sheet of a workbook, or ``"all"``.
        strict: Stop at what is malformed or ambiguous; else it is left out or guessed, and said.
        raw: Keep HTML, quoted mail and signatures in the texts.
        revision: A branch, a tag or a commit of a dataset on the Hub.
        token: A token of the Hub; by default that of the login.

    Returns:
        At least one dialogue, always in the same order.

    Raises:
        MissingFilesError: The corpus or the split is not there.
        InputError: The source is unknown, empty or malformed.
    """
    options = ReadingOptions(columns, roles, dates, gap, sheet, strict, raw, revision, token)
    if not isinstance(source, str | os.PathLike):
        return _from_objects(_of_split(source, split), options)
    name = str(source)
    path = Path(name).expanduser()
    if (" " in name.strip() or "\n" in name) and not path.exists():
        raise InputError(f"dialogues: got the text {name[:40]!r}, expected {EXPECTED}")
    if (stored := dataset_folder(path)) is not None:
        return _from_objects(_of_split(stored, split), options)
    return list(iterate_dialogues(name, data_dir, split, **vars(options)))


def load_all(dialogues: Any) -> list[Dialogue]:
    """Load dialogues as `load_dialogues` does, but leave none out that is in memory.

    Row i of what is made of them belongs to item i. Readers of files may leave some out.
    """
    if isinstance(dialogues, str | os.PathLike | Mapping | Dialogue):
        return load_dialogues(dialogues)
    columns = _columns(dialogues)
    if columns is not None and not set(columns) & set(CONVERSATIONS):
        return load_dialogues(dialogues)  # a table of turns
    rows = list(dialogues if columns is None else _records(dialogues))
    read = _from_objects(rows, ReadingOptions(), strict=True)
    if len(read) != len(rows):
        placed = ((f"dialogues[{row}]", listed(item)) for row, item in enumerate(rows))
        list(_conversations(placed, "dialogues", strict=True))  # names the first that is malformed
        raise InputError(
            f"dialogues: got {len(rows)}, but only {len(read)} say something; leave out the others"
        )
    return read


def iterate_dialogues(
    corpus: str, data_dir: str | Path | None = None, split: str | None = None, **options: Any
) -> Iterator[Dialogue]:
    """Read a corpus, a path or a dataset on the Hub one dialogue at a time.

    It takes the options of `load_dialogues`. An unknown corpus or split raises an `InputError` at
    once. Malformed dialogues raise it when they are reached if it shall be strict, otherwise at the
    end if there are too many.
    """
    how = ReadingOptions(**options)
    corpus, split = with_split(str(corpus), split)
    form = form_of(corpus, how)
    if form in (REGISTERED, OWN) and (how.revision or how.token):
        raise InputError(
            f"{corpus}: got a revision or a token, expected a dataset on the Hub; leave it out"
        )
    if form == REGISTERED:
        known = get_corpus(corpus)
        if known.kind not in KINDS[:2]:
            raise InputError(
                f"Corpus {corpus} holds {known.kind}, expected dialogues; choose another corpus, "
                "or read it in Python with load_examples"
            )
        return read_split(known, data_dir, split or "train", how.strict)
    if form == OWN:
        check_no_split(corpus, split)
        if reader := _reader():
            return reader.read_path(corpus, how)  # type: ignore[no-any-return]
        if not corpus.lower().endswith((".jsonl", ".jsonl.gz")):
            raise InputError(
                f"{corpus}: got a file that the package's applications read, expected .jsonl or "
                f".jsonl.gz; {APPS}"
            )
        _refuse_options(corpus, how)
        return read_jsonl(Path(corpus).expanduser(), strict=how.strict)
    if reader := _reader():
        return reader.read_rows(corpus, split or "train", how)  # type: ignore[no-any-return]
    _refuse_options(corpus, how)
    rows = hub_rows(corpus, split or "train", how.revision, how.token)
    return _conversations(rows, corpus, how.strict)


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
            f"one of them; say load_dialogues(..., split={next(iter(source))!r}), or give that "
            "split alone"
        )
    names = list(source) if split is None else chosen_splits("dialogues", split, source)
    if len(names) == 1:
        return source[names[0]]
    from datasets import concatenate_datasets

    return concatenate_datasets([source[name] for name in names])


def _from_objects(source: Any, options: ReadingOptions, strict: bool = False) -> list[Dialogue]:
    """Read what `load_dialogues` takes besides names and paths.

    If ``strict``, the first malformed one is an error.
    """
    names = _columns(source)
    items = source if names is None else _records(source)
    if isinstance(items, Mapping | Dialogue) or not isinstance(items, Iterable):
        raise InputError(
            f"dialogues: got one {type(items).__name__}, expected {EXPECTED}; put it into a list"
        )
    items = list(items)
    if names is None and not (options.roles or options.gap) and (plain := plain_dialogues(items)):
        return plain
    items = [listed(item) for item in items]
    if reader := _reader():
        read = reader.read_objects(items, options, rows=names is not None, strict=strict)
    else:
        _refuse_options("dialogues", options)
        placed = ((f"dialogues[{number}]", item) for number, item in enumerate(items))
        read = list(_conversations(placed, "dialogues", strict or options.strict))
    if not read:
        raise InputError(f"dialogues: got none, expected {EXPECTED}; give at least one")
    return read  # type: ignore[no-any-return]


def _conversations(
    records: Iterable[tuple[str, Any]], place: str, strict: bool
) -> Iterator[Dialogue]:
    return readable(convert_records(records, from_conversation), place, strict=strict)


def _refuse_options(place: str, options: ReadingOptions) -> None:
    if wrong := list(options.chosen.keys() - {"strict"}):
        raise InputError(
            f"{place}: got {wrong[0]}, which the package's applications read by; {APPS}"
        )


def listed(value: Any) -> Any:
    """Turn arrays at any depth into lists: tables return lists as arrays."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {name: listed(inner) for name, inner in value.items()}
    return [listed(inner) for inner in value] if isinstance(value, list | tuple) else value


def _columns(table: Any) -> Any:
    """Return the names of a table's columns; None of anything else."""
    return getattr(table, "column_names", getattr(table, "columns", None))


def _records(table: Any) -> Iterable[Mapping[str, Any]]:
    """Return the rows of a table of pandas, polars, pyarrow or datasets; missing cells are None."""
    if hasattr(table, "iterrows"):
        return table.astype(object).where(table.notna(), None).to_dict("records")  # type: ignore[no-any-return]
    if hasattr(table, "with_format"):
        return table.with_format(None)  # type: ignore[no-any-return]
    if hasattr(table, "to_dicts"):
        return table.to_dicts()  # type: ignore[no-any-return]
    return table.to_pylist() if hasattr(table, "to_pylist") else table  # type: ignore[no-any-return]
