"""What Python users have in memory, read as dialogues."""

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from ..dialogue import Dialogue
from ..errors import InputError
from . import CORPORA, check_no_split, load_dialogues
from .own.columns import parse_columns
from .own.exports import find_in_record
from .own.findings import Notes, dialogues, log, noted
from .own.reading import is_own
from .own.roles import RoleMap
from .own.tables import find_in_table

_EXPECTED = (
    "a list of dialogues, each a list of messages such as {'role': 'user', 'content': 'Hello'}, or a Dialogue; a "
    "datasets.Dataset, a DataFrame of turns, a path, or the name of a corpus"
)


def as_dialogues(
    source: Any,  # noqa: ANN401 - see below
    *,
    data_dir: str | Path | None = None,
    split: str | None = None,
    columns: str | None = None,
    roles: str | None = None,
    skip_invalid: bool = False,
) -> list[Dialogue]:
    """Reads dialogues from whatever holds them: at least one, or an InputError says where, and what to give.

    Examples:
        >>> as_dialogues([[{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]])

    Args:
        source: A list of dialogues: `Dialogue` objects, lists of chat messages, mappings with ``messages`` and perhaps
            ``id`` and ``domains``, or mappings of another form that JSON exports have; a ``datasets.Dataset`` of such
            rows; a DataFrame of turns; a file or folder; or the name of a corpus, as ``sgd`` or ``sgd/test``.
        data_dir: As `load_dialogues` takes it, and so are the others; what is guessed without ``roles`` is logged.
        split: Which part of a corpus; by default ``train``.
        columns: Of a table.
        roles: Who is who.
        skip_invalid: Leave malformed dialogues out and log which, instead of raising.
    """
    if isinstance(source, str | PathLike):
        return _named(str(source), data_dir, split, columns=columns, roles=roles, skip_invalid=skip_invalid)
    check_no_split("what is in memory", split)
    who, notes, place = RoleMap.parse(roles), Notes(), "dialogues"
    if hasattr(source, "to_csv") and "messages" not in getattr(source, "columns", getattr(source, "column_names", ())):
        place = "the table"
        found = _of_table(source, place, parse_columns(columns), who, notes, skip_invalid)
    else:
        items = source.to_dict("records") if hasattr(source, "iterrows") else source
        if isinstance(items, Mapping | Dialogue) or not hasattr(items, "__iter__"):
            raise InputError(f"dialogues: got one {type(items).__name__}, expected {_EXPECTED}; put it into a list")
        found = list(_of_list(items, who, notes, skip_invalid))
    log(replace(problem, message=_in_python(problem.message)) for problem in noted(who, notes, place))
    if not found:
        raise InputError(f"dialogues: got none, expected {_EXPECTED}; give at least one")
    return found


def _named(name: str, data_dir: str | Path | None, split: str | None, **how: Any) -> list[Dialogue]:  # noqa: ANN401
    corpus, _, part = name.partition("/")
    if corpus in CORPORA and not is_own(name):
        return load_dialogues(corpus, data_dir, split or part, **how)
    if not Path(name).expanduser().exists() and (" " in name.strip() or "\n" in name):
        raise InputError(f"dialogues: got the text {name[:40]!r}, expected {_EXPECTED}")
    return load_dialogues(name, data_dir, split, **how)


def _of_table(
    table: Any,  # noqa: ANN401 - a DataFrame, or what writes CSV like one
    name: str,
    columns: Mapping[str, str],
    roles: RoleMap,
    notes: Notes,
    skip_invalid: bool,
) -> list[Dialogue]:
    with tempfile.TemporaryDirectory() as folder:  # the reader of tables finds columns and faults alike in both
        file = Path(folder) / "table.csv"
        table.to_csv(file, index=False)
        try:
            return list(dialogues(find_in_table(file, columns, roles, notes, name), name, skip_invalid=skip_invalid))
        except InputError as error:
            raise InputError(_in_python(str(error))) from None


def _in_python(sentence: str) -> str:
    """Says as an argument what a sentence says as an option of the command line."""
    return re.sub(r"--(columns|roles) ('[^']*')", r"load_dialogues(..., \1=\2)", sentence)


def _of_list(items: Iterable[Any], roles: RoleMap, notes: Notes, skip_invalid: bool) -> Iterator[Dialogue]:
    for number, item in enumerate(items):
        place = f"dialogues[{number}]"
        try:
            dialogue = _dialogue(item, place, roles, notes)
        except InputError as error:
            if not skip_invalid:
                raise InputError(f"{place}: {error}") from None
            notes.add(f"left out a malformed dialogue: {error}", place)
        else:
            yield from () if dialogue is None else (dialogue,)


def _dialogue(item: Any, place: str, roles: RoleMap, notes: Notes) -> Dialogue | None:  # noqa: ANN401
    if isinstance(item, Dialogue):
        return item
    if isinstance(item, str):
        raise InputError(
            f"got the text {item[:40]!r}, expected a list of messages; single utterances go to encode_utterances, and "
            "files are given by their path alone"
        )
    item = listed(item)
    if isinstance(item, Mapping) and "role" in item:
        raise InputError("got one message, expected a list of messages; put each dialogue into a list of its own")
    if isinstance(item, Sequence) and any(isinstance(message, str) for message in item):
        raise InputError(
            "got a list of texts, expected messages such as {'role': 'user', 'content': 'Hello'}; say who speaks"
        )
    record = item if isinstance(item, Mapping) else {"messages": item}
    finding = find_in_record(place, record, roles, notes)
    if finding is not None and finding.problems:
        raise InputError(finding.problems[0].message)
    return None if finding is None else finding.dialogue


def listed(value: Any) -> Any:  # noqa: ANN401
    """Makes lists of arrays at any depth, as which tables give lists back."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {name: listed(inner) for name, inner in value.items()}
    return [listed(inner) for inner in value] if isinstance(value, list | tuple) else value
