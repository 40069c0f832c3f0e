"""Doc2Dial: dialogues between a user and an agent who answers from a web page of a public service.

Sources: https://doc2dial.github.io and https://github.com/doc2dial/sharedtask-dialdoc2021. Licence: CC BY 3.0 on its
dataset card; the repositories state none.
Layout: ``*dial_train.json``, ``*dial_validation.json`` and ``*dial_finaltest.json``, as named in the full release; the
shared task's test file holds dialogues that stop at an arbitrary turn.

One role may speak several turns on end; they stay apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..models.dialogue import Dialogue, Turn
from ..models.errors import InputError
from .records import convert_each, convert_records, field
from .source import Source, read_json

SPLITS = ("train", "dev", "test")
FILES = {"train": ("*dial_train.json",), "dev": ("*dial_validation.json",), "test": ("*dial_finaltest.json",)}

_ROLES = {"user": "user", "agent": "assistant"}


def read(source: Source, split: str, *, skip_invalid: bool = False) -> Iterator[Dialogue]:
    """Reads one split.

    Args:
        source: The corpus's files.
        split: One of `SPLITS`.
        skip_invalid: Leave malformed records out with a warning.

    Returns:
        The dialogues, in the order of the file.

    Raises:
        InputError: A file or a record is malformed.
    """
    return convert_records(_records(source, split), _dialogue, skip_invalid=skip_invalid)


def _records(source: Source, split: str) -> Iterator[tuple[str, Any]]:
    for pattern in FILES[split]:
        for name, stream in source.files(pattern):
            content = read_json(name, stream)
            try:
                documents = _documents(content)
            except InputError as error:
                raise InputError(f"{name}: {error}") from None
            for document, dialogues in documents:
                for index, raw in enumerate(dialogues):
                    yield f"{name}: document {document!r} record {index}", raw


def _documents(content: Any) -> list[tuple[str, list[Any]]]:  # noqa: ANN401
    domains = field(content, "dial_data", dict)
    by_document = [field(domains, domain, dict) for domain in domains]
    return [(document, field(documents, document, list)) for documents in by_document for document in documents]


def _dialogue(raw: Any) -> Dialogue:  # noqa: ANN401
    turns = convert_each(field(raw, "turns", list), "turns", _turn)
    return Dialogue(turns, field(raw, "dial_id", str), (field(raw, "domain", str),))


def _turn(raw: Any) -> Turn:  # noqa: ANN401
    role = field(raw, "role", str)
    if role not in _ROLES:
        raise InputError(f"field role: got {role!r}, expected user or agent; repair the record")
    act = field(raw, "da", str) if "da" in raw else ""  # the shared task's files blank it or leave it out
    return Turn(_ROLES[role], field(raw, "utterance", str), (act,) if act else ())
