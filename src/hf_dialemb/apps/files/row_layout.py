"""The fields of flat rows: of turns, or of what both sides said, by evidence and by their names."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .columns import SIDES, name_rank
from .evidence import Layout, Record, columns_of, is_whole, layout_of
from .roles import WELL_KNOWN

_WHOLE = 9  # rank of names of contents that are sure only if a cell holds a whole conversation
_USUAL = re.compile(
    "id|dial(ogue|og)_?id|conversation_?id|session_?id|role|speaker|content|text|utterance|message"
)
_SIDE = re.compile(r"[\s_-]*(message|text|utterance|said|turn)$")


def layout_of_rows(items: Sequence[Record], given: Mapping[str, str]) -> Layout:
    """Choose the fields of the rows of a table, which may hold what both sides said."""
    columns = columns_of(items)
    sides = [given[side] for side in SIDES if side in given]
    if given.keys().isdisjoint(("role", "content", *SIDES)):
        sides = _sides(columns)
    layout = layout_of(items, given)
    text = list(layout.text)
    if not (layout.role or sides or "content" in given):
        text = [path for path in text if name_rank("content", path) not in (None, _WHOLE)]
    if not sides and "content" not in given:
        counts = {path: len(set(columns[path])) for path in text}
        text = [path for path in text if 2 * counts[path] >= max(counts.values())]
    role = [] if sides else layout.role
    taken = {*(sides or text[:1]), *role[:1], *given.values()}
    group, divides = _group(columns, taken, given, has_role=bool(role))
    is_recording = layout.is_recording and {"start", "end"} <= columns.keys()
    times = list(layout.time if is_recording else [*layout.time, *layout.start])
    taken |= {*group, *times[:1]}
    days, clocks = ([at for at in columns if name_rank(kind, at) == 0] for kind in ("day", "clock"))
    has_both = len(days) == len(clocks) == 1 and days != clocks and times[0] in (*days, *clocks)

    def first(field: str) -> str:
        free = (path for path in columns if path not in taken and name_rank(field, path) == 0)
        return given.get(field) or next(free, "")

    return replace(
        layout,
        sides=sides,
        role=role,
        name=[] if sides else layout.name,
        text=text,
        group=group,
        divides=divides,
        day=days[0] if has_both else "",
        time=clocks if has_both else times,
        turn=first("turn"),
        domain=first("domain"),
        acts=first("dialogue_act"),
        is_recording=is_recording,
        is_flat=True,
    )


def choice_of(layout: Layout, items: Sequence[Record]) -> str:
    """Return what --columns would say of rows whose names are unusual, with the evidence."""
    chosen = {"id": layout.group[:1], "role": layout.role[:1]}
    chosen |= {side: [path] for side, path in zip(SIDES, layout.sides, strict=False)}
    chosen |= {} if layout.sides else {"content": layout.text[:1]}
    places = {field: paths[0] for field, paths in chosen.items() if paths}
    if all(map(_USUAL.fullmatch, map(str.lower, places.values()))):
        return ""
    words = ",".join(f"{field}={path}" for field, path in places.items())
    counts = (
        f"{path}: {len({item.get(path) for item in items}):,} values" for path in places.values()
    )
    return f"columns: read as --columns '{words}' ({'; '.join(counts)} in {len(items):,} rows)"


def _sides(columns: Mapping[str, list[Any]]) -> list[str]:
    """Return the columns of what each side said: prompt and response, or customer and agent."""
    places: dict[str, list[str]] = {}
    for side in SIDES:
        ranks = {path: rank for path in columns if (rank := name_rank(side, path)) is not None}
        places[side] = [path for path in ranks if ranks[path] == min(ranks.values())]
    content = [rank for path in columns if (rank := name_rank("content", path)) is not None]
    if not any(rank < 6 for rank in content):
        for path in columns:
            side = WELL_KNOWN.get(_SIDE.sub("", path.casefold()), "")
            if side in places and not path.isdecimal():
                places[side].append(path)
    sides = [paths[0] for paths in places.values() if len(paths) == 1]
    is_plain = not any(is_whole(str(text)) for side in sides for text in columns[side])
    return sides if len(sides) == 2 and is_plain else []


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
    ranks = {path: rank for path in free if (rank := name_rank("id", path)) is not None}
    least = min(ranks.values(), default=0)
    # a message's id beside the ticket's
    most = 3 if least == 2 and has_role else least
    best = sorted((path for path in ranks if ranks[path] <= most), key=lambda path: ranks[path])
    again = [path for path in best if len(set(columns[path])) < len(columns[path])]
    if best:
        return (again or best)[:1], True
    return [path for path in free if name_rank("channel", path) is not None][:1], False
