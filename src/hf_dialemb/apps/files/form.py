"""What a form is: the fields by which its records are known, and how a record becomes messages.

A message has ``role`` (the speaker as in the file) and ``content``. It may have ``name``, ``time``
(as it is written), ``markup`` (True: HTML), ``dialogue_acts``, ``slots``, ``intents``, ``group``
(what tells the dialogues of one record apart) and ``place``. One with ``left_out`` is not read, but
counted by this reason, such as "a private note". Forms neither sort nor clean, and leave times and
roles as they are.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

from .field_paths import Record, has, items_at, value_at
from .findings import Draft, Notes
from .joining import joined
from .roles import WELL_KNOWN

Message = dict[str, Any]
RECORD, FOLDER, TABLE, TEXT = "record", "folder", "table", "text"
"""What a file of a form holds.

JSON records (in a list, one a line, or rows of Parquet), files, rows, or text.
"""

ID = (
    "id uuid conversation_id conversationId ticket_id session_id sessionId conversation_hash "
    "thread_id"
)
TIME = "time created_at create_time timestamp createdAt created date startTime start_time"
_LONGEST_VALUE, _MOST_FIELDS = 1000, 50  # of metadata
_NO_NAME = re.compile(r"[\W\d]*|[0-9a-fA-F-]{24,}")  # numbers and UUIDs


@dataclass(frozen=True, eq=False)
class Form:
    """A form in which people have their conversations.

    Attributes:
        name: What people call it, such as ``"Intercom, API"``.
        vendor: Whose product gives it; empty if many do.
        export: How to get such a file; a sentence.
        messages: Makes messages of a record. A LookupError, TypeError, ValueError or
            AttributeError says that the record is malformed.
        fields: Paths (see `field_paths`) that every record of the form has.
        accepts: What holds of a record of the form, if paths are not enough.
        drafts: Reads a folder, where files belong together, instead of ``messages``.
        group: Paths to what records of one dialogue share.
        goes_on: Whether a record without such a value goes on with the dialogue before it.
        id: Paths to the dialogue's id, before the usual names.
        began: Paths to the time when a dialogue began.
        used: Other fields that are read, and so are no metadata.
        metadata: Paths to the metadata by name (``*`` stands for all fields of an object); if it is
            None, they are all other small fields of the record.
        has_groups: Whether messages of one record say by ``group`` of which dialogue they are.
        joins: Whether messages are pieces of a recording, to be joined to turns.
        mail: Whether messages are mails.
        pause: The hours that end a dialogue where messages have no group.
        whole: Values of fields, by path, of records that no pause divides.
        dialogue: What a dialogue is, for the documents.
        speakers: Who speaks, for the documents.
        left_out: What is left out and counted, for the documents.
        container: `RECORD`, or for the documents alone `FOLDER`, `TABLE` or `TEXT`.
    """

    name: str
    vendor: str = ""
    export: str = ""
    messages: Callable[[Record], Iterable[Message]] | None = None
    fields: Sequence[str] = ()
    accepts: Callable[[Any], bool] | None = None
    drafts: Callable[[Path, Notes], Iterable[Draft]] | None = None
    group: str = ""
    goes_on: bool = False
    id: str = ""
    began: str = TIME
    used: Sequence[str] = ()
    metadata: Mapping[str, str] | None = None
    has_groups: bool = False
    joins: bool = False
    mail: bool = False
    pause: float = 0
    whole: Mapping[str, Sequence[str]] | None = None
    dialogue: str = "a record"
    speakers: str = ""
    left_out: str = ""
    container: str = RECORD

    def has(self, record: Any) -> bool:
        """Return whether a record is of this form."""
        if not isinstance(record, Mapping) or not (self.fields or self.accepts):
            return False
        is_there = all(has(record, path) for path in self.fields)
        return is_there and (self.accepts is None or self.accepts(record))


@cache
def table_of(file: str) -> dict[str, Any]:
    """Return the content of a TOML file of this package."""
    return tomllib.loads(Path(__file__).with_name(file).read_text(encoding="utf-8"))


def meets(item: Record, conditions: Mapping[str, Sequence[str]] | None) -> bool:
    """Return whether one of several fields has one of its values, in any case of letters."""
    return any(
        str(value_at(item, path)).lower() in map(str.lower, values)
        for path, values in (conditions or {}).items()
    )


def drafts_of(form: Form, records: Sequence[tuple[str, Record]], notes: Notes) -> Iterator[Draft]:
    """Make the dialogues of records that belong together, each with its place."""
    place, first = records[0]
    spoken: dict[str, list[Message]] = {}
    for message in _messages(form, records):
        if "left_out" in message:
            notes.add(f"left out {message['left_out']}", message["place"])
            continue
        if "guess" in message:
            notes.guess(message.pop("guess"), message["place"])
        if "noted" in message:
            notes.add(message.pop("noted"), message["place"])
        message.setdefault("name", _called(message["role"]))
        spoken.setdefault(message.pop("group", ""), []).append(message)
    if not spoken and not form.goes_on:
        notes.add("left out a dialogue in which nobody says anything", place)
    if not form.has_groups and spoken and not any(turn["content"] for turn in spoken[""]):
        raise ValueError  # all texts are missing: their field may have another name
    time = value_at(first, form.began) or ""
    metadata = _metadata(first, form)
    for key, turns in spoken.items():
        divides = form.pause and not key and not meets(first, form.whole)
        yield Draft(
            place,
            _without_address(key or _id(form, records)),
            joined(place, turns, notes) if form.joins else turns,
            first.get("domains"),
            time=time,
            metadata=metadata,
            mail=form.mail,
            pause=timedelta(hours=form.pause) if divides else None,
        )


def _id(form: Form, records: Sequence[tuple[str, Record]]) -> Any:
    for _, record in records:
        if (name := value_at(record, f"{form.id} {ID}")) is not None:
            return name
    return ""


def _without_address(id: Any) -> Any:
    """Return the id at the end of an address of Front or Google."""
    return id.rpartition("/conversations/")[2] if isinstance(id, str) else id


def _messages(form: Form, records: Sequence[tuple[str, Record]]) -> list[Message]:
    messages: list[Message] = []
    for where, record in records:
        assert form.messages is not None, "a form of records reads messages"
        time = value_at(record, TIME) if len(records) > 1 else None
        latest = []
        for number, message in enumerate(form.messages(record), start=1):
            place = where if form.group else f"{where}: message {number}"
            beside = {"place": place} if time is None else {"place": place, "time": time}
            latest.append({**beside, **message})
        messages = continued(messages, latest) if form.group else latest
    return messages


def continued(before: list[Message], latest: list[Message]) -> list[Message]:
    """Return messages and those after them, which may begin with a history of earlier ones."""

    def keys(messages: list[Message]) -> list[Any]:
        return [
            tuple(str(message.get(field)) for field in ("role", "content", "left_out"))
            for message in messages
        ]

    old, new = keys(before), keys(latest)
    if new == old[: len(new)]:
        return before
    sizes = range(min(len(old), len(new)), 0, -1)
    shared = next((size for size in sizes if old[-size:] == new[:size]), 0)
    return before + latest[shared:]


def _metadata(record: Record, form: Form) -> dict[str, Any]:
    """Return texts, numbers and lists of texts that a record has beside its messages."""
    fields: dict[str, Any] = {}
    if form.metadata is None:
        paths = " ".join([form.group, form.id, *form.used, ID, TIME, "domains metadata"])
        known = {name for path in paths.split() for name in path.split("/")[0].split("|")}
        fields = {str(name): value for name, value in record.items() if name not in known}
        fields |= _as_object(record.get("metadata"))
    for name, path in (form.metadata or {}).items():
        if name == "*":
            fields |= _as_object(value_at(record, path))
        else:
            fields[name] = items_at(record, path) if name == "tags" else value_at(record, path)
    small = {name: _small(value) for name, value in fields.items()}
    kept = [(name, value) for name, value in small.items() if value not in (None, "", [])]
    return dict(kept[:_MOST_FIELDS])


def _as_object(value: Any) -> dict[str, Any]:
    """Return an object, also of its JSON, as datasets of dialogues have it; else an empty one."""
    if isinstance(value, str) and value.startswith("{"):
        with suppress(ValueError):
            value = json.loads(value)
    return dict(value) if isinstance(value, Mapping) else {}


def _small(value: Any) -> Any:
    """Return a value of metadata: a short text, a number, or a list of texts; else None."""
    if isinstance(value, list):
        texts = [str(item) for item in value if isinstance(item, str | int)]
        return texts if sum(map(len, texts)) <= _LONGEST_VALUE else None
    if isinstance(value, str):
        return value if len(value) <= _LONGEST_VALUE else None
    return value if isinstance(value, bool | int | float) else None


def _called(speaker: str) -> str:
    """Return the name of a speaker; empty for a role, a number or a UUID."""
    name = speaker.strip()
    return "" if name.casefold() in WELL_KNOWN or _NO_NAME.fullmatch(name) else name
