"""The conversations in objects of any depth: every list is visited, and scalars are inherited.

A list of objects that have a text and a speaker is a conversation; so are a question beside its
answer, texts in turn, and a transcript in one text. Which fields are what, `evidence` decides for
each path of lists from a sample of the file.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from ...hooks import entries
from .columns import name_rank
from .evidence import (
    Layout,
    Record,
    flattened,
    is_known,
    is_program,
    is_transcript,
    layout_of,
    words_of,
)
from .json_values import is_map, opened, pair_of, plain
from .markup import has_markup
from .recordings import with_pieces, with_sessions

_SAMPLE = 300  # objects of a path that show what their fields are
_DEEPEST = 14
_NOT_SAID = re.compile(
    r"(tags?|labels?|topics?|domains?|services?|urls?|ids?|models?|keywords?|categories|roles|"
    r"speakers|users|participants|languages?|personality|persona\w*|candidates)"
)


@dataclass
class Unit:
    """One conversation as it lies in a file.

    Attributes:
        kind: "messages", "pair", "exchanges", "texts" or "transcript".
        path: The path of its list.
        items: Its messages, sides, exchanges or texts.
        context: The objects around it, the innermost last.
        key: The name or id under which it lies.
        layout: The fields of its messages.
        more: Other versions of it beside it, by path; they are left out.
    """

    kind: str
    path: str
    items: list[Any]
    context: list[Record]
    key: str = ""
    layout: Layout = field(default_factory=Layout)
    more: list["Unit"] = field(default_factory=list)
    has_opening: bool = False
    places: dict[int, str] = field(default_factory=dict)


class Conversations:
    """Finds the conversations in the records of a file, after a look at some of them."""

    def __init__(
        self,
        records: Iterable[Any],
        rows: Sequence[Mapping[str, Any]] = (),
        columns: Mapping[str, str] | None = None,
    ) -> None:
        self._columns = columns or {}
        self.samples: dict[str, list[Record]] = {}  # of objects, by path
        self._layouts: dict[str, Layout] = {}
        self._speaks: dict[str, bool] = {}
        self._rows = rows
        for record in records:
            self._sample(_ready(record), "[]", 0)

    def _sample(self, value: Any, path: str, depth: int) -> None:
        value = opened(value)
        if depth > _DEEPEST:
            return
        if isinstance(value, Mapping):
            if path.endswith(("[]", "*")):
                kept = self.samples.setdefault(path, [])
                if len(kept) < _SAMPLE:
                    kept.append(plain(value))
            several = is_map(value)
            for name, inner in value.items():
                if isinstance(inner, Mapping | list) or (
                    isinstance(inner, str) and inner[:1] in "{["
                ):
                    self._sample(inner, f"{path}.*" if several else f"{path}.{name}", depth + 1)
        elif isinstance(value, list):
            for inner in value:
                if isinstance(inner, Mapping | list):
                    self._sample(inner, f"{path}[]", depth + 1)

    def layout(self, path: str, items: Sequence[Any] = ()) -> Layout:
        """Return the fields of the objects at a path."""
        if path not in self._layouts:
            sample = self.samples.get(path) or [plain(item) for item in items[:_SAMPLE]]
            self._layouts[path] = layout_of(sample, self._rows)
        return self._layouts[path]

    def speaks(self, path: str, items: Sequence[Any] = ()) -> bool:
        """Return whether the objects at a path are messages, not records that hold messages."""
        if path not in self._speaks:
            layout = self.layout(path, items)
            self._speaks[path] = False
            inner = (at for at in self.samples if at.startswith(f"{path}."))
            self._speaks[path] = layout.speaks and not any(
                self._divides(layout, path, at) for at in inner
            )
        return self._speaks[path]

    def _divides(self, layout: Layout, path: str, at: str) -> bool:
        """Return whether the messages at an inner path make records of the outer objects."""
        if not self.speaks(at):
            return False
        inner = self.layout(at)
        if layout.role and not (inner.role or inner.flags or inner.channel):
            return False  # sentences of somebody's turn
        parts = [f"{path}.{text.replace('/', '.')}" for text in layout.text]
        if layout.role and any(at.startswith(part) for part in parts):
            return False
        around = _common([*layout.text[:1], *layout.role[:1]])
        below = f"{path}.{around.replace('/', '.')}" if around else path
        return not (at.startswith(below) and _alike(layout, inner))

    def find(self, record: Any) -> list[Unit]:
        """Return the conversations in a record of a file."""
        record = _ready(record)
        if "messages" in self._columns:
            return self._named(record)
        return self.units(record, "[]", [], "")

    def _named(self, record: Any) -> list[Unit]:
        """Return the messages that lie where the user says."""
        items = record
        for step in self._columns["messages"].split("/"):
            items = opened(items.get(step)) if isinstance(items, Mapping) else None
        if not isinstance(items, list):
            return []
        role, text, name, time = (
            [self._columns.get(field, field)] for field in ("role", "content", "name", "time")
        )
        layout = Layout(role=role, text=text, name=[*name, *role], time=time)
        where = dict(flattened(record)).get(self._columns.get("id", ""))
        context = {} if where is None else {"id": where}
        return [Unit("messages", "[]", items, [{**record, **context}], layout=layout)]

    def units(self, value: Any, path: str, context: list[Record], key: str) -> list[Unit]:
        """Return the conversations in a value."""
        value = opened(value)
        if len(path) > 400 or not isinstance(value, list | Mapping):
            return []
        if isinstance(value, Mapping):
            return self._in_object(value, path, context, key)
        return self._in_list(value, f"{path}[]", context, key)

    def _in_list(self, value: list[Any], path: str, context: list[Record], key: str) -> list[Unit]:
        items = [plain(item) if isinstance(item, Mapping) else item for item in map(opened, value)]
        objects = [item for item in items if isinstance(item, Mapping)]
        if objects:
            is_asked = context and all(map(pair_of, objects)) and not self.speaks(path, objects)
            if is_asked and not any(map(_has_id, objects)):
                layout = self.layout(path, objects)
                return [Unit("exchanges", path, items, context, key, layout)]
            if self.speaks(path, objects):
                return [Unit("messages", path, items, context, key, self.layout(path))]
            units: list[Unit] = []
            for item in items:
                units += self.units(item, path, context, "")
            return units
        lists = [item for item in items if isinstance(item, list)]
        if lists and all(len(item) == 2 and isinstance(item[1], str) for item in lists):
            return [_of_pairs(lists, path, context, key)]
        units = []
        for item in lists:
            units += self.units(item, path, context, "")
        if context and len(units) > 1 and all(unit.kind == "messages" for unit in units):
            whole = [item for unit in units for item in unit.items]
            return [Unit("messages", path, whole, context, key, units[0].layout)]
        return units

    def _in_object(self, value: Record, path: str, context: list[Record], key: str) -> list[Unit]:
        inside = [*context, {**value, "": key} if key else value]
        sides = pair_of(value)
        others = [inner for name, inner in value.items() if name not in sides]
        if sides and not any(map(_has_lists, others)):
            return [Unit("pair", path, list(sides), inside, key)]
        several = is_map(value)
        if several and self.speaks(f"{path}.*", list(value.values())):
            items = [{"id": name, **plain(item)} for name, item in value.items()]
            return [Unit("messages", path, items, context, key, self.layout(f"{path}.*"))]
        units: list[Unit] = []
        for name, inner in value.items():
            at = f"{path}.*" if several else f"{path}.{name}"
            is_id = several or re.search(r"[\d@]", str(name))
            units += self.units(inner, at, inside, str(name) if is_id else "")
        for unit in units:
            if unit.kind == "messages" and not unit.has_opening:
                first = self._opening(value, unit)
                unit.items[:0] = first
                unit.has_opening = bool(first)
        if not units and isinstance(value.get("subject"), str) and description_of(value):
            layout = Layout(role=["role"], text=["description"], name=["name"], time=["created_at"])
            return [Unit("messages", path, [description_of(value)], inside, key, layout)]
        return units or _texts(value, path, inside, key)

    def _opening(self, value: Record, unit: Unit) -> list[Record]:
        """Return a message that lies beside the list of the others, as a ticket's first mail."""
        layout = unit.layout
        first: list[Record] = []
        if opening := description_of(value):
            unit.layout = replace(
                layout,
                role=[*layout.role, "role"],
                text=[*layout.text, "description"],
                name=[*layout.name, "name"],
                time=[*layout.time, "created_at"],
            )
            is_repeated = _folded(opening["description"]) == first_text(unit)
            role = "user" if layout.flags else "requester"
            return [] if is_repeated else [{**opening, "role": role}]
        for inner in map(opened, value.values()):
            if isinstance(inner, Mapping) and not any(inner is around for around in unit.context):
                flat = dict(flattened(inner))
                texts = [flat[path] for path in layout.text if flat.get(path)]
                if texts and any(flat.get(path) for path in layout.role):
                    if has_markup(str(texts[0])):
                        unit.layout = replace(layout, is_markup=True)
                    times = {at: value[at] for at in layout.time if at in value and at not in inner}
                    first.append({**times, **inner})
        return first


def _ready(record: Any) -> Any:
    record = opened(record)
    if isinstance(record, Mapping):
        with suppress(AttributeError, LookupError, TypeError):
            return with_pieces(with_sessions(record))
    return record


def description_of(value: Record) -> dict[str, Any]:
    """Return the description of a ticket as the first message of who opened it."""
    text = value.get("description_text") or value.get("description")
    is_ticket = isinstance(value.get("subject"), str) or "requester_id" in value
    if not is_ticket or not isinstance(text, str):
        return {}
    beside = {"name": value.get("requester_name"), "created_at": value.get("created_at")}
    return {"role": "requester", "description": text, **beside}


def _has_lists(value: Any) -> bool:
    """Return whether an object has lists of messages of both sides."""
    return isinstance(value, Mapping) and any(isinstance(value[at], list) for at in pair_of(value))


def _has_id(value: Record) -> bool:
    return any(name_rank(kind, str(at)) is not None for kind in ("id", "group") for at in value)


def _common(paths: Sequence[str]) -> str:
    """Return the objects in which several fields lie."""
    steps = [path.split("/")[:-1] for path in paths]
    shared = [names[0] for names in zip(*steps, strict=False) if len(set(names)) == 1]
    return "/".join(shared)


def _alike(outer: Layout, inner: Layout) -> bool:
    """Return whether inner messages have the fields of the outer ones, as replies have."""

    def ends(paths: Sequence[str]) -> set[str]:
        return {path.rpartition("/")[2] for path in paths}

    return bool(ends(outer.text) & ends(inner.text) and ends(outer.role) & ends(inner.role))


def first_text(unit: Unit) -> str:
    """Return the first text that somebody says, without regard to case and blanks."""
    for item in unit.items:
        flat = dict(flattened(item)) if isinstance(item, Mapping) else {"": item}
        if any(is_program(str(flat.get(path))) for path in unit.layout.role):
            continue
        for path in unit.layout.text or [""]:
            if isinstance(flat.get(path), str) and flat[path].strip():
                return _folded(flat[path])
    return ""


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())[:200]


def _of_pairs(lists: list[Any], path: str, context: list[Record], key: str) -> Unit:
    """Make messages of pairs: of a speaker and a text, or of a question and an answer."""
    firsts = [str(item[0]) for item in lists]
    are_names = not any(len(first) > 40 or first.rstrip()[-1:] in "?!," for first in firsts)
    again = len(set(firsts)) <= max(2, len(firsts) / 3)
    spoken = are_names and (again or sum(map(is_known, firsts)) > len(firsts) / 2)
    names = ("role", "content") if spoken else ("user", "assistant")
    items = [dict(zip(names, item, strict=True)) for item in lists]
    layout = Layout(role=["role"], text=["content"], name=["role"])
    return Unit("messages" if spoken else "exchanges", path, items, context, key, layout)


def _texts(value: Record, path: str, inside: list[Record], key: str) -> list[Unit]:
    """Return texts in turn, or a transcript in one text, of an object that has nothing better."""
    for name, inner in value.items():
        if not isinstance(inner, list) or len(inner) < 2 or _NOT_SAID.fullmatch(str(name).lower()):
            continue
        if all(isinstance(text, str) for text in inner) and (
            sum(map(words_of, inner)) > 1.5 * len(inner)
            or name_rank("content", str(name)) is not None
        ):
            return [Unit("texts", f"{path}.{name}[]", inner, inside, key)]
    transcripts = [
        Unit("transcript", f"{path}.{name}", [inner], inside, key)
        for name, inner in value.items()
        if isinstance(inner, str) and is_transcript(inner)
    ]
    for first in transcripts[:1]:
        first.more = transcripts[1:]
    return transcripts[:1]


@cache
def system_rows() -> list[dict[str, Any]]:
    """Return the rows of systems whose own words say too little, those of other packages first."""
    text = Path(__file__).with_name("systems.toml").read_text(encoding="utf-8")
    outside = [row for entry in entries("forms").values() for row in entry.load()]
    return [*outside, *tomllib.loads(text)["systems"]]
