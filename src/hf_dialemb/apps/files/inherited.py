"""What lies around a conversation in a file: its id, its time, its metadata, and its people."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from .columns import name_rank
from .evidence import Record, flattened, value_at
from .json_values import opened, pair_of, plain

_LONGEST_VALUE, _MOST_FIELDS = 1000, 50  # of metadata
_PERSON_IDS = {"id", "_id", "ID", "user_id", "userId", "ParticipantId", "participantId"}
_OF_PERSONS = {"name", "role", "type", "ParticipantRole", "real_name"}
_OF_MESSAGES = {"text", "body", "content", "Content", "author_id"}
_REQUESTERS = ("requester_id", "requester/id", "ticket/requester_id")


def people_of(context: Sequence[Record], items: Sequence[Record] = ()) -> dict[str, Record]:
    """Return the persons that lists beside the messages name, by their ids."""
    people: dict[str, Record] = {
        str(item.get("user")): {"user_profile": item["user_profile"]}
        for item in items
        if isinstance(item.get("user_profile"), Mapping)
    }
    for around in context:
        lists = [inner for inner in around.values() if isinstance(inner, list)]
        persons = [item for inner in lists for item in inner if isinstance(item, Mapping)]
        for person in persons:
            if person.keys() & _OF_PERSONS and not person.keys() & _OF_MESSAGES:
                people |= {str(person[key]): person for key in person.keys() & _PERSON_IDS}
        requester = value_at(dict(flattened(around)), _REQUESTERS)
        if requester is not None:
            people[str(requester)] = {"role": "requester", **people.get(str(requester), {})}
    return people


def fields_around(
    context: Sequence[Record], but: Collection[str] = (), *, is_pair: bool = False
) -> dict[str, Any]:
    """Return the scalars and lists around a conversation, the innermost first."""
    fields: dict[str, Any] = {}
    for level in map(opened, reversed(context)):
        spoken = {*but, *(pair_of(level) if is_pair else ())}
        for path, value in flattened(plain(level)):
            is_known = fields.get(path.rpartition("/")[2]) == value
            is_kept = not is_known and path.split("/")[0] not in spoken
            if isinstance(value, str | int | float | list) and is_kept:
                fields.setdefault(path, value)
    return fields


def ranked_fields(fields: Record, kind: str) -> list[tuple[str, Any]]:
    """Return the fields whose names fit, the best first."""
    ranks = [
        (rank, path)
        for path, value in fields.items()
        if isinstance(value, str | int | float) and not isinstance(value, bool) and value != ""
        if (rank := name_rank(kind, path)) is not None
    ]
    return [(path, fields[path]) for _, path in sorted(ranks, key=lambda part: part[0])]


def id_of(around: Record, key: str, but: Collection[str] = ()) -> tuple[Any, str]:
    """Return the id of a conversation, and its field, which is none that never differs."""
    ids = ranked_fields({path: around[path] for path in around if path not in but}, "id")
    named = [("", around[""])] if "" in around else []
    for path, value in ranked_fields(around, "group") or named or ids:
        return address_of(value), path
    for path, value in around.items():
        if isinstance(value, str) and "/conversations/" in value:
            return address_of(value), path
    return key, ""


def address_of(value: Any) -> Any:
    """Return an id without the address that it ends."""
    return value.rpartition("/conversations/")[2] if isinstance(value, str) else value


def metadata_of(around: Record, used: Sequence[str]) -> dict[str, Any]:
    """Return texts, numbers and lists of texts that lie around the messages."""
    kept: dict[str, Any] = {}
    for path, value in around.items():
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
