"""Write dialogues as rows of an index: what identifies them, their texts, times and metadata."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from ...dialogue import Dialogue
from ...encoders.stored_vectors import METADATA
from ...errors import InputError
from ...methods.sessions import spoken
from .hits import beginning
from .word_index import words_of

_TEXTS = ("id", "role", "text", "time", "topic", "digest")
_TEXTS_OF_TURNS = ("speaker", "words")


def schema_of(width: int, record: Mapping[str, Any]) -> pa.Schema:
    """Return the columns of an index but for metadata, with what is recorded of it."""
    names = [*_TEXTS, *(_TEXTS_OF_TURNS if record["level"] == "turns" else ())]
    fields = [pa.field(name, pa.string()) for name in names]
    fields += [
        pa.field("turn", pa.int32()),
        pa.field("domains", pa.list_(pa.string())),
        pa.field("vector", pa.list_(pa.float32(), width)),
    ]
    return pa.schema(fields, metadata={METADATA: json.dumps({**record, "width": width})})


def identified(dialogues: Iterable[Dialogue]) -> Iterator[tuple[str, str, Dialogue]]:
    """Yield dialogues with their ids and digests of all else.

    The digest stands in for a missing id.
    """
    seen: dict[str, str] = {}
    for dialogue in dialogues:
        record = {**dialogue.to_json(), "id": ""}
        digest = hashlib.sha256(json.dumps(record, default=str).encode()).hexdigest()[:32]
        name = dialogue.id or digest
        if name not in seen:
            seen[name] = digest
            yield name, digest, dialogue
        elif seen[name] != digest:
            raise InputError(
                f"id: got {name!r} twice for different dialogues; give each dialogue its own id"
            )


def rows_of(dialogue: Dialogue, level: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a dialogue, or of its turns, without what identifies it."""
    time, domains = _in_utc(dialogue.time, dialogue), list(dialogue.domains)
    if level == "dialogues":
        yield {"time": time, "domains": domains, "role": "", "turn": 0, "text": beginning(dialogue)}
        return
    for place, turn in enumerate(dialogue.turns):
        yield {
            "time": _in_utc(turn.time, dialogue) or time,
            "domains": domains,
            "role": turn.role,
            "turn": place,
            "text": turn.content,
            "speaker": turn.name,
            "words": " ".join(words_of(spoken(turn))),
        }


def _in_utc(time: str, dialogue: Dialogue) -> str | None:
    if not time:
        return None
    try:
        moment = datetime.fromisoformat(time)
        if moment.tzinfo:
            moment = moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        expected = "a time of the years 1 to 9999 in UTC, such as 2026-01-31T14:05:00"
        raise InputError(
            f"dialogue {dialogue.id!r}, field time: got {time!r}, expected {expected}; correct it"
        ) from None
    return moment.isoformat()


def typed_column(values: Sequence[Any], known: pa.DataType | None) -> pa.Array:
    """Make a column of numbers, booleans, lists of texts, or else texts.

    It has the known type where that is texts, or where there is no value.
    """
    kinds = {type(value) for value in values if value is not None}
    kind = pa.string()
    if known == kind or (known and not kinds):
        kind = known
    elif kinds == {bool}:
        kind = pa.bool_()
    elif kinds <= {int, float}:
        kind = pa.float64()
        values = [None if value is None else float(value) for value in values]  # of any size
    elif kinds == {list} and all(isinstance(item, str) for own in values for item in own or ()):
        kind = pa.list_(pa.string())
    if kind == pa.string():
        values = [
            value if isinstance(value, str | None) else json.dumps(value, default=str)
            for value in values
        ]
    return pa.array(values, kind)
