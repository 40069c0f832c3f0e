"""What a message of JSON says and who says it; calls of tools, notes and notices are named."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, reduce
from html import unescape
from typing import Any

from .columns import name_rank, word_list
from .evidence import Layout, is_known, is_program, value_at
from .joining import spaced
from .json_values import Record, flattened
from .roles import WELL_KNOWN

Message = dict[str, Any]
_SAID = frozenset(word_list("parts_said"))  # types of parts
_TYPES = ("type", "content_type", "part_kind")
_WITHIN = word_list("within")
_BESIDE = re.compile(  # fields beside the text of a message
    r"(.*/)?(tool_?calls|function_call|reasoning_content|attachments|files|images)", re.IGNORECASE
)
_PRIVATE = re.compile(
    r"\b(note|priv(ate?|é|ado)|intern(al|[eo])?\b|whisper|supervisor)|_(note|private)",
    re.IGNORECASE,
)
_NOTICE = re.compile(
    "system|service|event|join|leave|left$|member|status|change|lineitem|^meta|trace|moment|ai_|"
    "call|activit|tombstone|notif|topic|bot_|summary|snapshot|delete|pinned|recipientadd|result|"
    "tool|function|action|code|execution|think|thought|reason|image|picture|inline|sticker|audio|"
    "video|file|document|attachment|context|instruction|step|source|data-",
    re.IGNORECASE,
)
_HIDES = re.compile(  # flags of what nobody says, or nobody else saw
    r"(.*/)?(is_?)?(hidden|draft|visually_hidden_from_conversation|call|missed|meta|thought|"
    r"compactsummary|sidechain)",
    re.IGNORECASE,
)
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
            yield f"a part of the type {name}", ""


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
        ValueError: Its text is none, or a message of a chat has no role.
    """
    role, name = _speaker(flat, layout, people, default)
    if why := next(filter(None, _reasons(flat, layout, role)), ""):
        yield {"left_out": why, "raw": flat}
    elif role:
        yield from _said(flat, layout, people, {"role": role, "name": called(name)})
    elif value_at(flat, layout.text) is not None:
        if list(layout.role[:1]) == ["role"] and not layout.is_flat:
            raise ValueError
        yield {"left_out": "a turn without a speaker", "raw": flat}
    elif layout.is_flat:
        yield {"left_out": "a turn without text", "raw": flat}


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
    roles = layout.row.get("roles", {})
    if isinstance(role, int) and layout.role and re.search("speaker(_?id)?$", layout.role[0], re.I):
        role = roles.get(str(role), f"speaker {role}")
    role = "" if role is None else repaired(str(role))
    role = roles.get(role.lower(), _OF_MODELS.get(role.lower(), role))
    return role, repaired(str(name)) if name is not None else role


def _reasons(flat: Record, layout: Layout, role: str) -> Iterator[str]:
    """Yield why a message is not read; empty texts where a field gives no reason."""
    row = layout.row
    for path, value in flat.items():
        if value not in ("", None) and _hides(path, value):
            yield f"a message whose {path} is {str(value)[:40]!r}"
    hidden = row.get("hidden", {}).items()
    if role.lower() == "supervisor" or any(str(flat.get(at)).lower() in ws for at, ws in hidden):
        yield "a private note"
    if any(flat.get(path) for path in row.get("notices", ())):
        yield "a notice"
    for path in layout.kinds:
        yield _of_kind(path.rpartition("/")[2], flat.get(path), path in layout.role)
    if is_program(role) and not (role.lower() == "system" and layout.system_speaks):
        yield f"a message of the role {role}"


@cache
def _flag(path: str) -> str:
    """Return what a flag says of a message that it leaves out; empty for what is no flag."""
    if _GONE.fullmatch(path):
        return "gone"
    if _HIDES.fullmatch(path) or name_rank("hidden", path) is not None:
        return "hidden"
    if path == "message/recipient":
        return "recipient"
    return "public" if name_rank("public", path) is not None else ""


def _hides(path: str, value: Any) -> bool:
    """Return whether a field says that nobody says a message, or nobody else saw it."""
    flag = _flag(path)
    if not flag or isinstance(value, list | Mapping):
        return False
    truth = _TRUTH.get(str(value).strip().casefold())
    if flag == "recipient":
        return bool(value != "all")
    if flag == "gone":
        return bool(value) and truth is not False
    if flag == "public":
        return truth is False
    is_named = isinstance(value, str) and name_rank("hidden", path) == 0
    return truth is True or (is_named and bool(_PRIVATE.search(value) or value == "1"))


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
    if value.lower() not in _SAID and (_NOTICE.search(value) or says_role):
        return f"a message whose {name} is {value[:40]!r}"
    return ""


def _said(
    flat: Record, layout: Layout, people: Mapping[str, Record], message: Message
) -> Iterator[Message]:
    by_path = {at: list(parts(flat.get(at))) for at in layout.text}
    filled = [at for at, pieces in by_path.items() if any(pieces)]
    telling = [at for at in filled if any(text and not kind for kind, text in by_path[at])]
    path = next(iter(telling + filled), "")
    texts = [text for kind, text in by_path.get(path, ()) if text and not kind]
    left = [kind for kind, _ in by_path.get(path, ()) if kind]
    left += [f"what {at} holds" for at, value in flat.items() if value and _BESIDE.fullmatch(at)]
    yield from ({"left_out": kind, "raw": flat} for kind in left)
    content = _joined([_shown(text, layout, people) for text in texts])
    if _OF_AGENTS.match(content):
        yield {"left_out": "a notice to an agent", "raw": flat}
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

    if not layout.is_flat:  # one byte as two letters is of messengers' JSON; a row's text stays
        text = repaired(text)
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
