"""Dialogues from objects in memory: dialogues, chat messages, mappings, datasets and tables."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ..dialogue import Dialogue
from ..errors import InputError
from .own.columns import parse_columns
from .own.findings import Notes, at_least_one, dialogues, distinct, log, remarks
from .own.forms import from_records
from .own.hub_dataset import MESSAGES, record_of
from .own.roles import RoleMap
from .own.tables import find_in_table, rows_of

EXPECTED = (
    "a list of dialogues, each a list of messages such as {'role': 'user', 'content': 'Hello'}, or a Dialogue; a "
    "datasets.Dataset, a DataFrame of turns, a path, or the name of a corpus"
)
_FIELDS = {"id", "messages", "domains", "time"}  # of a mapping that needs no guess


def from_objects(
    source: Any,  # noqa: ANN401 - see load_dialogues
    *,
    columns: str | None = None,
    roles: str | None = None,
    skip_invalid: bool = False,
) -> list[Dialogue]:
    """Read what `load_dialogues` takes besides names and paths."""
    if isinstance(source, Sequence) and source and all(isinstance(item, Dialogue) for item in source):
        return list(source)
    speakers, notes = RoleMap.parse(roles), Notes()
    names = getattr(source, "column_names", getattr(source, "columns", None))
    messages = next((name for name in MESSAGES if names is not None and name in names), "")
    place = "dialogues"
    if names is not None and not messages:
        place = "the table"
        rows = rows_of(list(map(str, names)), (list(row.values()) for row in _records(source)))
        try:
            findings = find_in_table(lambda _: iter(rows), place, parse_columns(columns), speakers, notes)
            findings = at_least_one(distinct(findings), place, "one turn per row")
            read = list(dialogues(findings, place, skip_invalid=skip_invalid))
        except InputError as error:
            raise InputError(_in_python(str(error))) from None
    else:
        items = source if names is None else (record_of(row, messages) for row in _records(source))
        if isinstance(items, Mapping | Dialogue) or not isinstance(items, Iterable):
            raise InputError(f"dialogues: got one {type(items).__name__}, expected {EXPECTED}; put it into a list")
        read = list(_of_items(items, speakers, notes, skip_invalid))
    log(replace(problem, message=_in_python(problem.message)) for problem in remarks(speakers, notes, place))
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


def _of_items(items: Iterable[Any], roles: RoleMap, notes: Notes, skip_invalid: bool) -> Iterator[Dialogue]:
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
    if not roles.given and record.keys() <= _FIELDS:
        with suppress(InputError):  # of other names or of parts, below
            return Dialogue.from_json(record)
    for finding in from_records([(place, record)], roles, notes):
        if finding.problems:
            raise InputError(finding.problems[0].message)
        return finding.dialogue  # type: ignore[no-any-return]
    return None
