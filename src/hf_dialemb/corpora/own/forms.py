"""Conversations in JSON: chats with language models, exports of help desks, transcribed calls.

Known are chat messages as of OpenAI's interface, exports of ChatGPT, ShareGPT, Intercom and Zendesk, and transcripts
with speakers of WhisperX and Deepgram.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from html import unescape
from typing import Any

from ...errors import InputError
from .findings import Draft, Finding, Notes, Problem, began, from_draft, from_record
from .roles import RoleMap

Message = dict[str, Any]  # role, content, and perhaps labels
_NOT_SPOKEN = ("system", "developer", "tool", "function")  # roles of a chat with a language model that nobody reads
_IDS = ("id", "conversation_id", "ticket_id", "session_id")


def from_records(records: Iterable[tuple[str, Any]], roles: RoleMap, notes: Notes) -> Iterator[Finding]:
    """Read conversations of any known form, each with its place; an `InputError` in place of a record is a problem."""
    for place, record in records:
        if isinstance(record, InputError):
            yield Finding(place, problems=(Problem(place, str(record)),))
        elif (messages := _messages_of(record)) is None:
            yield from_record(place, record)
        else:
            yield from from_draft(_draft(place, record, messages, notes), roles, notes)


def conversations_of(value: Any) -> list[Any]:  # noqa: ANN401
    """Return the conversations of a JSON file: one, a list of them, or a list under ``conversations``."""
    if isinstance(value, list) and not (value and _is_message(value[0])):
        return value
    if isinstance(value, Mapping) and isinstance(value.get("conversations"), list) and not _is_sharegpt(value):
        return value["conversations"]  # type: ignore[no-any-return]
    return [value]


def _draft(place: str, record: Any, messages: list[Message], notes: Notes) -> Draft:  # noqa: ANN401
    spoken = []
    for message in messages:
        if message["role"] in _NOT_SPOKEN and len(messages) > 1:
            notes.add(f"left out a message of the role {message['role']}", place)
        else:
            spoken.append(message)
    fields = record if isinstance(record, Mapping) else {}
    identifier = next((fields[name] for name in _IDS if fields.get(name) is not None), "")
    exported = (began(fields.get(name)) for name in ("created_at", "create_time", "timestamp"))
    time = fields.get("time") or next(filter(None, exported), "")
    return Draft(place, identifier, spoken, fields.get("domains"), time=time)


def _messages_of(record: Any) -> list[Message] | None:  # noqa: ANN401
    """Return the messages of a record, whoever speaks; None if its form is not known."""
    try:
        return next((messages for form in _FORMS if (messages := form(record)) is not None), None)
    except (AttributeError, KeyError, IndexError, TypeError, ValueError):
        return None


def _chat(record: Any) -> list[Message] | None:  # noqa: ANN401
    messages = record if isinstance(record, list) else record.get("messages")
    if not isinstance(messages, list) or not messages or not all(map(_is_message, messages)):
        return None
    return [{**message, "content": _text(message["content"])} for message in messages]


def _sharegpt(record: Any) -> list[Message] | None:  # noqa: ANN401
    if not _is_sharegpt(record):
        return None
    return [_message(turn["from"], turn["value"]) for turn in record["conversations"]]


def _chatgpt(record: Any) -> list[Message] | None:  # noqa: ANN401
    nodes, place = record.get("mapping"), record.get("current_node")
    if not isinstance(nodes, Mapping):
        return None
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


def _intercom(record: Any) -> list[Message] | None:  # noqa: ANN401
    parts = record.get("conversation_parts")
    if parts is None:
        return None
    rest = parts["conversation_parts"] if isinstance(parts, Mapping) else parts
    turns = [*([record["source"]] if record.get("source") else []), *rest]
    return [_message(turn["author"]["type"], _plain(turn.get("body"))) for turn in turns]


def _zendesk(record: Any) -> list[Message] | None:  # noqa: ANN401
    comments = record.get("comments")
    if not isinstance(comments, list):
        return None
    requester = (record.get("ticket") or record).get("requester_id")
    messages = []
    for comment in comments:
        author = comment.get("author") or {}
        speaker = author.get("role") or author.get("name")
        if not speaker:
            is_user = requester is None or comment["author_id"] == requester
            speaker = "user" if is_user else f"agent {comment['author_id']}"
        messages.append(_message(speaker, _plain(comment.get("plain_body") or comment.get("body"))))
    return messages


def _segments(record: Any) -> list[Message] | None:  # noqa: ANN401
    """WhisperX and Deepgram: pieces with speakers; the pieces of one speaker in a row are a turn."""
    results = record.get("results") or {}
    pieces = record.get("segments") or record.get("utterances") or results.get("utterances")
    if pieces is None and results.get("channels"):
        pieces = [
            {"speaker": paragraph["speaker"], "text": " ".join(part["text"] for part in paragraph["sentences"])}
            for paragraph in results["channels"][0]["alternatives"][0]["paragraphs"]["paragraphs"]
        ]
    if not pieces or "speaker" not in pieces[0]:
        return None
    messages: list[Message] = []
    for piece in pieces:
        speaker = str(piece.get("speaker", ""))
        speaker = f"speaker {speaker}" if speaker.isdecimal() else speaker
        text = str(piece.get("text") or piece.get("transcript") or "").strip()
        if messages and speaker in ("", messages[-1]["role"]):
            messages[-1]["content"] += f" {text}"
        else:
            messages.append(_message(speaker, text))
    return messages


_FORMS: tuple[Callable[[Any], list[Message] | None], ...] = (
    _chat, _sharegpt, _chatgpt, _intercom, _zendesk, _segments,
)  # fmt: skip


def _is_message(message: Any) -> bool:  # noqa: ANN401
    return isinstance(message, Mapping) and message.get("role") is not None and "content" in message


def _is_sharegpt(record: Any) -> bool:  # noqa: ANN401
    turns = record.get("conversations") if isinstance(record, Mapping) else None
    return isinstance(turns, list) and bool(turns) and {"from", "value"} <= turns[0].keys()


def _message(speaker: object, text: object) -> Message:
    return {"role": str(speaker), "content": str(text)}


def _text(content: Any) -> Any:  # noqa: ANN401
    """Return the text of a message: a string, or the texts among its parts."""
    if isinstance(content, list):
        return " ".join(str(part["text"]) for part in content if isinstance(part, Mapping) and part.get("text"))
    return content


def _plain(markup: Any) -> str:  # noqa: ANN401
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", markup or "")).split())
