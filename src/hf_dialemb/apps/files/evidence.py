"""What the fields of a list of objects are: by what they hold first, by their names second.

Objects are flattened: ``author/name`` is the field of a field. A speaker has few values that come
again, words of roles say themselves what they are, a text is long and differs, a flag is none of
these.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from ...hooks import entries
from .columns import name_rank, starts_among
from .roles import PROGRAMS, WELL_KNOWN

Record = Mapping[str, Any]
_DEEPEST = 5  # objects in objects
_FIRST = {
    "alternatives",
    "nBest",
    "candidates",
    "users",
    "senders",
    "authors",
}  # lists whose first item counts
_EMPTY: tuple[Any, ...] = (None, "", [], {})
KINDS = re.compile(
    r"(.*/)?(type|kind|event|t|s|direction|purpose|source|src|part_?type|sub_?type|(message|msg|"
    r"user|author|sender|actor|participant|content)_?type|visibility)",
    re.IGNORECASE,
)
_FLAGS = {  # booleans that say who speaks: what is said where they are true, and where false
    "user": re.compile(
        r"(.*/)?(is_?)?(incoming|inbound|from_?customer|from_?user|user|human|"
        r"isCreatedByUser|customer)",
        re.IGNORECASE,
    ),
    "assistant": re.compile(
        r"(.*/)?(is_?)?(outgoing|outbound|from_?agent|agent|from_?bot|bot|"
        r"from_?me|me|assistant|staff)",
        re.IGNORECASE,
    ),
}
_OPAQUE = re.compile(r"[\W\d]*|[0-9a-fA-F-]{16,}|\S*\d{5,}\S*")
_CHANNEL = re.compile(r"(.*/)?(media_?)?channel(_?(tag|label|index))?", re.IGNORECASE)
_LINE = re.compile(r"(?:^|\n|<br\s*/?>|</p>)[^\S\n]*(?:\([^()]*\) )?[^\s:：<][^:：\n<]{0,39}[:：]")
EARLIER = re.compile(
    r"quote[ds]?_|previous|referenc|repl(y|ied)_?to|in_?reply|original_", re.IGNORECASE
)
_PERSON = re.compile("sender|author|user|from")
_MARKUP = re.compile(r"html|rich", re.IGNORECASE)
_TAG = re.compile(r"</(p|div|span|a|b|i|blockquote|table|body)>|<br\s*/?>")
_MARKED = 0.2  # of texts that have tags, if all are HTML
_PARENTS = (
    "parent",
    "parentId",
    "parentMessageId",
    "parent_message_uuid",
    "parent_id",
    "parentUuid",
)


@dataclass(frozen=True)
class Layout:
    """The fields of the objects of a list; of several, the first that an object has counts."""

    role: Sequence[str] = ()
    name: Sequence[str] = ()
    text: Sequence[str] = ()
    time: Sequence[str] = ()
    group: Sequence[str] = ()
    thread: Sequence[str] = ()
    kinds: Sequence[str] = ()
    start: Sequence[str] = ()
    channel: Sequence[str] = ()
    parent: str = ""
    flags: Mapping[str, str] = field(default_factory=dict)
    row: Mapping[str, Any] = field(default_factory=dict)  # of a system whose words say too little
    sides: Sequence[str] = ()  # what each side said, in rows that hold both
    turn: str = ""  # the number of a row's turn
    day: str = ""  # the day, beside a time of day
    domain: str = ""
    acts: str = ""
    divides: bool = False  # whether the group tells dialogues apart, and is no channel
    is_flat: bool = False  # whether the objects are rows of texts
    is_markup: bool = False  # whether the texts are HTML
    is_recording: bool = False  # whether the objects are pieces of a recording
    system_speaks: bool = False  # whether the role system is of a speaker, not of a prompt

    @property
    def speaks(self) -> bool:
        """Whether the objects are messages of people, or pieces of a recording."""
        if list(self.text) == ["value"] and list(self.role[:1]) in (["name"], ["type"]):
            return False  # a name and its value
        return bool(self.text and (self.role or self.flags or self.channel or self.start))


def flattened(item: Record, depth: int = _DEEPEST, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the fields of an object and of the objects in it, with their paths."""
    for name, value in item.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping) and str(next(iter(value), "")).startswith("$"):
            value = next(iter(value.values()))
        if name in _FIRST and isinstance(value, list) and value and isinstance(value[0], Mapping):
            value = value[0]
        is_whole = not isinstance(value, Mapping) or _are_ids(value)
        if depth and not is_whole and not _is_content(str(name), value):
            yield from flattened(value, depth - 1, f"{path}/")
        else:
            yield path, value


def flat_of(item: Record, layout: Layout) -> Record:
    """Return an object with the paths of its fields."""
    return item if layout.is_flat else dict(flattened(item))


def _are_ids(value: Record) -> bool:
    """Return whether ids lead to objects, as in a map of messages."""
    first = next(iter(value), "")
    return any(map(str.isdigit, str(first))) and all(isinstance(v, Mapping) for v in value.values())


def _is_content(name: str, value: Record) -> bool:
    """Return whether an object is the content of a message in parts."""
    return (
        name in ("content", "parts")
        and "role" not in value
        and not value.keys().isdisjoint(("type", "content_type", "parts", "text", "name"))
    )


def columns_of(items: Sequence[Record]) -> dict[str, list[Any]]:
    """Return the values of each field that objects have."""
    columns: dict[str, list[Any]] = {}
    for item in items:
        for path, value in flattened(item):
            if value not in _EMPTY:
                columns.setdefault(path, []).append(value)
            else:
                columns.setdefault(path, [])
    return columns


@cache
def system_rows() -> list[dict[str, Any]]:
    """Return the rows of systems whose own words say too little, those of other packages first."""
    text = Path(__file__).with_name("systems.toml").read_text(encoding="utf-8")
    outside = [row for entry in entries("forms").values() for row in entry.load()]
    return [*outside, *tomllib.loads(text)["systems"]]


def layout_of(items: Sequence[Record], given: Mapping[str, str] | None = None) -> Layout:
    """Choose the fields of objects by a sample of them, but for those that are given."""
    flat = [dict(flattened(item)) for item in items]
    filled = columns_of(items)
    row = next((row for row in system_rows() if all(_has(filled, at) for at in row["has"])), {})
    chosen = {field: [path] for field, path in (given or {}).items()}
    text = chosen.get("content") or row.get("text") or _texts(filled)
    spoken = [item for item in flat if any(item.get(path) not in _EMPTY for path in text)]
    role = chosen.get("role") or row.get("role") or _roles(spoken, text)
    flags = _flags(spoken)
    if role and flags and "role" not in chosen:
        opaque = all(_OPAQUE.fullmatch(str(item[role[0]])) for item in spoken if role[0] in item)
        role = [] if opaque else role
    names = row.get("name_at") or _ranked("name", _scalars(spoken, text), role[:1])
    starts = row.get("start") or starts_among(filled)
    named = names or [path for path in ("name",) if path in filled and path not in role]
    texts = [str(value_at(item, text)) for item in spoken]
    return Layout(
        role=role,
        name=chosen.get("name") or named or role,
        text=text,
        time=chosen.get("time") or row.get("time") or _ranked("time", filled, [*text, *starts]),
        group=chosen.get("id") or row.get("group") or _groups(filled, len(spoken)),
        thread=row.get("thread", ()),
        kinds=[path for path in filled if KINDS.fullmatch(path) and path not in role],
        start=starts,
        channel=[path for path in filled if _CHANNEL.fullmatch(path)],
        parent=next((name for name in _PARENTS if name in filled), ""),
        flags=flags,
        row=row,
        is_markup=len(list(filter(_TAG.search, texts))) > _MARKED * len(texts),
        is_recording=bool(starts) or any(path.endswith("transcript") for path in text[:1]),
        system_speaks=_system_speaks([str(value_at(item, role)).lower() for item in spoken]),
    )


def _has(filled: Mapping[str, Any], paths: str) -> bool:
    return any(path in filled for path in paths.split("|"))


def words_of(value: Any) -> float:
    """Return about how many words a text has; Chinese and Japanese have a word each two letters."""
    if not isinstance(value, str):
        return 0
    return len(value.split()) + sum(char > "\u2e7f" for char in value[:400]) / 2


def _texts(filled: Mapping[str, list[Any]]) -> list[str]:
    ranked = sorted(
        (_MARKUP.search(path) is not None, name_rank("content", path) or 0, path.count("/"), at)
        for at, (path, values) in enumerate(filled.items())
        if _may_be_text(path, values)
    )
    paths = list(filled)
    inner = [path for path in filled if _texts_within(filled[path])]
    return [paths[rank[-1]] for rank in ranked] or inner or _longest(filled)


def _may_be_text(path: str, values: Sequence[Any]) -> bool:
    rank = name_rank("content", path)
    parts = [value for value in values if isinstance(value, str | list | Mapping)]
    lists = [value for value in parts if not isinstance(value, str)]
    if rank is None or rank > (7 if lists else 8) or 2 * len(parts) < len(values):
        return False
    is_other = any(map(_are_messages, lists)) or EARLIER.search(path) is not None
    is_said = not all(isinstance(value, str) and is_whole(value) for value in parts)
    return is_said and not is_other and not all(map(_is_address, parts))


def _longest(filled: Mapping[str, list[Any]]) -> list[str]:
    """Return the field of long texts that differ, whatever its name is."""
    scores = {
        path: sum(map(words_of, values)) / len(values)
        for path, values in filled.items()
        if values and len(set(map(repr, values))) > 0.6 * len(values)
        if not any(_is_address(text) or is_whole(str(text)) for text in values)
        and name_rank("time", path) is None
    }
    best = max(scores, key=lambda path: scores[path], default="")
    return [best] if best and scores[best] >= 3 else []


def _texts_within(values: list[Any]) -> str:
    """Return the field of the texts of lists of objects in objects, such as sentences."""
    lists = [value for value in values if isinstance(value, list) and value]
    first = lists[0][0] if lists else None
    if not isinstance(first, Mapping) or len(lists) < len(values) or _are_messages(lists[0]):
        return ""
    for path, value in flattened(first):
        rank = name_rank("content", path)
        if rank is not None and isinstance(value, str | Mapping) and rank < 8:
            return path
    return ""


def _are_messages(items: Any) -> bool:
    """Return whether a list is of messages, not of parts of one."""
    first = items[0] if isinstance(items, list) and items else None
    if not isinstance(first, Mapping):
        return False
    fields = dict(flattened(first))
    texts = (value for value in fields.values() if isinstance(value, str))
    known = any(text.casefold() in WELL_KNOWN for text in texts)
    named = [path for path in fields if path != "name" or "text" in first]
    return known or any(
        name_rank("role", path) is not None or _CHANNEL.fullmatch(path) or _PERSON.match(path)
        for path in named
    )


def is_transcript(text: str) -> bool:
    """Return whether a text has lines of several speakers."""
    return len(_LINE.findall(text[:20000])) > 1


def is_whole(text: str) -> bool:
    """Return whether a text may hold a whole conversation: a transcript, or JSON of objects."""
    return text.startswith(('{"', "[{")) or is_transcript(text)


def _is_address(value: Any) -> bool:
    return isinstance(value, str) and " " not in value and ("://" in value or "@" in value)


def _scalars(spoken: Sequence[Record], text: Sequence[str]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {}
    for item in spoken:
        for path, value in item.items():
            if value not in _EMPTY and path not in text:
                columns.setdefault(path, []).append(value)
    return {
        path: values
        for path, values in columns.items()
        if all(isinstance(value, str | int | float) for value in values)
    }


def _ranked(kind: str, columns: Mapping[str, list[Any]], but: Sequence[str]) -> list[str]:
    """Return the fields whose names fit, the best first."""
    ranks = [
        (rank, path)
        for path, values in columns.items()
        if path not in but
        and values
        and not isinstance(values[0], bool | list)
        and (rank := name_rank(kind, path)) is not None
    ]
    return [
        path
        for _, path in sorted(ranks, key=lambda pair: (_is_address(columns[pair[1]][0]), pair[0]))
    ]


def _roles(spoken: Sequence[Record], text: Sequence[str]) -> list[str]:
    """Return the fields that say who speaks: the best, those named alike, and others near it."""
    columns = _scalars(spoken, text)
    scores = {path: _role_score(path, values, len(spoken)) for path, values in columns.items()}
    ranked = sorted((path for path in scores if scores[path] > 0), key=lambda path: -scores[path])
    if not ranked:
        return []
    end = ranked[0].rpartition("/")[2]
    alike = [path for path in ranked if path.rpartition("/")[2] == end]
    near = [path for path in ranked if scores[path] > scores[ranked[0]] - 40 and path not in alike]
    return [*alike, *near]


def _role_score(path: str, values: Sequence[Any], count: int) -> float:
    if any(isinstance(value, bool) for value in values):
        return 0
    texts = [str(value).strip() for value in values]
    distinct = len(set(texts))
    rank = name_rank("role", path)
    known = sum(map(is_known, texts)) / len(texts)
    if max(map(len, texts)) > 80:
        return 0
    if known >= 0.7 and (rank is not None or KINDS.fullmatch(path)):
        if rank is None and isinstance(values[0], int):
            return 0
        return 120 - (rank or 0) - 4 * (rank is None) if distinct > 1 else 45 - (rank or 9)
    if rank is None:
        return 0
    opaque = all(_OPAQUE.fullmatch(text) for text in texts)
    addresses = all("@" in text for text in texts)
    score = 50 - 3 * rank + 20 * (distinct > 1) - 14 * opaque - 6 * addresses
    score -= 40 * (distinct == count > 5)
    return max(score * (0.6 + 0.4 * len(texts) / max(count, 1)), 1)


@cache
def is_known(word: str) -> bool:
    """Return whether a word says what role somebody has."""
    return word.casefold() in (*WELL_KNOWN, "request", "response") or is_program(word)


@cache
def is_program(word: str) -> bool:
    """Return whether a word names a program's part in a chat, such as tool."""
    return re.sub(r"[\W_]", "", word.lower()) in PROGRAMS


def _flags(spoken: Sequence[Record]) -> dict[str, str]:
    """Return a boolean that says who speaks, and what it says where it is true."""
    for true, pattern in _FLAGS.items():
        for path in dict.fromkeys(path for item in spoken for path in item):
            values = {item[path] for item in spoken if isinstance(item.get(path), bool)}
            if values and pattern.fullmatch(path):
                return {path: true}
    return {}


def _groups(filled: Mapping[str, list[Any]], count: int) -> list[str]:
    ranks = [
        (rank, path)
        for path, values in filled.items()
        if not any(isinstance(value, bool | list | Mapping) for value in values)
        and 10 * len(values) >= 7 * count
        and (rank := name_rank("group", path)) is not None
    ]
    return [path for _, path in sorted(ranks, key=lambda pair: pair[0])]


def _system_speaks(roles: Sequence[str]) -> bool:
    """Return whether the role system answers: nobody else assists, and it does not begin."""
    assisting = {role for role in roles if WELL_KNOWN.get(role) == "assistant"} - {"system"}
    return not assisting and roles[:1] != ["system"] and roles.count("system") * 5 > len(roles)


def value_at(flat: Record, paths: Sequence[str]) -> Any:
    """Return the first of several fields that an object has."""
    for path in paths:
        value = flat.get(path)
        if value or value not in _EMPTY:
            return value
    return None
