"""The fields of the rows of a table, which may hold what both sides said."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .columns import SIDES, name_rank
from .evidence import Layout, is_whole
from .json_values import Record
from .roles import WELL_KNOWN

_WHOLE = 9  # rank of names of contents that are sure only if a cell holds a whole conversation
_USUAL = re.compile(
    "id|dial(ogue|og)_?id|conversation_?id|session_?id|role|speaker|content|text|utterance|message"
)
_SIDE = re.compile(r"[\s_-]*(message|text|utterance|said|turn)$")


def layout_of_rows(
    layout: Layout, filled: Mapping[str, list[Any]], given: Mapping[str, str]
) -> Layout:
    """Return the fields of rows: one text of a row, or two sides; an id, a number and a day."""
    sides = [given[side] for side in SIDES if side in given]
    if given.keys().isdisjoint(("role", "content", *SIDES)):
        sides = _sides(filled)
    role = [] if sides else list(layout.role)
    differing = {path: len(set(filled.get(path, ()))) for path in layout.text}
    text = [
        path
        for path in layout.text
        if "content" in given
        or (
            (2 * differing[path] >= max(differing.values()))
            and (role or name_rank("content", path) not in (None, _WHOLE))
        )
    ]
    taken = {*(sides or text[:1]), *role[:1], *given.values()}
    group, divides = _group(filled, taken, has_role=bool(role))
    if "id" in given:
        group = [given["id"]]
        divides = True
    is_recording = layout.is_recording and {"start", "end"} <= filled.keys()
    time = list(layout.time if is_recording else [*layout.time, *layout.start])
    days, clocks = ([at for at in filled if name_rank(kind, at) == 0] for kind in ("day", "clock"))
    has_both = len(days) == len(clocks) == 1 and days != clocks and time[0] in (*days, *clocks)
    free = [path for path in filled if path not in {*taken, *group, *time[:1]}]
    first = {
        name: given.get(name) or next((p for p in free if name_rank(name, p) == 0), "")
        for name in ("turn", "domain", "dialogue_act")
    }
    return replace(
        layout,
        sides=sides,
        role=role,
        name=[] if sides else layout.name,
        text=text,
        group=group,
        divides=divides,
        day=days[0] if has_both else "",
        time=clocks if has_both else time,
        turn=first["turn"],
        domain=first["domain"],
        acts=first["dialogue_act"],
        is_recording=is_recording,
        is_flat=True,
    )


def _sides(columns: Mapping[str, list[Any]]) -> list[str]:
    """Return the columns of what each side said: prompt and response, or customer and agent."""
    content = [rank for path in columns if (rank := name_rank("content", path)) is not None]
    sides = []
    for side in SIDES:
        ranks = {path: rank for path in columns if (rank := name_rank(side, path)) is not None}
        places = [path for path in ranks if ranks[path] == min(ranks.values())]
        if not any(rank < 6 for rank in content):
            words = {p: _SIDE.sub("", p.casefold()) for p in columns if not p.isdecimal()}
            places += [path for path, word in words.items() if WELL_KNOWN.get(word) == side]
        if len(places) == 1:
            sides += places
    is_plain = not any(is_whole(str(text)) for side in sides for text in columns[side])
    return sides if len(sides) == 2 and is_plain else []


def _group(
    columns: Mapping[str, list[Any]], taken: set[str], *, has_role: bool
) -> tuple[list[str], bool]:
    """Return the field that rows of a dialogue share, and whether it is more than a channel."""
    flags = {"true", "false"}
    free = {
        path: values
        for path, values in columns.items()
        if path not in taken and not {str(value).lower() for value in values} <= flags
    }
    ranks = {path: rank for path in free if (rank := name_rank("id", path)) is not None}
    least = min(ranks.values(), default=0)
    # a message's id beside the ticket's
    most = 3 if least == 2 and has_role else least
    best = sorted((path for path in ranks if ranks[path] <= most), key=lambda path: ranks[path])
    again = [path for path in best if len(set(free[path])) < len(free[path])]
    channels = [path for path in free if name_rank("channel", path) is not None]
    return (again or best or channels)[:1], bool(best)


def choice_of(layout: Layout, items: Sequence[Record]) -> str:
    """Return what --columns would say of rows whose names are unusual, with the evidence."""
    content = dict(zip(SIDES, layout.sides, strict=True)) if layout.sides else {}
    chosen = {"id": layout.group, "role": layout.role, "content": layout.text}
    firsts = {field: paths[0] for field, paths in chosen.items() if paths}
    places = {field: path for field, path in firsts.items() if not (content and field == "content")}
    places |= content
    if all(map(_USUAL.fullmatch, map(str.lower, places.values()))):
        return ""
    words = ",".join(f"{field}={path}" for field, path in places.items())
    counts = (
        f"{path}: {len({item.get(path) for item in items}):,} values" for path in places.values()
    )
    return f"columns: read as --columns '{words}' ({'; '.join(counts)} in {len(items):,} rows)"
