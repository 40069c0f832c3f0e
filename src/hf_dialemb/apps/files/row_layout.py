"""The fields of flat rows: of turns, or of what both sides said, by evidence and by their names."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from .columns import SIDES, name_rank
from .evidence import Layout, Record, columns_of, is_whole, layout_of
from .roles import WELL_KNOWN

_WHOLE = 9  # rank of names of contents that are sure only if a cell holds a whole conversation
_USUAL = re.compile(
    "id|dial(ogue|og)_?id|conversation_?id|session_?id|role|speaker|content|text|utterance|message"
)
_SIDE = re.compile(r"[\s_-]*(message|text|utterance|said|turn)$")


def layout_of_rows(
    items: Sequence[Record], rows: Sequence[Mapping[str, Any]], given: Mapping[str, str]
) -> Layout:
    """Choose the fields of flat rows by a sample of them."""
    columns = columns_of(items)
    sides = [given[side] for side in SIDES if side in given]
    if given.keys().isdisjoint(("role", "content", *SIDES)):
        sides = _sides(columns)
    layout = layout_of(items, rows, given)
    named = [path for path in layout.text if name_rank("content", path) not in (None, _WHOLE)]
    text = layout.text if layout.role or "content" in given else named
    if not sides and "content" not in given:
        text = _by_difference(text, columns)
    alike = [
        path for path in text[1:] if name_rank("content", path) == name_rank("content", text[0])
    ]
    role = [] if sides else layout.role
    taken = {*(sides or text[:1]), *role[:1], *given.values()}
    group, divides = _group(columns, taken, given, has_role=bool(role))
    is_recording = layout.is_recording and {"start", "end"} <= columns.keys()
    times = layout.time if is_recording else [*layout.time, *layout.start]
    taken |= {*group, *times[:1]}
    day, time = _day_and_clock(columns, times, taken)

    def first(field: str, kind: str) -> str:
        free = (path for path in columns if path not in taken and name_rank(kind, path) == 0)
        return given.get(field) or next(free, "")

    return replace(
        layout,
        choice="" if given else _choice(items, group, role, text, sides, time),
        sides=sides,
        role=role,
        name=[] if sides else layout.name,
        text=text,
        group=group,
        divides=divides,
        day=day,
        time=time,
        turn=first("turn", "turn"),
        domain=first("domain", "domain"),
        acts=first("dialogue_act", "dialogue_act"),
        rival="" if sides or given.keys() & {"content"} else next(iter(alike), ""),
        is_recording=is_recording,
        is_flat=True,
    )


def _choice(
    items: Sequence[Record],
    group: Sequence[str],
    role: Sequence[str],
    text: Sequence[str],
    sides: Sequence[str],
    time: Sequence[str],
) -> str:
    """Return what --columns would say of rows whose names are unusual, with the evidence."""
    chosen = {"id": group[:1], "role": role[:1], "content": [] if sides else text[:1]}
    chosen |= {side: [path] for side, path in zip(SIDES, sides, strict=False)}
    places = {field: paths[0] for field, paths in chosen.items() if paths}
    if all(map(_USUAL.fullmatch, map(str.lower, places.values()))):
        return ""
    if time:
        places["time"] = time[0]
    words = ",".join(f"{field}={path}" for field, path in places.items())
    evidence = []
    for field, path in places.items():
        values = [item.get(path) for item in items if item.get(path)]
        changes = sum(first != second for first, second in pairwise(values))
        alternate = ", alternate" if field == "role" and 2 * changes > len(values) else ""
        evidence.append(f"{path}: {len(set(values)):,} values{alternate}")
    return f"columns: read as --columns '{words}' ({'; '.join(evidence)} in {len(items):,} rows)"


def _sides(columns: Mapping[str, list[Any]]) -> list[str]:
    """Return the columns of what each side said: prompt and response, or customer and agent."""
    places: dict[str, list[str]] = {}
    for side in SIDES:
        ranked = [(rank, path) for path in columns if (rank := name_rank(side, path)) is not None]
        places[side] = [path for rank, path in ranked if rank == min(ranked)[0]]
    if not any((name_rank("content", path) or 0) < 6 for path in columns if _is_text(path)):
        for path in columns:
            side = WELL_KNOWN.get(_SIDE.sub("", path.casefold()), "")
            if side in places and not path.isdecimal():
                places[side].append(path)
    sides = [paths[0] for paths in places.values() if len(paths) == 1]
    is_plain = len(sides) == 2 and not any(
        is_whole(str(text)) for side in sides for text in columns[side]
    )
    return sides if is_plain else []


def _by_difference(text: Sequence[str], columns: Mapping[str, list[Any]]) -> Sequence[str]:
    """Return the fields of texts without those that repeat themselves beside others."""
    counts = {path: len(set(columns[path])) for path in text}
    return [path for path in text if 2 * counts[path] >= max(counts.values())]


def _is_text(path: str) -> bool:
    return name_rank("content", path) is not None


def _group(
    columns: Mapping[str, list[Any]], taken: set[str], given: Mapping[str, str], has_role: bool
) -> tuple[list[str], bool]:
    """Return the field that rows of a dialogue share, and whether it is more than a channel."""
    if "id" in given:
        return [given["id"]], True
    free = [
        path
        for path, values in columns.items()
        if path not in taken and not {str(value).lower() for value in values} <= {"true", "false"}
    ]
    ranked = sorted((rank, free.index(path), path) for path in free for rank in _ranks("id", path))
    best = [path for rank, _, path in ranked if rank == ranked[0][0]]
    if best and ranked[0][0] == 2 and has_role:  # a message's id beside the ticket's
        best += [path for rank, _, path in ranked if rank == 3]
    again = [path for path in best if len(set(columns[path])) < len(columns[path])]
    channels = [path for path in free if name_rank("channel", path) is not None]
    if best:
        return (again or best)[:1], True
    return channels[:1], False


def _ranks(kind: str, path: str) -> list[int]:
    rank = name_rank(kind, path)
    return [] if rank is None else [rank]


def _day_and_clock(
    columns: Mapping[str, list[Any]], time: Sequence[str], taken: set[str]
) -> tuple[str, Sequence[str]]:
    """Return a day and a time of day in two columns, if one of them is the time."""
    free = [path for path in columns if path not in taken or path in time[:1]]
    days = [path for path in free if name_rank("day", path) == 0]
    clocks = [path for path in free if name_rank("clock", path) == 0]
    if len(days) == len(clocks) == 1 and days != clocks and time[0] in (*days, *clocks):
        return days[0], clocks
    return "", time
