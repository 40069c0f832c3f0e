"""What a message of JSON says and who says it; calls of tools, notes and notices are named."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache, reduce
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
_FLAGS = {  # what flags say of a message
    "gone": re.compile(r"(.*/)?\w*(delet|redact|unsent|revoked)\w*", re.IGNORECASE),
    "unsaid": re.compile(  # by nobody, or nobody else saw it
        r"(.*/)?(is_?)?(hidden|draft|visually_hidden_from_conversation|call|missed|meta|thought|"
        r"compactsummary|sidechain)",
        re.IGNORECASE,
    ),
    "recipient": re.compile("message/recipient"),
}
_TRUTH = {"true": True, "yes": True, "y": True, "false": False, "no": False, "n": False}
_HIDES: dict[str, Callable[[Any, bool | None], bool]] = {  # whether a flag leaves a message out
    "gone": lambda value, truth: bool(value) and truth is not False,
    "unsaid": lambda value, truth: truth is True,
    "recipient": lambda value, truth: value not in ("all", "", None),
    "hidden": lambda value, truth: truth or value == "1" or bool(_PRIVATE.search(str(value))),
    "public": lambda value, truth: truth is False,
}
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
        inner = next((content[key] for key in _WITHIN if content.get(key) is not None), None)
        types = ["thought"] if content.get("thought") is True else []  # of Gemini
        types += [content[key] for key in _TYPES if content.get(key)]
        names = [str(name) for name in types or (list(content) if inner is None else [])]
        if not names or names[0].lower() in _SAID:
            yield from parts(inner)
        else:
            yield f"a part of the type {names[0]}", ""


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
    has_text = value_at(flat, layout.text) is not None
    why = _reason(flat, layout, role)
    if role and not why:
        yield from _said(flat, layout, people, {"role": role, "name": called(name)})
    elif has_text and not why and list(layout.role[:1]) == ["role"] and not layout.is_flat:
        raise ValueError
    elif why or has_text or layout.is_flat:
        missing = "a speaker" if has_text else "text"
        yield {"left_out": why or f"a turn without {missing}", "raw": flat}


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


def _reason(flat: Record, layout: Layout, role: str) -> str:
    """Return why a message is not read; empty if it is."""
    row = layout.row
    for path, hides in _flagged(tuple(flat)):
        value = flat[path]
        truth = _TRUTH.get(str(value).strip().casefold())
        if not isinstance(value, list | Mapping) and hides(value, truth):
            return f"a message whose {path} is {str(value)[:40]!r}"
    hidden = row.get("hidden", {}).items()
    if role.lower() == "supervisor" or any(str(flat.get(at)).lower() in ws for at, ws in hidden):
        return "a private note"
    if any(flat.get(path) for path in row.get("notices", ())):
        return "a notice"
    for path in layout.kinds:
        name = path.rpartition("/")[2]
        kind = flat.get(path)
        if isinstance(kind, str) and _is_unsaid(name, kind, path in layout.role):
            return f"a message whose {name} is {kind[:40]!r}"
    is_unsaid = is_program(role) and not (role.lower() == "system" and layout.system_speaks)
    return f"a message of the role {role}" if is_unsaid else ""


@lru_cache(maxsize=1 << 10)
def _flagged(paths: tuple[str, ...]) -> list[tuple[str, Callable[[Any, bool | None], bool]]]:
    """Return the fields that may leave a message out, and whether their values do."""
    flags = {path: _flag(path) for path in paths}
    return [(path, _HIDES[flag]) for path, flag in flags.items() if flag]


@cache
def _flag(path: str) -> str:
    """Return what a flag says of a message that it leaves out; empty for what is no flag."""
    flags = [flag for flag, pattern in _FLAGS.items() if pattern.fullmatch(path)]
    flags += [flag for flag in ("hidden", "public") if name_rank(flag, path) is not None]
    return next(iter(flags), "")


@lru_cache(maxsize=1 << 10)
def _besides(paths: tuple[str, ...]) -> list[str]:
    """Return the fields that stand beside the text of a message, such as attachments."""
    return [path for path in paths if _BESIDE.fullmatch(path)]


@cache
def _is_unsaid(name: str, kind: str, says_role: bool) -> bool:
    """Return whether a message of a kind is a notice, or a note to others."""
    if name.lower() == "visibility":
        return kind.lower() not in ("all", "public", "everyone")
    if is_known(kind) or name in ("source", "src", "direction", "purpose"):
        return False
    is_said = kind.lower() in _SAID or not (_NOTICE.search(kind) or says_role)
    return not is_said or _PRIVATE.search(kind) is not None


def _said(
    flat: Record, layout: Layout, people: Mapping[str, Record], message: Message
) -> Iterator[Message]:
    pieces = {at: list(parts(flat.get(at))) for at in layout.text}
    spoken = {at: [text for kind, text in several if not kind] for at, several in pieces.items()}
    path = max(pieces, key=lambda at: (any(spoken[at]), any(pieces[at])), default="")
    texts = [text for text in spoken.get(path, ()) if text]
    left = [kind for kind, _ in pieces.get(path, ()) if kind]
    left += [f"what {at} holds" for at in _besides(tuple(flat)) if flat[at]]
    content = _joined([_shown(text, layout, people) for text in texts])
    is_notice = _OF_AGENTS.match(content) is not None
    left += ["a notice to an agent"] * is_notice
    yield from ({"left_out": kind, "raw": flat} for kind in left)
    if is_notice or (left and not content.strip()):
        return
    if not content and isinstance(value_at(flat, layout.text), int | float):
        raise ValueError
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
