"""Turn and Dialogue: the form of a conversation in memory, from and to chat messages.

A dialogue in a file is a JSON object: ``{"id": "...", "messages": [{"role": "user", "content":
"..."}], "domains": ["hotel"], "time": "2026-01-31T14:05:00"}``. A message may have the speaker's
``name``, ``dialogue_acts`` (names), ``slots`` (objects with ``name`` and ``value``), ``intents``
(names) and the ``time`` when it was said. A dialogue may have ``metadata``: an object of names and
values.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self

from .errors import InputError

ROLES = ("user", "assistant", "speaker_3", "speaker_4", "speaker_5")
"""The speakers that a dialogue may have; the position of a name is its role id."""

WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\s\u3040-\u30ff\u3400-\u9fff]+")
"""A word; Chinese and Japanese have no blanks, and each of their characters is one."""

UNSPOKEN = ("system", "developer", "tool", "function")
"""Roles of a chat with a language model that no person reads; their messages are left out."""


@dataclass(frozen=True)
class Turn:
    """One speaker's contribution.

    Attributes:
        role: The speaker, one of `ROLES`.
        content: The text, never blank.
        dialogue_acts: The acts of the turn, such as ``("inform", "request")``.
        slots: The slots of the turn, as ``(name, value)`` pairs; the value may be empty.
        intents: The speaker's intents, such as ``("book_hotel",)``.
        name: The speaker's name, for display; it does not enter comparisons.
        time: When it was said, in ISO 8601, or empty; it does not enter comparisons.

    Raises:
        InputError: The role is unknown or the content is not text.
    """

    role: str
    content: str
    dialogue_acts: tuple[str, ...] = ()
    slots: tuple[tuple[str, str], ...] = ()
    intents: tuple[str, ...] = ()
    name: str = field(default="", compare=False, repr=False)
    time: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise InputError(
                f"field role: got {self.role!r}, expected one of {', '.join(ROLES)}; rename the "
                "speaker in your data, "
                "or, where a command has --roles, say who it is (--roles NAME=user)"
            )
        if not isinstance(self.content, str) or not self.content.strip():
            raise InputError(
                f"field content: got {self.content!r}, expected text; remove the turn or give it "
                "text"
            )

    @classmethod
    def from_message(cls, message: Any) -> Self:
        """Build a turn from a chat message; raise InputError if a field is malformed."""
        if not isinstance(message, Mapping):
            raise InputError(
                f"got {type(message).__name__}, expected an object with 'role' and 'content'"
            )
        slots = message.get("slots") or ()
        if not all(isinstance(slot, Mapping) and "name" in slot for slot in slots):
            raise InputError(
                f"field slots: got {slots!r}, expected objects with 'name' and 'value'"
            )
        name = message.get("name")
        return cls(
            message.get("role"),  # type: ignore[arg-type]  # Turn refuses what is missing
            message.get("content"),  # type: ignore[arg-type]
            _names(message.get("dialogue_acts"), "dialogue_acts"),
            tuple((slot["name"], str(slot.get("value") or "")) for slot in slots),
            _names(message.get("intents"), "intents"),
            name if isinstance(name, str) else "",
            iso_time(message.get("time")),
        )

    def to_message(self) -> dict[str, Any]:
        """Return the chat message with all labels that are known."""
        labels = {
            "name": self.name,
            "dialogue_acts": list(self.dialogue_acts),
            "slots": [{"name": name, "value": value} for name, value in self.slots],
            "intents": list(self.intents),
            "time": self.time,
        }
        return {
            "role": self.role,
            "content": self.content,
            **{name: value for name, value in labels.items() if value},
        }


@dataclass(frozen=True)
class Dialogue:
    """A conversation: its turns in order, and labels of the whole.

    Attributes:
        turns: At least one turn.
        id: A name that is unique in its corpus, or empty.
        domains: Labels of its topics; a single-domain dialogue has exactly one.
        time: When it began, in ISO 8601, or empty.
        metadata: What else is known of it, such as its channel or its agent, by name; it does not
            enter comparisons.

    Raises:
        InputError: There is no turn.
    """

    turns: tuple[Turn, ...]
    id: str = ""
    domains: tuple[str, ...] = ()
    time: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.turns:
            raise InputError(
                "field messages: got no turn, expected at least one; remove the dialogue or add "
                "its turns"
            )

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles that speak, in the order of their first turn."""
        return tuple(dict.fromkeys(turn.role for turn in self.turns))

    @classmethod
    def from_messages(
        cls,
        messages: Sequence[Mapping[str, Any]],
        id: str = "",
        domains: Sequence[str] = (),
        time: str = "",
        metadata: Mapping[str, Any] | None = None,
    ) -> Self:
        """Build a dialogue from chat messages.

        Raise InputError with the number of a malformed message.

        A message has ``role`` and ``content``, and may have ``name``, ``time`` and the labels of a
        `Turn`.
        """
        if isinstance(messages, str | Mapping) or not isinstance(messages, Sequence):
            raise InputError(
                f"field messages: got {type(messages).__name__}, expected a list of messages"
            )
        turns = []
        for index, message in enumerate(messages):
            try:
                turns.append(Turn.from_message(message))
            except InputError as error:
                raise InputError(f"messages[{index}]: {error}") from None
        return cls(
            tuple(turns), id, _names(domains, "domains") if domains else (), time, metadata or {}
        )

    def to_messages(self) -> list[dict[str, str]]:
        """Return the plain chat messages, as chat templates and sentence-transformers take them."""
        return [{"role": turn.role, "content": turn.content} for turn in self.turns]

    @classmethod
    def from_json(cls, record: Any) -> Self:
        """Build a dialogue from a parsed JSON object.

        Raise InputError with the name of a malformed field.
        """
        if not isinstance(record, Mapping):
            raise InputError(
                f"got {type(record).__name__}, expected an object with the field 'messages'"
            )
        if "messages" not in record:
            raise InputError(
                f"field messages is missing (found: {', '.join(map(str, record)) or 'no field'}); "
                "write each dialogue as an object with 'messages': a list of objects with 'role' "
                "and 'content'"
            )
        name = "" if record.get("id") is None else record["id"]
        if not isinstance(name, str | int):
            raise InputError(f"field id: got {type(name).__name__}, expected a string")
        time = iso_time(record.get("time"))
        metadata = record.get("metadata") or {}
        if not isinstance(metadata, Mapping):
            raise InputError(
                f"field metadata: got {type(metadata).__name__}, expected an object of names and "
                "values"
            )
        return cls.from_messages(
            record["messages"], str(name), record.get("domains") or (), time, metadata
        )

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object, without unknown labels."""
        labels = {"domains": list(self.domains), "time": self.time, "metadata": dict(self.metadata)}
        messages = [turn.to_message() for turn in self.turns]
        return {
            "id": self.id,
            "messages": messages,
            **{name: value for name, value in labels.items() if value},
        }


def plain(text: str) -> str:
    """Return a text without the differences of case and spaces."""
    return " ".join(text.casefold().split())


def action_name(acts: Iterable[str], slots: Iterable[str]) -> str:
    """Return the name of a turn's action, such as ``"inform, request area, food"``.

    Empty without acts and slots.

    Both lists are sorted, so that an action has one name (Dialog2Flow keeps the annotated order).
    """
    return " ".join(", ".join(sorted(set(names))) for names in (list(acts), list(slots)) if names)


def response_places(dialogue: Dialogue, responses: str) -> Iterator[int]:
    """Yield the places of responses (see `RankerConfig`), never the first, which has no context."""
    turns = dialogue.turns
    for place in range(max(1, len(turns) - 1) if responses == "last" else 1, len(turns)):
        if responses != "assistant" or turns[place].role == "assistant":
            yield place


def iso_time(value: Any) -> str:
    """Return a time in ISO 8601, from that form or seconds since 1970.

    Raise InputError for anything else.
    """
    if value is None or value == "":
        return ""
    try:
        if isinstance(value, int | float):
            return datetime.fromtimestamp(value, UTC).replace(microsecond=0).isoformat()
        return (value if isinstance(value, datetime) else datetime.fromisoformat(value)).isoformat()
    except (TypeError, ValueError, OverflowError, OSError):
        raise InputError(
            f"field time: got {value!r}, expected a time such as 2026-01-31T14:05:00; write it so, "
            "or remove it"
        ) from None


def _names(value: Any, field: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if (
        isinstance(value, str)
        or not isinstance(value, Sequence)
        or not all(isinstance(name, str) for name in value)
    ):
        raise InputError(f"field {field}: got {value!r}, expected a list of strings")
    return tuple(value)
