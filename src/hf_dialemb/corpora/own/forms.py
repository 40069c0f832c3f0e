"""Conversations in JSON: chats with language models, exports of help desks, transcribed calls.

A form is a line of `FORMS`: the field that a record of it has, and a function from a record to its messages.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from html import unescape
from typing import Any

from ...dialogue import UNSPOKEN
from ...errors import InputError
from .findings import Draft, Finding, Notes, Problem, from_draft, from_record

Message = dict[str, Any]  # role, content, and perhaps labels
Record = Mapping[str, Any]
CHATS = ("messages", "conversation", "conversations")  # fields of chat messages, the first that is there
PAIR = ("prompt", "completion")  # fields of two turns, or of the messages before and after
_PROGRAMS = ("function_call", "function_response", "tool_call", "tool_response", "observation")
_NOT_SPOKEN = (*UNSPOKEN, *_PROGRAMS)
_IDS = ("id", "conversation_id", "ticket_id", "session_id")
_TIMES = ("created_at", "create_time", "timestamp")


def from_records(records: Iterable[tuple[str, Any]], notes: Notes) -> Iterator[Finding]:
    """Read conversations of any known form, each with its place; an `InputError` in place of a record is a problem."""
    for place, record in records:
        if isinstance(record, InputError):
            yield Finding(place, problems=(Problem(place, str(record)),))
        elif (messages := _messages_of(record)) is None:
            yield from_record(place, _named_alike(record))
        else:
            yield from from_draft(_draft(place, record, messages, notes), notes)


def conversations_of(value: Any) -> list[Any]:  # noqa: ANN401
    """Return the conversations of a JSON file: one, a list of them, or a list under ``conversations``."""
    inner = value.get("conversations") if isinstance(value, Mapping) else value
    return inner if isinstance(inner, list) and not (inner and _is_message(inner[0])) else [value]


def turn_fields(names: Iterable[str]) -> tuple[str, ...]:
    """Return which of a row's fields hold its turns: one of `CHATS`, or both of `PAIR`; empty without them."""
    present = set(names)
    chat = tuple(name for name in CHATS if name in present)[:1]
    return chat or (PAIR if present >= set(PAIR) else ())


def _named_alike(record: Any) -> Any:  # noqa: ANN401
    """Name the turns of a malformed record as messages, so that its faults are found."""
    fields = turn_fields(map(str, record)) if isinstance(record, Mapping) else ()
    return {**record, "messages": record[fields[0]]} if len(fields) == 1 else record


def _messages_of(record: Any) -> list[Message] | None:  # noqa: ANN401
    """Return the messages of a record, whoever speaks; None if its form is not known."""
    fields = {"messages": record} if isinstance(record, list) else record
    for field, messages in FORMS if isinstance(fields, Mapping) else ():
        if fields.get(field):
            with suppress(AttributeError, KeyError, IndexError, TypeError, ValueError):
                return messages(fields)
    return None


def _draft(place: str, record: Any, messages: list[Message], notes: Notes) -> Draft:  # noqa: ANN401
    spoken = []
    for message in messages:
        content, is_call = message["content"], bool(message.get("tool_calls") or message.get("function_call"))
        if message["role"] in _NOT_SPOKEN and len(messages) > 1:
            notes.add(f"left out a message of the role {message['role']}", place)
        elif is_call and not content:
            notes.add("left out a call of a tool", place)
        else:
            if isinstance(content, list) and not all(map(_part, content)):
                notes.add("left out a part of a message that has no text", place)
            spoken.append({**message, "content": _text(content)})
    fields = record if isinstance(record, Mapping) else {}
    identifier = next((fields[name] for name in _IDS if fields.get(name) is not None), "")
    time = next((fields[name] for name in ("time", *_TIMES) if fields.get(name)), "")
    return Draft(place, identifier, spoken, fields.get("domains"), time=time, metadata=fields.get("metadata") or {})


def _chat(messages: Any) -> list[Message]:  # noqa: ANN401
    if isinstance(messages, Mapping):  # a list of each field, as datasets gives old ones
        messages = [dict(zip(messages, fields, strict=True)) for fields in zip(*messages.values(), strict=True)]
    if not isinstance(messages, list) or not all(map(_is_message, messages)):
        raise ValueError
    return [{**turn, **_role_and_content(turn)} for turn in messages]


def _role_and_content(turn: Message) -> Message:
    if turn.get("role") is None:  # ShareGPT's
        return {"role": turn["from"], "content": turn["value"]}
    return {"role": turn["role"], "content": turn.get("content")}


def _pair(record: Record) -> list[Message]:
    sides = (record[field] for field in PAIR)
    texts = zip(("user", "assistant"), sides, strict=True)
    return [turn for role, side in texts for turn in ([_message(role, side)] if isinstance(side, str) else _chat(side))]


def _chatgpt(record: Record) -> list[Message]:
    nodes, place = record["mapping"], record.get("current_node")
    path: list[Message] = []
    seen = set()
    while place and place not in seen:  # from the last message to the first; other branches were abandoned
        seen.add(place)
        message = nodes[place].get("message")
        if message and message.get("content"):
            parts = message["content"].get("parts") or []
            text = " ".join(part for part in parts if isinstance(part, str))
            path.append(_message(message["author"]["role"], text))
        place = nodes[place].get("parent")
    return path[::-1]


def _intercom(record: Record) -> list[Message]:
    parts = record["conversation_parts"]
    rest = parts["conversation_parts"] if isinstance(parts, Mapping) else parts
    turns = [*([record["source"]] if record.get("source") else []), *rest]
    return [_message(turn["author"]["type"], _plain(turn.get("body"))) for turn in turns]


def _zendesk(record: Record) -> list[Message]:
    requester = (record.get("ticket") or record).get("requester_id")
    messages = []
    for comment in record["comments"]:
        author = comment.get("author") or {}
        speaker = author.get("role") or author.get("name")
        if not speaker:
            is_user = requester is None or comment["author_id"] == requester
            speaker = "user" if is_user else f"agent {comment['author_id']}"
        messages.append(_message(speaker, _plain(comment.get("plain_body") or comment.get("body"))))
    return messages


def _deepgram(record: Record) -> list[Message]:
    results = record["results"]
    if results.get("utterances"):
        return joined(results["utterances"])
    paragraphs = results["channels"][0]["alternatives"][0]["paragraphs"]["paragraphs"]
    return joined(
        {"speaker": paragraph["speaker"], "text": " ".join(part["text"] for part in paragraph["sentences"])}
        for paragraph in paragraphs
    )


def joined(pieces: Iterable[Record]) -> list[Message]:
    """Make turns of a transcript's pieces: those of one speaker in a row, or of nobody, are one turn."""
    messages: list[Message] = []
    for piece in pieces:
        speaker = str(piece.get("speaker", "") if messages else piece["speaker"])
        speaker = f"speaker {speaker}" if speaker.isdecimal() else speaker
        text = str(piece.get("text") or piece.get("transcript") or "").strip()
        if messages and speaker in ("", messages[-1]["role"]):
            messages[-1]["content"] += f" {text}"
        else:
            messages.append(_message(speaker, text))
    return messages


FORMS: tuple[tuple[str, Callable[[Record], list[Message]]], ...] = (
    ("messages", lambda record: _chat(record["messages"])),
    ("conversation", lambda record: _chat(record["conversation"])),
    ("conversations", lambda record: _chat(record["conversations"])),
    ("prompt", _pair),
    ("mapping", _chatgpt),
    ("conversation_parts", _intercom),
    ("comments", _zendesk),
    ("segments", lambda record: joined(record["segments"])),  # WhisperX
    ("utterances", lambda record: joined(record["utterances"])),
    ("results", _deepgram),
)


def _is_message(message: Any) -> bool:  # noqa: ANN401
    """Return whether a value is a message of OpenAI's kind, of ShareGPT's, or a call of a tool."""
    if not isinstance(message, Mapping):
        return False
    if message.get("role") is not None:
        return bool(message.keys() & {"content", "tool_calls", "function_call"})
    return message.get("from") is not None and "value" in message


def _message(speaker: object, text: object) -> Message:
    return {"role": str(speaker), "content": str(text)}


def _text(content: Any) -> Any:  # noqa: ANN401
    """Return the text of a message: a string, or the texts among its parts."""
    if isinstance(content, list):
        return " ".join(filter(None, map(_part, content)))
    return content


def _part(part: Any) -> str:  # noqa: ANN401
    """Return the text of a part of a message; empty for pictures and the like."""
    return str((isinstance(part, Mapping) and part.get("text")) or "")


def _plain(markup: Any) -> str:  # noqa: ANN401
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", markup or "")).split())
