"""Chats with language models, and the traces of agents.

Whatever has messages with a speaker and a text.

`turns` reads all of them: texts, messages with fields of any usual name, parts of a message, pairs
of what a person and a model say. Rows of ``chats.toml`` say where a record has them.
"""

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any

from ...dialogue import UNSPOKEN
from .field_paths import Record, has, rows_in, value_at
from .form import Form, Message, continued

LISTS = (
    "messages|conversation|conversations|chat_messages|items|chat|dialog|dialogue|turns|thread|"
    "history|contents|input"
)
SPEAKER = "role|from|sender|speaker|author|isCreatedByUser|type|src"
_TEXT = "content|value|text|parts|refusal|message|utterance|body"
_TIME = "time|timestamp|created_at|create_time|createdAt|created|date"
_PAIRS = (  # fields of what a person and a model say
    ("human", "assistant"),
    ("human", "gpt"),
    ("human", "bot"),
    ("user", "assistant"),
    ("user", "bot"),
    ("prompt", "completion"),
    ("prompt", "response"),
    ("question", "answer"),
    ("query", "response"),
    ("instruction", "response"),
    ("input", "output"),
)
_NOT_SPOKEN = {
    *UNSPOKEN,
    "functioncall",
    "functionresponse",
    "toolcall",
    "toolresponse",
    "toolresult",
    "observation",
}
# types of what is said
_TEXTS = ("text", "input_text", "output_text", "multimodal_text", "refusal", "message")
_KINDS = (  # from words in the type of a part to what it is, the first that fits
    (r"result|tool.?resp|call.?output|function.?resp|execution", "a result of a tool"),
    (r"tool|function|call|code|action", "a call of a tool"),
    (r"think|thought|reason", "a thought of a model"),
    (r"image|picture|inline", "a picture"),
    (r"audio|video|file|document|attachment", "a file"),
    (r"context|instruction", "instructions for a model"),
)
_NOTICE = re.compile(  # what the programs of agents write in the name of their user
    r"\s*(<(command|local-command|environment|user_instructions|user_shell|system-reminder|turn_aborted|bash-)"
    r"|# AGENTS\.md instructions|\[Request interrupted|Caveat: )"
)
_BESIDE = {  # fields beside the text of a message
    "tool_calls": "tool",
    "function_call": "tool",
    "reasoning_content": "thought",
    "attachments": "file",
    "files": "file",
    "images": "image",
}
_INNER = "messages|choices|generations|candidates|output"  # around messages
_OF_MESSAGES = {
    *SPEAKER.split("|"),
    *_TEXT.split("|"),
    *_TIME.split("|"),
    *_BESIDE,
    "name",
    "tool_call_id",
    "annotations",
    "audio",
    "metadata",
}
_IDS = "id|uuid|messageId|message_id"
_PARENTS = "parent|parentId|parentMessageId|parent_message_uuid|parent_id"
_PARENT_NAMES = frozenset(_PARENTS.split("|"))


IN_TURN = (
    "a list of texts without speakers: taken as said in turn by 'first' and 'second'; say who they "
    "are with --roles 'first=user,second=assistant'"
)
ONE_TALK = (
    "a message does not say of which conversation it is: taken as one with those around it; say "
    "which field tells conversations apart with --columns 'id=FIELD,role=FIELD,content=FIELD'"
)


def turns(value: Any, speaker: str = "") -> Iterator[Message]:
    """Yield the messages in a value; ``speaker`` says a text that is nobody's.

    A ValueError refuses what is neither a message nor a text.
    """
    if isinstance(value, str) and speaker:
        yield {"role": speaker, "content": value}
    elif isinstance(value, dict):
        yield from _turns_of(value, speaker)
    elif isinstance(value, list) and value and all(isinstance(text, str) for text in value):
        for number, text in enumerate(value):
            message = {"role": ("first", "second")[number % 2], "content": text, "name": ""}
            yield message if number else {**message, "guess": IN_TURN}
    elif isinstance(value, list):
        for item in on_path(value):
            yield from turns(item, speaker)
    elif value is not None:
        raise ValueError


def _said_in(paths: Sequence[str], record: Record) -> list[Message]:
    """Return what lies at paths of a record; texts at the first are a user's."""
    messages: list[Message] = []
    for number, path in enumerate(paths):
        speaker = "assistant" if number else "user"
        messages = continued(messages, list(turns(value_at(record, path), speaker)))
    return messages


def on_path(messages: Sequence[Any], last: Any = None) -> Iterator[Any]:
    """Yield the messages that lead to the last one where there are branches, else all of them."""
    messages = list(_flat(messages))
    nodes: dict[str, Any] = {}
    if any(isinstance(message, dict) and _PARENT_NAMES & message.keys() for message in messages):
        # LangChain's ids are lists
        nodes = {repr(value_at(message, _IDS)): message for message in messages}
    parents = {name: repr(value_at(message, _PARENTS)) for name, message in nodes.items()}
    children = Counter(parent for parent in parents.values() if parent in nodes)
    has_branches = last is not None or max(children.values(), default=0) > 1
    if not has_branches or "None" in nodes or len(nodes) < len(messages):
        yield from messages
        return
    place = repr(last) if last else next(reversed(nodes))
    path: list[str] = []
    while place in nodes and place not in path:
        path.append(place)
        place = parents[place]
    for name in reversed(path):
        yield nodes[name]
    for _ in nodes.keys() - set(path):
        yield {"left_out": "a message of a branch that was abandoned"}


def _flat(messages: Iterable[Any]) -> Iterator[Any]:
    """Yield messages, each before those that lie within it as its answers."""
    for message in messages:
        yield message
        answers = message.get("children") if isinstance(message, dict) else None
        yield from _flat(answer for answer in answers or () if isinstance(answer, dict))


def _turns_of(item: Record, speaker: str) -> Iterator[Message]:
    """Yield the messages in an object: a message, a wrapper of messages, or a pair."""
    if "left_out" in item:
        yield dict(item)
        return
    if item and all(isinstance(column, list) for column in item.values()):
        for row in rows_in(item):
            yield from turns(row, speaker)
        return
    item = _unwrapped(item)
    role = _speaker_of(item)
    if role not in ("", "message"):
        yield from _message(item, role)
    elif not speaker and (pair := pair_of(item)):
        for name, side in zip(pair, ("user", "assistant"), strict=True):
            yield from turns(item[name], side)
    elif (inner := value_at(item, _INNER)) is not None:
        yield from turns(inner, speaker)
    else:
        yield from _message(item, speaker)


def pair_of(item: Any) -> tuple[str, ...]:
    """Return the names of two fields in which a person and a model say something, if there are."""
    fields = item.items() if isinstance(item, dict) else ()
    names = {name for name, value in fields if isinstance(value, str | list)}
    return next((pair for pair in _PAIRS if names and names >= set(pair)), ())


def _unwrapped(item: Record) -> Record:
    """Bring up the fields of a message that lies one level down."""
    # LangChain's two, Codex's, and most others'
    for name in ("data", "kwargs", "payload", "message"):
        inner = item.get(name)
        if isinstance(inner, dict):
            outer = {key: value for key, value in item.items() if key != name}
            constructor = item.get("id")
            if isinstance(constructor, list) and constructor:  # ["langchain", ..., "HumanMessage"]
                kind = str(constructor[-1]).removesuffix("Chunk").removesuffix("Message")
                outer["type"] = kind.lower()
            return _unwrapped({**outer, **inner})
    return item


def _speaker_of(item: Record) -> str:
    if isinstance(item.get("isCreatedByUser"), bool):
        return "user" if item["isCreatedByUser"] else "assistant"
    speaker = value_at(item, SPEAKER)
    if speaker is item.get("type"):  # LangChain's
        speaker = {"human": "user", "ai": "assistant"}.get(str(speaker), speaker)
    if isinstance(speaker, dict) and isinstance(speaker.get("is_human"), bool):
        return "user" if speaker["is_human"] else "assistant"
    if isinstance(speaker, dict):
        speaker = value_at(speaker, "role|type|name|id")
    return "" if speaker is None else str(speaker)


def _message(item: Record, role: str) -> Iterator[Message]:
    """Yield what is left out of one message, then its text."""
    kind = "" if item.get("role") else _kind(str(item.get("type") or ""))
    if item.get("isThought"):
        yield {"left_out": "a thought of a model"}
        return
    if _is_program(role) or (kind and kind == _kind(role)):
        yield {"left_out": kind or f"a message of the role {role}"}
        return
    if not role:
        raise ValueError
    left_out = [_kind(name) for field, name in _BESIDE.items() if item.get(field)]
    contents = (list(_parts(item.get(field))) for field in _TEXT.split("|"))
    parts = next(filter(None, contents), [])
    texts = [text for kind, text in parts if not kind]
    left_out += [kind for kind, _ in parts if kind]
    yield from ({"left_out": kind} for kind in left_out)
    if texts or not left_out:
        kept = ("dialogue_acts", "slots", "intents", "name")
        fields = {name: item[name] for name in kept if name in item}
        if (time := value_at(item, _TIME)) is not None:
            fields["time"] = time
        yield {**fields, "role": role, "content": " ".join(filter(None, texts))}


@cache
def _is_program(role: str) -> bool:
    return re.sub(r"[\W_]", "", role.lower()) in _NOT_SPOKEN


def _parts(content: Any) -> Iterator[tuple[str, str]]:
    """Yield the parts of a content: of each what it is if it is left out, and its text."""
    if isinstance(content, str):
        yield "", content
    elif isinstance(content, list):
        for part in content:
            yield from _parts(part)
    elif isinstance(content, dict):
        name = value_at(content, "type|content_type")
        if content.get("thought") is True:  # Gemini's
            name = "thought"
        elif name is None:
            has_text = not content.keys().isdisjoint(_TEXT.split("|"))
            name = "text" if has_text else next(iter(content), "")
        if name in _TEXTS:
            yield from _parts(value_at(content, _TEXT))
        else:
            yield _kind(str(name)) or f"a part of the type {name}", ""


@cache
def _kind(name: str) -> str:
    if name not in _TEXTS:
        for words, kind in _KINDS:
            if re.search(words, name, re.IGNORECASE):
                return kind
    return ""


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
    asked = f"inputs/{_INNER}|input|question|query|prompt|text"
    answered = f"outputs/{_INNER}|answer|response|content|text"
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
