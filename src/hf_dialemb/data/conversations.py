"""Conversations in memory: lists of chat messages, and mappings that hold one."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from ..dialogue import UNSPOKEN, Dialogue
from ..errors import InputError

WRITTEN = {"id", "messages", "domains", "time", "metadata"}
"""The fields of `Dialogue.to_json`."""

_LISTS = ("messages", "conversation", "conversations")
CONVERSATIONS = (*_LISTS, "prompt")
"""Columns by which a row of a table is a whole conversation."""
_ROLES = {"human": "user", "gpt": "assistant"}  # of ShareGPT


def plain_dialogues(items: Any) -> list[Dialogue]:
    """Make dialogues of a list in which none needs a guess.

    Give none if one does, or of anything else.
    """
    if isinstance(items, list | tuple):
        with suppress(InputError):
            return list(map(_plain, items))
    return []


def _plain(item: Any) -> Dialogue:
    if isinstance(item, Dialogue):
        return item
    if isinstance(item, Mapping) and item.keys() == {"prompt", "completion"}:
        return from_conversation(item)
    if isinstance(item, Mapping) and item.keys() <= WRITTEN:
        return Dialogue.from_json(item)
    return Dialogue.from_messages(item)


def from_conversation(record: Any) -> Dialogue:
    """Make a dialogue of chat messages, or of a mapping with them.

    System prompts, calls of tools and pictures are left out.

    The mapping has ``messages``, ``conversation`` or ``conversations``, also in ShareGPT's form, or
    ``prompt`` and ``completion``, and it may have the other fields of `Dialogue.to_json`.

    Raises:
        InputError: It holds no conversation, or a message is malformed.
    """
    if isinstance(record, Dialogue):
        return record
    if fault := conversation_fault(record):
        raise InputError(fault)
    if not isinstance(record, Mapping):
        return Dialogue.from_messages(_messages(record))
    name = next((name for name in _LISTS if record.get(name) is not None), "")
    if name:
        messages = _messages(record[name])
    elif record.get("prompt") and record.get("completion"):
        messages = _said(record["prompt"], "user") + _said(record["completion"], "assistant")
    else:
        return Dialogue.from_json(record)  # which says what is missing
    metadata = record.get("metadata")
    if isinstance(metadata, str):  # of a dataset
        metadata = json.loads(metadata)
    fields = {field: record[field] for field in ("id", "domains", "time") if record.get(field)}
    return Dialogue.from_json({**fields, "messages": messages, "metadata": metadata})


def conversation_fault(item: Any) -> str:
    """Say why an item of a list can be no conversation; empty if it can."""
    if isinstance(item, str):
        return (
            f"got the text {item[:40]!r}, expected a list of messages; single utterances go to "
            "encode_utterances, and files are given by their path alone"
        )
    if not isinstance(item, Mapping | Sequence):
        return f"got {type(item).__name__}, expected a list of messages or a Dialogue; leave it out"
    if isinstance(item, Mapping):
        if "role" not in item:
            return ""
        return (
            "got one message, expected a list of messages; put each dialogue into a list of its own"
        )
    if any(isinstance(message, str) for message in item):
        return (
            "got a list of texts, expected messages such as {'role': 'user', 'content': 'Hello'}; "
            "say who speaks"
        )
    return ""


def _said(value: Any, role: str) -> list[Any]:
    return [{"role": role, "content": value}] if isinstance(value, str) else _messages(value)


def _messages(items: Any) -> list[Any]:
    messages = []
    for item in items:
        if isinstance(item, Mapping):
            fields = {name: value for name, value in item.items() if value is not None}
            role = fields.pop("from", None)
            if role is not None and "value" in fields:
                fields |= {"role": _ROLES.get(role, role), "content": fields.pop("value")}
            calls_alone = "tool_calls" in fields and not fields.get("content")
            if fields.get("role") in UNSPOKEN or calls_alone:
                continue
            if isinstance(parts := fields.get("content"), list):
                fields["content"] = " ".join(
                    part["text"] for part in parts if part.get("type") == "text"
                )
            messages.append(fields)
        else:
            messages.append(item)
    return messages
