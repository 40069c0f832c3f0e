"""Messages of chats with language models.

`turns` reads all of them: texts, messages with fields of any usual name, parts of a message, pairs
of what a person and a model say.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from ...dialogue import UNSPOKEN
from .field_paths import Record, rows_in, value_at
from .form import Message

SPEAKER = "role|from|sender|speaker|author|isCreatedByUser|type|src"
TEXT = "content|value|text|parts|refusal|message|utterance|body"
TIME = "time|timestamp|created_at|create_time|createdAt|created|date"
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
BESIDE = {  # fields beside the text of a message
    "tool_calls": "tool",
    "function_call": "tool",
    "reasoning_content": "thought",
    "attachments": "file",
    "files": "file",
    "images": "image",
}
INNER = "messages|choices|generations|candidates|output"  # around messages
_IDS = "id|uuid|messageId|message_id"
_PARENTS = "parent|parentId|parentMessageId|parent_message_uuid|parent_id"
_PARENT_NAMES = frozenset(_PARENTS.split("|"))


IN_TURN = (
    "a list of texts without speakers: taken as said in turn by 'first' and 'second'; say who they "
    "are with --roles 'first=user,second=assistant'"
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
    elif (inner := value_at(item, INNER)) is not None:
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
    left_out = [_kind(name) for field, name in BESIDE.items() if item.get(field)]
    contents = (list(_parts(item.get(field))) for field in TEXT.split("|"))
    parts = next(filter(None, contents), [])
    texts = [text for kind, text in parts if not kind]
    left_out += [kind for kind, _ in parts if kind]
    yield from ({"left_out": kind} for kind in left_out)
    if texts or not left_out:
        kept = ("dialogue_acts", "slots", "intents", "name")
        fields = {name: item[name] for name in kept if name in item}
        if (time := value_at(item, TIME)) is not None:
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
            has_text = not content.keys().isdisjoint(TEXT.split("|"))
            name = "text" if has_text else next(iter(content), "")
        if name in _TEXTS:
            yield from _parts(value_at(content, TEXT))
        else:
            yield _kind(str(name)) or f"a part of the type {name}", ""


@cache
def _kind(name: str) -> str:
    if name not in _TEXTS:
        for words, kind in _KINDS:
            if re.search(words, name, re.IGNORECASE):
                return kind
    return ""
