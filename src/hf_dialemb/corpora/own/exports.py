"""Conversations as other programs write them in JSON: chats with language models, help desks, transcribed calls.

Known are chat messages as of OpenAI's interface, exports of ChatGPT, ShareGPT, Intercom and Zendesk, and transcripts
with speakers of WhisperX and Deepgram.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from html import unescape
from pathlib import Path
from typing import Any

from ..source.parsing import parse_json
from ..source.streams import decompressed
from .findings import Finding, Notes, Problem, at_least_one, began, distinct, from_record
from .roles import IGNORE, RoleMap, TooManySpeakersError

ENDING = ".json"

Message = dict[str, Any]  # role, content, and perhaps labels
_NOT_SAID = ("system", "developer", "tool", "function")  # of a chat with a language model: what no person reads


def find_in_export(path: Path, roles: RoleMap, notes: Notes) -> Iterator[Finding]:
    """Reads a JSON file: one conversation, or a list of them, in any of the forms that are known."""
    with decompressed(path) as stream:
        whole = parse_json(str(path), stream.read(), "export it again as JSON")
    records = whole if isinstance(whole, list) and not _is_message(whole[0] if whole else None) else [whole]
    if isinstance(whole, Mapping) and isinstance(whole.get("conversations"), list) and not _is_said(whole):
        records = whole["conversations"]  # several, under a name
    found = (find_in_record(f"{path}: dialogue {at}", record, roles, notes) for at, record in enumerate(records, 1))
    yield from at_least_one(distinct(filter(None, found)), path, "dialogues with messages")


def find_in_record(place: str, record: Any, roles: RoleMap, notes: Notes) -> Finding | None:  # noqa: ANN401
    """Reads one conversation of any known form; None if nothing in it was said by anybody who is not ignored."""
    messages = messages_of(record)
    if messages is None:
        return from_record(place, record)
    try:
        assigned = roles.assign(str(message["role"]) for message in messages if message["role"] not in _NOT_SAID)
    except TooManySpeakersError as error:
        return Finding(place, id=_id(record), problems=(Problem(place, str(error)),))
    kept = []
    for message in messages:
        role = assigned.get(str(message["role"]), "" if len(messages) > 1 else message["role"])
        if not role:
            notes.add(f"left out a message of the role {message['role']}", place)
        elif isinstance(message["content"], str) and not message["content"].strip():
            notes.add("left out a turn without text", place)
        elif role != IGNORE:
            kept.append({**message, "role": role})
    if messages and not kept:
        notes.add("left out a dialogue in which nobody says anything", place)
        return None
    known: dict[str, Any] = {"id": _id(record), "messages": kept}
    if isinstance(record, Mapping):
        exported = (began(record.get(name)) for name in ("created_at", "create_time", "timestamp"))
        known |= {"domains": record.get("domains"), "time": record.get("time") or next(filter(None, exported), "")}
    return from_record(place, known)


def messages_of(record: Any) -> list[dict[str, Any]] | None:  # noqa: ANN401 - whatever a file holds
    """Finds the messages of a record of a known form, whoever speaks; None where the form is not known."""
    try:
        for form in _FORMS:
            if (found := form(record)) is not None:
                return found
    except (AttributeError, KeyError, IndexError, TypeError, ValueError):
        pass
    return None


def _id(record: Any) -> Any:  # noqa: ANN401
    names = ("id", "conversation_id", "ticket_id", "session_id")
    return next((record[name] for name in names if isinstance(record, Mapping) and record.get(name) is not None), "")


def _messages(record: Any) -> list[Message] | None:  # noqa: ANN401
    messages = record if isinstance(record, list) else record.get("messages")
    if not isinstance(messages, list) or not messages or not all(map(_is_message, messages)):
        return None
    return [{**message, "content": _content(message["content"])} for message in messages]


def _sharegpt(record: Any) -> list[Message] | None:  # noqa: ANN401
    if not _is_said(record):
        return None
    return [_message(turn["from"], turn["value"]) for turn in record["conversations"]]


def _chatgpt(record: Any) -> list[Message] | None:  # noqa: ANN401
    nodes, place = record.get("mapping"), record.get("current_node")
    if not isinstance(nodes, Mapping):
        return None
    path: list[Message] = []
    seen = set()
    while place and place not in seen:  # from the last message to the first: other branches were not gone on with
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
    said = []
    for comment in comments:
        author = comment.get("author") or {}
        who = author.get("role") or author.get("name")
        if not who:
            who = "user" if requester is None or comment["author_id"] == requester else f"agent {comment['author_id']}"
        said.append(_message(who, _plain(comment.get("plain_body") or comment.get("body"))))
    return said


def _segments(record: Any) -> list[Message] | None:  # noqa: ANN401
    """WhisperX and Deepgram: pieces with speakers, of which those of one speaker in a row are a turn."""
    results = record.get("results") or {}
    pieces = record.get("segments") or record.get("utterances") or results.get("utterances")
    if pieces is None and results.get("channels"):
        paragraphs = results["channels"][0]["alternatives"][0]["paragraphs"]["paragraphs"]
        pieces = [
            {"speaker": one["speaker"], "text": " ".join(each["text"] for each in one["sentences"])}
            for one in paragraphs
        ]
    if not pieces or "speaker" not in pieces[0]:
        return None
    said: list[Message] = []
    for piece in pieces:
        who = str(piece.get("speaker", ""))
        who = f"speaker {who}" if who.isdecimal() else who
        text = str(piece.get("text") or piece.get("transcript") or "").strip()
        if said and who in ("", said[-1]["role"]):
            said[-1]["content"] += f" {text}"
        else:
            said.append(_message(who, text))
    return said


_FORMS: tuple[Callable[[Any], list[Message] | None], ...] = (
    _messages, _sharegpt, _chatgpt, _intercom, _zendesk, _segments,
)  # fmt: skip


def _is_message(message: Any) -> bool:  # noqa: ANN401
    return isinstance(message, Mapping) and {"role", "content"} <= message.keys()


def _is_said(record: Any) -> bool:  # noqa: ANN401
    turns = record.get("conversations") if isinstance(record, Mapping) else None
    return isinstance(turns, list) and bool(turns) and {"from", "value"} <= turns[0].keys()


def _message(who: object, text: object) -> Message:
    return {"role": str(who), "content": str(text)}


def _content(content: Any) -> Any:  # noqa: ANN401
    """The text of a message: a string, or the texts among its parts."""
    if isinstance(content, list):
        return " ".join(str(part["text"]) for part in content if isinstance(part, Mapping) and part.get("text"))
    return content


def _plain(markup: Any) -> str:  # noqa: ANN401
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", markup or "")).split())
