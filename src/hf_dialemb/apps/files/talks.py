"""Conversations as they lie in a file: messages, what lies around them, and versions."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from .columns import name_rank
from .evidence import Layout, value_at
from .json_values import Record, flattened, opened, plain
from .message_parts import Message

_LONGEST_VALUE = 1000  # characters of metadata
_MOST_FIELDS = 50  # of metadata
_PERSON_IDS = {"id", "_id", "ID", "user_id", "userId", "ParticipantId", "participantId"}
_OF_PERSONS = {"name", "role", "type", "ParticipantRole", "real_name"}
_OF_MESSAGES = {"text", "body", "content", "Content", "author_id"}
_REQUESTERS = ("requester_id", "requester/id", "ticket/requester_id")


@dataclass(eq=False)
class Talk:
    """A conversation, or a part of one, as it lies in a file.

    Attributes:
        read: Gives what is said, and what is left out, when it is asked for.
        path: The path of its list.
        around: The fields of the objects around it, the innermost first.
        layout: The fields of its messages, if it is a list of them.
        home: The identity of the object that holds it.
        items: What it is read from.
        more: Other versions of it beside it; they are left out.
    """

    read: Callable[[], Iterable[Message]]
    path: str
    around: dict[str, Any]
    layout: Layout = field(default_factory=Layout)
    home: int = 0
    items: Sequence[Any] = ()
    more: list["Talk"] = field(default_factory=list)
    has_opening: bool = False

    @cached_property
    def messages(self) -> list[Message]:
        """The messages."""
        return list(self.read())

    @property
    def texts(self) -> list[str]:
        """What is said, without regard to case and blanks."""
        return [folded(str(m["content"])) for m in self.messages if m.get("content")]

    @property
    def voices(self) -> int:
        """How many speakers and channels its pieces tell apart."""
        return len({(m.get("role"), m.get("channel")) for m in self.messages})

    @property
    def letters(self) -> str:
        """The letters of a recording; empty for others."""
        return re.sub(r"\W", "", "".join(self.texts)) if self.layout.is_recording else ""


def versions(talks: list[Talk]) -> list[Talk]:
    """Keep one of several versions of a conversation in a record, such as two answers.

    Of a recording, pieces in which nobody is told apart are a version of those that hold them.
    """
    if len(talks) < 2:
        return talks
    places = {id(talk): place for place, talk in enumerate(talks)}
    kept: dict[Any, Talk] = {}
    for talk in sorted(talks, key=lambda talk: -talk.voices):
        letters = "".join(sorted(talk.letters))
        first = talk.texts[0] if talk.texts else id(talk)
        key: Any = letters or (first, id_of(talk.around)[0] or talk.home)
        if letters and talk.voices == 1:
            held = (at for at in kept if kept[at].voices > 1 and talk.letters in kept[at].letters)
            key = next(held, key)
        if kept.setdefault(key, talk) is not talk:
            kept[key].more.append(talk)
    return sorted(kept.values(), key=lambda talk: places[id(talk)])


def folded(text: str) -> str:
    """Return a text without regard to case and blanks."""
    return " ".join(text.casefold().split())


def people_of(context: Sequence[Record], items: Sequence[Record] = ()) -> dict[str, Record]:
    """Return the persons that lists beside the messages name, by their ids."""
    people: dict[str, Record] = {
        str(item.get("user")): {"user_profile": item["user_profile"]}
        for item in items
        if isinstance(item.get("user_profile"), Mapping)
    }
    for around in context:
        lists = [inner for inner in around.values() if isinstance(inner, list)]
        for person in [item for inner in lists for item in inner if isinstance(item, Mapping)]:
            if person.keys() & _OF_PERSONS and not person.keys() & _OF_MESSAGES:
                people |= {str(person[key]): person for key in person.keys() & _PERSON_IDS}
        if requester := value_at(dict(flattened(around)), _REQUESTERS):
            people[str(requester)] = {"role": "requester", **people.get(str(requester), {})}
    return people


def fields_around(context: Sequence[Record], but: Collection[str] = ()) -> dict[str, Any]:
    """Return the scalars and lists around a conversation, the innermost first."""
    fields: dict[str, Any] = {}
    for level in map(opened, reversed(context)):
        for path, value in flattened(plain(level)):
            is_known = fields.get(path.rpartition("/")[2]) == value or path.split("/")[0] in but
            if isinstance(value, str | int | float | list) and not is_known:
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


def id_of(around: Record, but: Collection[str] = ()) -> tuple[Any, str]:
    """Return the id of a conversation, and its field, which is none that never differs."""
    ids = ranked_fields({path: around[path] for path in around if path not in but}, "id")
    addresses = [(path, value) for path, value in around.items() if address_of(value) != value]
    for path, value in ranked_fields(around, "group") or ids or addresses:
        return address_of(value), path
    return around.get("", ""), ""


def address_of(value: Any) -> Any:
    """Return an id without the address that it ends."""
    return value.rpartition("/conversations/")[2] if isinstance(value, str) else value


def metadata_of(around: Record, used: Sequence[str]) -> dict[str, Any]:
    """Return short texts, numbers and lists of texts that lie around the messages.

    A name that stands twice, or that the conversation's own id or time has, is the whole path.
    """
    kept: dict[str, Any] = {}
    taken = {path.rpartition("/")[2] for path in used}
    for path, value in around.items():
        name = path.rpartition("/")[2]
        small = _texts(value) if isinstance(value, list) else value
        is_short = isinstance(small, int | float) or sum(map(len, small)) <= _LONGEST_VALUE
        if path not in used and small not in ("", []) and is_short and len(kept) < _MOST_FIELDS:
            kept[path if name in kept or name in taken else name] = small
    return kept


def _texts(values: list[Any]) -> list[str]:
    """Return the texts of a list, and the names of its small objects."""
    named = [
        item.get("name", item.get("tag")) if isinstance(item, Mapping) and len(item) < 4 else item
        for item in values
    ]
    return [str(item) for item in named if isinstance(item, str | int)]
