"""Chats with language models, and the traces of agents: whatever has messages with a speaker.

Rows of ``chats.toml`` say where a record has them.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from .chat_messages import BESIDE, INNER, SPEAKER, TEXT, TIME, on_path, pair_of, turns
from .field_paths import Record, has, value_at
from .form import Form, Message, continued

LISTS = (
    "messages|conversation|conversations|chat_messages|items|chat|dialog|dialogue|turns|thread|"
    "history|contents|input"
)
_OF_MESSAGES = {
    *SPEAKER.split("|"),
    *TEXT.split("|"),
    *TIME.split("|"),
    *BESIDE,
    "name",
    "tool_call_id",
    "annotations",
    "audio",
    "metadata",
}
_NOTICE = re.compile(  # what the programs of agents write in the name of their user
    r"\s*(<(command|local-command|environment|user_instructions|user_shell|system-reminder|turn_aborted|bash-)"
    r"|# AGENTS\.md instructions|\[Request interrupted|Caveat: )"
)
ONE_TALK = (
    "a message does not say of which conversation it is: taken as one with those around it; say "
    "which field tells conversations apart with --columns 'id=FIELD,role=FIELD,content=FIELD'"
)


def _said_in(paths: Sequence[str], record: Record) -> list[Message]:
    """Return what lies at paths of a record; texts at the first are a user's."""
    messages: list[Message] = []
    for number, path in enumerate(paths):
        speaker = "assistant" if number else "user"
        messages = continued(messages, list(turns(value_at(record, path), speaker)))
    return messages


def _chatgpt(record: Record) -> Iterator[Message]:
    nodes = [{**node, "id": name} for name, node in record["mapping"].items()]
    for node in on_path(nodes, record.get("current_node")):
        if value_at(node, "message/recipient") not in (None, "all"):
            yield {"left_out": "a call of a tool"}
        elif node.get("message") or "left_out" in node:
            yield from turns(node)


def _alpaca(record: Record) -> Iterator[Message]:
    asked = "\n".join(filter(None, (record["instruction"], record.get("input"))))
    for question, answer in [*(record.get("history") or ()), (asked, record["output"])]:
        yield from turns(question, "user")
        yield from turns(answer, "assistant")


def _pair(record: Record) -> Iterator[Message]:
    for name, side in zip(pair_of(record), ("user", "assistant"), strict=True):
        yield from turns(record[name], side)


def _listed(record: Record) -> Iterator[Message]:
    names = (name for name in LISTS.split("|") if has(record, f"{name}/*"))
    value: Any = record.get(next(names, ""))
    speakers = record.get("speakers")
    if isinstance(speakers, list) and isinstance(value, list) and has(record, f"{LISTS}/*/$"):
        value = [{"role": who, "content": text} for who, text in zip(speakers, value, strict=True)]
    return turns(value)


def _preferred(record: Record) -> Iterator[Message]:
    chosen = record["chosen"]
    if isinstance(chosen, str) or not isinstance(record.get("prompt"), str):
        yield from turns(record.get("prompt"), "user")
    yield from turns(chosen, "assistant")
    yield {"left_out": "an answer that was rejected"}


def _open_webui(record: Record) -> Iterator[Message]:
    chat = record["chat"]
    if nodes := value_at(chat, "history/messages"):
        return turns(list(on_path(list(nodes.values()), value_at(chat, "history/currentId"))))
    return turns(chat["messages"])


def _run(record: Record) -> list[Message]:
    if record.get("parent_run_id"):
        return [{"left_out": "a step within a run"}]
    asked = f"inputs/{INNER}|input|question|query|prompt|text"
    answered = f"outputs/{INNER}|answer|response|content|text"
    return _said_in((asked, answered), record)


def _span(record: Record) -> list[Message]:
    """Read a span of OpenTelemetry.

    Its messages are lists or JSON, or lie in numbered attributes.
    """
    messages: list[Message] = []
    for name in ("input.messages", "output.messages"):
        value = value_at(record, f"attributes/gen_ai.{name}")
        value = json.loads(value) if isinstance(value, str) else value
        messages = continued(messages, list(turns(value)))
    for name, role in (("prompt", "user"), ("completion", "assistant")):
        for number in count():
            path = f"attributes/gen_ai.{name}.{number}"
            if (text := value_at(record, f"{path}.content")) is None:
                break
            messages += turns({"role": value_at(record, f"{path}.role") or role, "content": text})
    return messages or [{"left_out": "a span without messages"}]


def _trace(record: Record) -> Iterator[Message]:
    """Read a line of an agent's trace: it is a message, or something about the session."""
    message = value_at(record, "message|payload")
    is_said = isinstance(message, dict) and value_at(message, "role|type") is not None
    is_about = record.get("isMeta") or record.get("isCompactSummary")
    if record.get("isSidechain"):
        yield {"left_out": "a message between an agent and another agent"}
    elif not is_said or is_about or record["type"] == "event_msg":
        yield {"left_out": "an entry of a trace that nobody says"}
    else:
        for turn in turns({**message, "time": record.get("timestamp")}):
            is_notice = _NOTICE.match(turn.get("content") or "")
            yield {"left_out": "a notice to an agent"} if is_notice else turn


def _alone(record: Record) -> Iterator[Message]:
    for message in turns(record):
        yield message if "left_out" in message else {**message, "guess": ONE_TALK}


def _is_alone(record: Record) -> bool:
    """Return whether a record has the fields of a message alone.

    What else it has may be a conversation's id.
    """
    return record.keys() <= _OF_MESSAGES


def _is_entry(record: Record) -> bool:
    """Return whether an entry of a trace is not itself a message."""
    return record.keys().isdisjoint(("content", "text", "role", "speaker"))


def _forms(*functions: Any) -> tuple[Form, ...]:
    """Return the forms of the rows of ``chats.toml``, which name functions without underscore."""
    text = Path(__file__).with_name("chats.toml").read_text(encoding="utf-8")
    rows = tomllib.loads(text.replace("LISTS", LISTS).replace("SPEAKER", SPEAKER))["forms"]
    named = {function.__name__.removeprefix("_"): function for function in functions}
    forms = []
    for row in rows:
        messages = named[row.pop("read")] if "read" in row else partial(_said_in, row.pop("turns"))
        accepts = named.get(row.pop("accepts", ""))
        forms.append(Form(messages=messages, accepts=accepts, **row))
    return tuple(forms)


CHATS = _forms(
    _chatgpt,
    _run,
    _span,
    _trace,
    _open_webui,
    _alpaca,
    _preferred,
    _listed,
    _pair,
    _alone,
    _is_alone,
    _is_entry,
)
"""The forms of this module."""
