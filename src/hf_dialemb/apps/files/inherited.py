"""What lies around a conversation in a file: its id, its time, its metadata, and its people."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from .columns import name_rank
from .evidence import Record, flattened, value_at
from .json_values import opened, pair_of, plain
from .record_tables import Unit, first_text

_LONGEST_VALUE, _MOST_FIELDS = 1000, 50  # of metadata
_PERSON_IDS = {"id", "_id", "ID", "user_id", "userId", "ParticipantId", "participantId"}
_OF_PERSONS = {"name", "role", "type", "ParticipantRole", "real_name"}
_OF_MESSAGES = {"text", "body", "content", "Content", "author_id"}


def people_of(unit: Unit) -> dict[str, Record]:
    """Return the persons that lists beside the messages name, by their ids."""
    people: dict[str, Record] = {}
    for item in unit.items:
        if isinstance(item, Mapping) and isinstance(item.get("user_profile"), Mapping):
            people[str(item.get("user"))] = {"user_profile": item["user_profile"]}
    for around in unit.context:
        lists = [inner for inner in around.values() if isinstance(inner, list)]
        persons = [item for inner in lists for item in inner if isinstance(item, Mapping)]
        for person in persons:
            if person.keys() & _OF_PERSONS and not person.keys() & _OF_MESSAGES:
                people |= {str(person[key]): person for key in person.keys() & _PERSON_IDS}
        paths = ("requester_id", "requester/id", "ticket/requester_id")
        requester = value_at(dict(flattened(around)), paths)
        if requester is not None:
            people[str(requester)] = {"role": "requester", **people.get(str(requester), {})}
    return people


def fields_around(unit: Unit) -> dict[str, Any]:
    """Return the scalars and lists around a conversation, the innermost first."""
    fields: dict[str, Any] = {}
    for level in map(opened, reversed(unit.context)):
        sides = pair_of(level) if unit.kind == "pair" else ()
        for path, value in flattened(plain(level) if isinstance(level, Mapping) else {}):
            is_known = fields.get(path.rpartition("/")[2]) == value
            if path.split("/")[0] not in sides and value not in unit.items and not is_known:
                fields.setdefault(path, value)
    return {
        path: value for path, value in fields.items() if isinstance(value, str | int | float | list)
    }


def ranked_fields(fields: Record, kind: str) -> list[tuple[str, Any]]:
    """Return the fields whose names fit, the best first."""
    ranks = [
        (rank, path)
        for path, value in fields.items()
        if isinstance(value, str | int | float) and not isinstance(value, bool) and value != ""
        if (rank := name_rank(kind, path)) is not None
    ]
    return [(path, fields[path]) for _, path in sorted(ranks, key=lambda part: part[0])]


def id_of(unit: Unit, context: Record, but: Collection[str] = ()) -> tuple[Any, str]:
    """Return the id of a conversation, and its field, which is none that never differs."""
    ids = ranked_fields({path: context[path] for path in context if path not in but}, "id")
    named = [("", context[""])] if "" in context else []
    for path, value in ranked_fields(context, "group") or named or ids:
        return (value.rpartition("/conversations/")[2] if isinstance(value, str) else value), path
    for path, value in context.items():
        if isinstance(value, str) and "/conversations/" in value:
            return value.rpartition("/conversations/")[2], path
    return unit.key if unit.kind == "messages" else "", ""


def metadata_of(context: Record, used: Sequence[str]) -> dict[str, Any]:
    """Return texts, numbers and lists of texts that lie around the messages."""
    kept: dict[str, Any] = {}
    for path, value in context.items():
        name = path.rpartition("/")[2]
        small = _small(value)
        if path not in used and small not in (None, "", []) and len(kept) < _MOST_FIELDS:
            kept[path if name in kept else name] = small
    return kept


def _small(value: Any) -> Any:
    """Return a value of metadata: a short text, a number, or a list of texts; else None."""
    if isinstance(value, list):
        named = [
            item.get("name", item.get("tag"))
            if isinstance(item, Mapping) and len(item) < 4
            else item
            for item in value
        ]
        texts = [str(item) for item in named if isinstance(item, str | int)]
        return texts if sum(map(len, texts)) <= _LONGEST_VALUE else None
    return value if not isinstance(value, str) or len(value) <= _LONGEST_VALUE else None


def versions(units: list[Unit]) -> list[Unit]:
    """Keep one of several versions of a conversation in a record, such as two answers."""
    first: dict[Any, Unit] = {}
    for number, unit in enumerate(units):
        opening = first_text(unit) if len(units) > 1 else ""
        around = id(unit.context[-1]) if unit.context else 0
        key = (opening, str(id_of(unit, fields_around(unit))[0]) or around) if opening else number
        kept = first.setdefault(key, unit)
        if kept is not unit:
            kept.more.append(unit)
    return list(first.values())


def shared_key(unit: Unit) -> str:
    """Return what records of one dialogue share: the id of a session, a thread or the like."""
    value = next((value for _, value in ranked_fields(fields_around(unit), "group")), None)
    return "" if value is None else str(value).rpartition("/conversations/")[2]
