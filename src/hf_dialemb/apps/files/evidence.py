"""What the fields of records are: by what they hold first, by their names second.

Records are flat: ``author/name`` is the field of a field. A speaker has few values that come again,
words of roles say themselves what they are, a text is long and differs, a flag is none of these.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from ...hooks import entries
from .columns import name_rank
from .json_values import Record, flattened
from .roles import PROGRAMS, WELL_KNOWN

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
_EMPTY: tuple[Any, ...] = (None, "", [], {})
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
_SURE = 8  # the last rank of names of texts that are not whole conversations
_PARENT = re.compile("parent|parent_?(message)?_?(uu)?id", re.IGNORECASE)
_START = re.compile(
    r"(.*/)?((start|begin|offset)(_?(time|offset|ts|timestamp|in)?_?(s|ms|millis|milliseconds|"
    r"seconds|secs|nanos|ticks)?)?|startOffsetNanos|BeginOffsetMillis|offsetInTicks|ts|timestamp/0|"
    r"startTime|startTimeMs|start_timestamp_millis|offsetMilliseconds|startOffset)",
    re.IGNORECASE,
)
_PASSED = re.compile(r"\d\d?:\d\d(:\d\d)?([.,]\d+)?")


@dataclass(frozen=True)
class Layout:
    """The fields of records; of several, the first that a record has counts."""

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
    is_flat: bool = False  # whether the records are rows of texts
    is_markup: bool = False  # whether the texts are HTML
    is_recording: bool = False  # whether the records are pieces of a recording
    system_speaks: bool = False  # whether the role system is of a speaker, not of a prompt

    @property
    def speaks(self) -> bool:
        """Whether the records are messages of people, or pieces of a recording."""
        if list(self.text) == ["value"] and list(self.role[:1]) in (["name"], ["type"]):
            return False  # a name and its value
        return bool(self.text and (self.role or self.flags or self.channel or self.start))


def flat_of(item: Record, layout: Layout) -> Record:
    """Return a record with the paths of its fields."""
    return item if layout.is_flat else dict(flattened(item))


def value_at(flat: Record, paths: Sequence[str]) -> Any:
    """Return the first of several fields that a record has."""
    for path in paths:
        value = flat.get(path)
        if value or value not in _EMPTY:
            return value
    return None


def columns_of(records: Sequence[Record]) -> dict[str, list[Any]]:
    """Return the values of each field of flat records, without those that are empty."""
    columns: dict[str, list[Any]] = {}
    for record in records:
        for path, value in record.items():
            column = columns.setdefault(path, [])
            if value not in _EMPTY:
                column.append(value)
    return columns


@cache
def system_rows() -> list[dict[str, Any]]:
    """Return the rows of systems whose own words say too little, those of other packages first."""
    text = Path(__file__).with_name("systems.toml").read_text(encoding="utf-8")
    outside = [row for entry in entries("forms").values() for row in entry.load()]
    return [*outside, *tomllib.loads(text)["systems"]]


def layout_of(items: Sequence[Record], given: Mapping[str, str] | None = None) -> Layout:
    """Choose the fields of records by a sample of them, but for those that are given."""
    flat = [dict(flattened(item)) for item in items]
    filled = columns_of(flat)
    row = next((row for row in system_rows() if _fits(filled, row["has"])), {})
    chosen = {field: [path] for field, path in (given or {}).items()}
    text = chosen.get("content") or row.get("text") or _texts(filled)
    spoken = [item for item in flat if value_at(item, text) is not None]
    columns = _scalars(spoken, text)
    flags = _flag(columns)
    role = chosen.get("role") or row.get("role") or _roles(columns, len(spoken))
    if flags and "role" not in chosen and all(map(_is_opaque, columns.get("".join(role[:1]), ()))):
        role = []
    starts = [path for path, values in filled.items() if _counts_from_start(path, values)]
    texts = [str(value_at(item, text)) for item in spoken]
    return Layout(
        role=role,
        name=chosen.get("name")
        or row.get("name_at")
        or _ranked("name", columns, role[:1])
        or [path for path in ("name",) if path in filled]
        or role,
        text=text,
        time=chosen.get("time") or _ranked("time", filled, [*text, *starts]),
        group=chosen.get("id") or row.get("group") or _groups(filled, len(spoken)),
        thread=row.get("thread", ()),
        kinds=[path for path in filled if KINDS.fullmatch(path) and path not in role],
        start=starts,
        channel=[path for path in filled if _CHANNEL.fullmatch(path)],
        parent=next(filter(_PARENT.fullmatch, filled), ""),
        flags=flags,
        row=row,
        divides=True,
        is_markup=len(list(filter(_TAG.search, texts))) > _MARKED * len(texts),
        is_recording=bool(starts) or any(path.endswith("transcript") for path in text[:1]),
        system_speaks=_system_speaks([str(value_at(item, role)).lower() for item in spoken]),
    )


def _fits(filled: Mapping[str, Any], fields: Sequence[str]) -> bool:
    """Return whether records have each field, or one of those that bars part."""
    return all(not filled.keys().isdisjoint(paths.split("|")) for paths in fields)


def _texts(filled: Mapping[str, list[Any]]) -> list[str]:
    ranked = [
        (_MARKUP.search(path) is not None, rank, path.count("/"), place)
        for place, (path, values) in enumerate(filled.items())
        if (rank := name_rank("content", path)) is not None and _may_be_text(path, values, rank)
    ]
    paths = list(filled)
    inner = [path for path in filled if _are_sentences(filled[path])]
    return [paths[rank[-1]] for rank in sorted(ranked)] or inner or _longest(filled)


def _may_be_text(path: str, values: Sequence[Any], rank: int) -> bool:
    parts = [value for value in values if isinstance(value, str | list | Mapping)]
    texts = [value for value in parts if isinstance(value, str)]
    most = _SURE if len(texts) == len(parts) else _SURE - 1
    if rank > most or 2 * len(parts) < len(values) or EARLIER.search(path):
        return False
    is_other = any(map(_are_messages, parts)) or all(map(_is_address, parts))
    return not is_other and not all(isinstance(part, str) and is_whole(part) for part in parts)


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


def words_of(value: Any) -> float:
    """Return about how many words a text has; Chinese and Japanese have a word each two letters."""
    if not isinstance(value, str):
        return 0
    return len(value.split()) + sum(char > "\u2e7f" for char in value[:400]) / 2


def _are_sentences(values: list[Any]) -> bool:
    """Return whether values are lists of objects with a text, which are no messages."""
    are_lists = bool(values) and all(isinstance(value, list) and value for value in values)
    first = values[0][0] if are_lists else None
    return (
        isinstance(first, Mapping)
        and not _are_messages(values[0])
        and any(
            isinstance(value, str | Mapping) and (name_rank("content", path) or 0) < _SURE
            for path, value in flattened(first)
            if name_rank("content", path) is not None
        )
    )


def _are_messages(items: Any) -> bool:
    """Return whether a list is of messages, not of parts of one."""
    first = items[0] if isinstance(items, list) and items else None
    if not isinstance(first, Mapping):
        return False
    fields = dict(flattened(first))
    known = any(isinstance(v, str) and v.casefold() in WELL_KNOWN for v in fields.values())
    return known or any(
        name_rank("role", path) is not None or _CHANNEL.fullmatch(path) or _PERSON.match(path)
        for path in fields
        if path != "name" or "text" in first
    )


def is_transcript(text: str) -> bool:
    """Return whether a text has lines of several speakers."""
    return len(_LINE.findall(text[:20000])) > 1


def is_whole(text: str) -> bool:
    """Return whether a text may hold a whole conversation: a transcript, or JSON of objects."""
    return text.startswith(('{"', "[{")) or is_transcript(text)


def _is_address(value: Any) -> bool:
    return isinstance(value, str) and bool(re.fullmatch(r"\S+(://|@)\S+", value))


def _is_opaque(value: Any) -> bool:
    return _OPAQUE.fullmatch(str(value).strip()) is not None


def _scalars(spoken: Sequence[Record], text: Sequence[str]) -> dict[str, list[Any]]:
    return {
        path: values
        for path, values in columns_of(spoken).items()
        if path not in text
        and values
        and all(isinstance(value, str | int | float) for value in values)
    }


def _ranked(kind: str, columns: Mapping[str, list[Any]], but: Sequence[str]) -> list[str]:
    """Return the fields whose names fit, the best first."""
    ranks = [
        (_is_address(values[0]), rank, place, path)
        for place, (path, values) in enumerate(columns.items())
        if values
        and path not in but
        and not isinstance(values[0], bool | list)
        and (rank := name_rank(kind, path)) is not None
    ]
    return [path for *_, path in sorted(ranks)]


def _roles(columns: Mapping[str, list[Any]], count: int) -> list[str]:
    """Return the fields that say who speaks: the best, those named alike, and others near it."""
    scores = {path: _role_score(path, values, count) for path, values in columns.items()}
    ranked = sorted((path for path in scores if scores[path] > 0), key=lambda path: -scores[path])
    end = ranked[0].rpartition("/")[2] if ranked else ""
    alike = [path for path in ranked if path.rpartition("/")[2] == end]
    near = [path for path in ranked if scores[path] > scores[ranked[0]] - 40 and path not in alike]
    return [*alike, *near]


def _role_score(path: str, values: Sequence[Any], count: int) -> float:
    """Return how surely values name speakers: words of roles most, opaque ids least; 0 for none."""
    texts = [str(value).strip() for value in values]
    rank = name_rank("role", path)
    distinct = len(set(texts))
    is_kind = KINDS.fullmatch(path) is not None and not isinstance(values[0], int)
    if isinstance(values[0], bool) or max(map(len, texts)) > 80:
        return 0
    if sum(map(is_known, texts)) >= 0.7 * len(texts) and (rank is not None or is_kind):
        if distinct > 1:
            return 120 - (4 if rank is None else rank)
        return 45 - (rank or 9)
    if rank is None:
        return 0
    score = 50 - 3 * rank + 20 * (distinct > 1) - 40 * (distinct == count > 5)
    score -= 14 * all(map(_is_opaque, texts)) + 6 * all("@" in text for text in texts)
    return max(score * (0.6 + 0.4 * len(texts) / count), 1)


@cache
def is_known(word: str) -> bool:
    """Return whether a word says what role somebody has."""
    return word.casefold() in (*WELL_KNOWN, "request", "response") or is_program(word)


@cache
def is_program(word: str) -> bool:
    """Return whether a word names a program's part in a chat, such as tool."""
    return re.sub(r"[\W_]", "", word.lower()) in PROGRAMS


def _flag(columns: Mapping[str, list[Any]]) -> dict[str, str]:
    """Return a boolean that says who speaks, and what it says where it is true."""
    flags = [path for path in columns if isinstance(columns[path][0], bool)]
    return next(
        ({p: side} for side, name in _FLAGS.items() for p in flags if name.fullmatch(p)), {}
    )


def _groups(filled: Mapping[str, list[Any]], count: int) -> list[str]:
    most = {
        path: values
        for path, values in filled.items()
        if 10 * len(values) >= 7 * count and not any(isinstance(v, list | Mapping) for v in values)
    }
    return _ranked("group", most, ())


def _system_speaks(roles: Sequence[str]) -> bool:
    """Return whether the role system answers: nobody else assists, and it does not begin."""
    assisting = {role for role in roles if WELL_KNOWN.get(role) == "assistant"} - {"system"}
    return not assisting and roles[:1] != ["system"] and roles.count("system") * 5 > len(roles)


def _counts_from_start(path: str, values: Sequence[Any]) -> bool:
    """Return whether a field counts from the start of a recording."""
    flat = [value[0] if isinstance(value, list) and value else value for value in values]
    is_named = flat != values if path == "timestamp" else _START.fullmatch(path)
    return bool(is_named) and all(map(_is_offset, flat))


def _is_offset(value: Any) -> bool:
    text = str(value).removesuffix("s")
    is_round = isinstance(value, float | int) and float(value) % 1000 == 0
    is_number = re.fullmatch(r"\d+(\.\d+)?", text) is not None
    return bool(_PASSED.fullmatch(text)) or (
        is_number and float(text) < (1e14 if is_round else 1e8)
    )
