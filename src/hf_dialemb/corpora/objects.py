"""What Python users have in memory, read as dialogues."""

import tempfile
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from ..models.dialogue import Dialogue
from ..models.errors import InputError
from . import CORPORA, check_no_split, load_dialogues
from .own.exports import find_in_record
from .own.findings import Notes, log, noted
from .own.reading import is_own
from .own.roles import RoleMap

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
) -> list[Dialogue]:
    """Reads dialogues from whatever holds them.

    Examples:
        >>> as_dialogues([[{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]])

    Args:
        source: A list of dialogues: `Dialogue` objects, lists of chat messages, mappings with ``messages`` and perhaps
            ``id`` and ``domains``, or mappings of another form that JSON exports have; a ``datasets.Dataset`` of such
            rows; a DataFrame of turns; a file or folder; or the name of a corpus, as ``sgd`` or ``sgd/test``.
        data_dir: Where corpora lie.
        split: Which part of a corpus; by default ``train``.
        columns: Of a table, which column is what, as ``id=call,role=speaker,content=text``.
        roles: Who is who, as ``System=ignore,Customer=user,*=assistant``; what is guessed without it is logged.

    Returns:
        The dialogues, at least one.

    Raises:
        InputError: There is none, or something else is given; the sentence says where, and what to give.
    """
    if isinstance(source, str | PathLike):
        return _named(str(source), data_dir, split, columns, roles)
    check_no_split("what is in memory", split)
    if hasattr(source, "to_csv") and "messages" not in getattr(source, "columns", getattr(source, "column_names", ())):
        with tempfile.TemporaryDirectory() as folder:  # the reader of tables finds columns and faults alike in both
            file = Path(folder) / "table.csv"
            source.to_csv(file, index=False)
            return load_dialogues(str(file), columns=columns, roles=roles)
    items = source.to_dict("records") if hasattr(source, "iterrows") else source
    if isinstance(items, Mapping | Dialogue) or not hasattr(items, "__iter__"):
        raise InputError(f"dialogues: got one {type(items).__name__}, expected {_EXPECTED}; put it into a list")
    who, notes = RoleMap.parse(roles), Notes()
    found = (_dialogue(item, place, who, notes) for place, item in enumerate(items))
    dialogues = [dialogue for dialogue in found if dialogue is not None]
    log(noted(who, notes, "dialogues"))
    if not dialogues:
        raise InputError(f"dialogues: got none, expected {_EXPECTED}; give at least one")
    return dialogues


def _named(
    name: str, data_dir: str | Path | None, split: str | None, columns: str | None, roles: str | None
) -> list[Dialogue]:
    corpus, _, part = name.partition("/")
    if corpus in CORPORA and not is_own(name):
        return load_dialogues(corpus, data_dir, split or part)
    if not Path(name).expanduser().exists() and (" " in name.strip() or "\n" in name):
        raise InputError(f"dialogues: got the text {name[:40]!r}, expected {_EXPECTED}")
    return load_dialogues(name, data_dir, split, columns=columns, roles=roles)


def _dialogue(item: Any, place: int, roles: RoleMap, notes: Notes) -> Dialogue | None:  # noqa: ANN401
    if isinstance(item, Dialogue):
        return item
    if isinstance(item, str):
        raise InputError(
            f"dialogues[{place}]: got the text {item[:40]!r}, expected a list of messages; single utterances go to "
            "encode_utterances, and files are given by their path alone"
        )
    try:
        item = listed(item)
        if isinstance(item, Mapping) and "role" in item:
            raise InputError("got one message, expected a list of messages; put each dialogue into a list of its own")
        if isinstance(item, Sequence) and any(isinstance(message, str) for message in item):
            raise InputError(
                "got a list of texts, expected messages such as {'role': 'user', 'content': 'Hello'}; say who speaks"
            )
    except InputError as error:
        raise InputError(f"dialogues[{place}]: {error}") from None
    record = item if isinstance(item, Mapping) else {"messages": item}
    finding = find_in_record(f"dialogues[{place}]", record, roles, notes)
    if finding is not None and finding.problems:
        raise InputError(str(finding.problems[0]))
    return None if finding is None else finding.dialogue


def listed(value: Any) -> Any:  # noqa: ANN401
    """Makes lists of arrays at any depth, as which tables give lists back."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {name: listed(inner) for name, inner in value.items()}
    return [listed(inner) for inner in value] if isinstance(value, list | tuple) else value
