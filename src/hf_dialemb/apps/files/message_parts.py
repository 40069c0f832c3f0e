"""What a message of JSON says and who says it; calls of tools, notes and notices are named."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, reduce
from html import unescape
from typing import Any

from .columns import name_rank, word_list
from .evidence import Layout, Record, flattened, is_known, is_program, value_at
from .findings import Notes
from .joining import spaced
from .roles import WELL_KNOWN

Message = dict[str, Any]
_SAID = frozenset(word_list("parts_said"))  # types of parts
_TYPES = ("type", "content_type", "part_kind")
_WITHIN = word_list("within")
_PARTS = (  # from words in the type of a part to what it is, the first that fits
    (r"result|tool.?resp|call.?output|function.?resp|execution", "a result of a tool"),
    (r"tool|function|call|code|action", "a call of a tool"),
    (r"think|thought|reason", "a thought of a model"),
    (r"image|picture|inline|sticker", "a picture"),
    (r"audio|video|file|document|attachment", "a file"),
    (r"context|instruction|system", "instructions for a model"),
    (r"step|source|data-", "a step of a model"),
)
_BESIDE = {  # fields beside the text of a message
    **dict.fromkeys(("tool_calls", "function_call", "toolCalls"), "a call of a tool"),
    "reasoning_content": "a thought of a model",
    **dict.fromkeys(("attachments", "files"), "a file"),
    "images": "a picture",
}
_PRIVATE = re.compile(
    r"\b(note|priv(ate?|é|ado)|intern(al|[eo])?\b|whisper|supervisor)|_(note|private)",
    re.IGNORECASE,
)
_NOTICE = re.compile(
    "system|service|event|join|leave|left$|member|status|change|lineitem|^meta|trace|moment|ai_|"
    "call|activit|tombstone|notif|topic|bot_|summary|snapshot|delete|pinned|recipientadd",
    re.IGNORECASE,
)
_FLAG_KINDS = {  # booleans that say that nobody else saw a message, by name without "is"
    **dict.fromkeys(
        ("hidden", "draft", "visually_hidden_from_conversation"), (True, "a private note")
    ),
    **dict.fromkeys(("call", "missed"), (True, "a call")),
    **dict.fromkeys(("meta", "compactsummary"), (True, "an entry of a trace that nobody says")),
    "sidechain": (True, "a message between an agent and another agent"),
    "thought": (True, "a thought of a model"),
}
_TRUTH = {"true": True, "yes": True, "y": True, "false": False, "no": False, "n": False}
_GONE = re.compile(r"(.*/)?\w*(delet|redact|unsent|revoked)\w*", re.IGNORECASE)
_OF_AGENTS = re.compile(
    r"\s*(<(command|local-command|environment|user_instructions|user_shell|system-reminder|"
    r"turn_aborted|bash-)|# AGENTS\.md instructions|\[Request interrupted|Caveat: )"
)
_MARK = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")  # of Slack: <@U01>, <http://x|label>
_MOJIBAKE = re.compile("[\xc2-\xf4][\x80-\xbf]")
_NO_NAME = re.compile(r"[\W\d]*|[0-9a-fA-F-]{24,}")  # numbers and UUIDs
_OF_MODELS = {
    **dict.fromkeys(("human", "request"), "user"),
    **dict.fromkeys(("ai", "gpt", "model", "response"), "assistant"),
}
_LABELS = ("dialogue_acts", "slots", "intents")
_NAMES = (
    "profile/real_name",
    "real_name",
    "user_profile/real_name",
    "profile/display_name",
    "name",
)
IN_TURN = (
    "a list of texts without speakers: taken as said in turn by 'first' and 'second'; say who they "
    "are with --roles 'first=user,second=assistant'"
)
_OTHER = {"user": "assistant", "assistant": "user"}


def parts(content: Any) -> Iterator[tuple[str, str]]:
    """Yield the parts of a content: of each what it is if it is left out, and its text."""
    if isinstance(content, str):
        yield "", content
    elif isinstance(content, list):
        for part in content:
            yield from parts(part)
    elif isinstance(content, Mapping):
        name = next((content[key] for key in _TYPES if content.get(key)), None)
        inner = next((content[key] for key in _WITHIN if content.get(key) is not None), None)
        if content.get("thought") is True:  # of Gemini
            name = "thought"
        elif name is None and inner is None:
            name = next(iter(content), "")
        if name is None or str(name).lower() in _SAID:
            yield from parts(inner)
        elif name:
            yield _kind_of(str(name)) or f"a part of the type {name}", ""


@cache
def _beside(path: str) -> str:
    """Return what a field beside the text of a message is; empty for most."""
    return _BESIDE.get(path.rpartition("/")[2], "")


@cache
def _kind_of(name: str) -> str:
    """Return what a part of a type is; empty for what is said."""
    fitting = (kind for words, kind in _PARTS if re.search(words, name, re.IGNORECASE))
    return "" if name.lower() in _SAID else next(fitting, "")


def message_in(
    flat: Record, layout: Layout, people: Mapping[str, Record], default: str = ""
) -> Iterator[Message]:
    """Yield what is left out of one message, then what it says.

    Args:
        flat: The message.
        layout: Its fields.
        people: Persons by the ids that messages have of them.
        default: The role of a message that does not say whose it is.

    Raises:
        ValueError: Its text is none.
    """
    role, name = _speaker(flat, layout, people, default)
    if why := next(filter(None, _reasons(flat, layout, role)), ""):
        yield {"left_out": why}
    elif role:
        yield from _said(flat, layout, people, {"role": role, "name": called(name)})
    elif value_at(flat, layout.text) is not None:
        if list(layout.role[:1]) == ["role"] and not layout.is_flat:
            raise ValueError  # of a chat, where each message has one
        yield {"left_out": "a turn without a speaker"}
    elif layout.is_flat:
        yield {"left_out": "a turn without text"}


def _speaker(
    flat: Record, layout: Layout, people: Mapping[str, Record], default: str
) -> tuple[str, str]:
    role = value_at(flat, layout.role)
    name = value_at(flat, layout.name)
    person = people.get(str(role)) or people.get(str(name)) or {}
    role = value_at(person, ("role", "ParticipantRole", "type", "user_type")) or role
    name = _name_of(person) or name
    for path, true in layout.flags.items():
        if role is None and isinstance(flat.get(path), bool):
            role = true if flat[path] else _OTHER[true]
    if default and not is_known(str(role)):
        role = default
    if role is None and layout.is_recording:
        return "None", ""
    if isinstance(role, int) and layout.role and re.search("speaker(_?id)?$", layout.role[0], re.I):
        role = layout.row.get("roles", {}).get(str(role), f"speaker {role}")
    role = "" if role is None else repaired(str(role))
    role = layout.row.get("roles", {}).get(role.lower(), _OF_MODELS.get(role.lower(), role))
    return role, repaired(str(name)) if name is not None else role


def _reasons(flat: Record, layout: Layout, role: str) -> Iterator[str]:
    """Yield why a message is not read; empty texts where a field gives no reason."""
    row = layout.row
    yield from (_of_flag(path, value) for path, value in flat.items())
    hidden = row.get("hidden", {}).items()
    if role.lower() == "supervisor" or any(str(flat.get(at)).lower() in ws for at, ws in hidden):
        yield "a private note"
    if any(flat.get(path) for path in row.get("notices", ())):
        yield "a notice"
    if role.isdecimal() and row.get("roles"):
        yield f"a message whose {layout.role[0]} is {role!r}"
    for path in layout.kinds:
        yield _of_kind(path.rpartition("/")[2], flat.get(path), path in layout.role)
    if is_program(role) and not (role.lower() == "system" and layout.system_speaks):
        yield f"a message of the role {role}"


@cache
def _hiding(path: str) -> tuple[bool | None, str]:
    """Return the value of a flag that leaves a message out, and what the message is then.

    The value is None where any but a false one does.
    """
    if _GONE.fullmatch(path):
        return None, "a deleted message"
    if name_rank("hidden", path) is not None:
        return True, "a private note"
    if name_rank("public", path) is not None:
        return False, "a private note"
    name = path.rpartition("/")[2].lower().removeprefix("is_").removeprefix("is")
    return _FLAG_KINDS.get(name, (None, ""))


def _truth_of(value: Any) -> bool | None:
    """Return what a flag says, also in words; None for what is no flag."""
    if isinstance(value, str):
        return _TRUTH.get(value.strip().casefold())
    return value if isinstance(value, bool) else None


def _of_flag(path: str, value: Any) -> str:
    """Return what a message is by one of its fields, if nobody says it, or nobody else saw it."""
    if path == "message/recipient" and value not in (None, "all"):
        return "a call of a tool"
    wanted, why = _hiding(path)
    if not why:
        return ""
    if wanted is None:
        return why if value and not isinstance(value, list | Mapping) else ""
    if isinstance(value, str) and (_PRIVATE.search(value) or value.isdecimal()):
        return why if name_rank("hidden", path) == 0 and value != "0" else ""
    return why if _truth_of(value) is wanted else ""


def _of_kind(name: str, value: Any, says_role: bool) -> str:
    """Return what a message of a kind is, if nobody says it."""
    if not isinstance(value, str) or is_known(value):
        return ""
    if name.lower() == "visibility":
        return "" if value.lower() in ("all", "public", "everyone") else "a private note"
    if name in ("source", "src", "direction", "purpose"):
        return ""
    if _PRIVATE.search(value):
        return "a private note"
    if _NOTICE.search(value) or says_role:
        return f"a message whose {name} is {value[:40]!r}"
    return "a deleted message" if value == "DELETED" else _kind_of(value)


def _said(
    flat: Record, layout: Layout, people: Mapping[str, Record], message: Message
) -> Iterator[Message]:
    by_path = {at: list(parts(flat.get(at))) for at in layout.text}
    filled = [at for at, pieces in by_path.items() if any(pieces)]
    telling = [at for at in filled if any(text and not kind for kind, text in by_path[at])]
    path = next(iter(telling + filled), "")
    texts = [text for kind, text in by_path.get(path, ()) if text and not kind]
    left = [kind for kind, _ in by_path.get(path, ()) if kind]
    left += [kind for at, value in flat.items() if value and (kind := _beside(at))]
    yield from ({"left_out": kind} for kind in left)
    content = _joined([_shown(text, layout, people) for text in texts])
    if _OF_AGENTS.match(content):
        yield {"left_out": "a notice to an agent"}
        return
    if not content and not left and isinstance(value_at(flat, layout.text), int | float):
        raise ValueError
    if not content.strip() and left:
        return
    message |= {field: flat[field] for field in _LABELS if _are_labels(flat.get(field))}
    if (time := value_at(flat, layout.time)) is not None:
        message["time"] = time
    if layout.is_recording:
        for field, paths in (("start", layout.start), ("channel", layout.channel)):
            value = value_at(flat, paths)
            message[field] = value if isinstance(value, str | int | float) else None
        message["speaker"] = None if message["role"] == "None" else message["role"]
    is_markup = layout.is_markup or re.search("html|rich", path.lower())
    is_plain = "plain" in path.lower() or flat.get("body/contentType") == "text"
    yield {**message, "content": content, "markup": bool(is_markup) and not is_plain, "raw": texts}


def _joined(texts: Sequence[str]) -> str:
    has_spaces = any(text[:1].isspace() or text[-1:].isspace() for text in texts)
    return "".join(texts) if has_spaces or not texts else reduce(spaced, texts)


def _shown(text: str, layout: Layout, people: Mapping[str, Record]) -> str:
    """Return a text as people saw it: names and labels instead of marks, one encoding."""

    def shown(mark: re.Match[str]) -> str:
        kind, target, label = mark.groups()
        if kind == "@":
            return str(_name_of(people.get(target, {})) or label or target)
        return label or f"{kind.strip('!')}{target}"

    text = text if layout.is_flat else repaired(text)
    return unescape(_MARK.sub(shown, text)) if layout.row.get("marks") else text


def repaired(text: str) -> str:
    """Return a text whose UTF-8 was read as Latin-1 as it was."""
    if _MOJIBAKE.search(text):
        with suppress(UnicodeError):
            return text.encode("latin-1").decode()
    return text


def _name_of(person: Record) -> Any:
    return value_at(dict(flattened(person)), _NAMES)


def called(speaker: str) -> str:
    """Return the name of a speaker; empty for a role, a number or a UUID."""
    name = speaker.strip()
    return "" if name.casefold() in WELL_KNOWN or _NO_NAME.fullmatch(name) else name


def _are_labels(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, str) or (isinstance(item, Mapping) and {"name", "value"} <= item.keys())
        for item in value
    )


def in_turn(texts: list[Any], speakers: Any, notes: Notes, place: str) -> Iterator[Message]:
    """Yield texts that speakers say in turn, if they are not listed."""
    if not isinstance(speakers, list) or len(speakers) != len(texts):
        notes.guess(IN_TURN, place)
        speakers = [("first", "second")[number % 2] for number in range(len(texts))]
    for who, text in zip(map(str, speakers), texts, strict=True):
        yield {
            "role": who,
            "content": text,
            "name": "" if who in ("first", "second") else called(who),
        }
