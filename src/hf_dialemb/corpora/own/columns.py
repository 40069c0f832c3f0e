"""The meaning of a table's columns: given by the user, or by the usual names of headers."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...errors import InputError, unknown_name
from .findings import Notes
from .roles import WELL_KNOWN

COLUMNS = {
    "id": ("id", "dialogue_id", "dialog_id", "conversation_id", "session_id"),
    "role": ("role", "speaker"),
    "content": ("content", "text", "utterance", "message"),
    "domain": ("domain", "domains", "topic", "topics", "label"),
    "dialogue_act": ("dialogue_act", "dialogue_acts", "dialog_act"),
    "name": ("speaker_name", "agent_name", "author_name", "sender_name"),
    "time": ("timestamp", "time", "created_at", "date_time", "date"),
}
"""The fields of a turn, and their usual names in headers; the first three are needed."""

# Names in the exports of several systems, the most specific first; used where none of `COLUMNS` is there.
_EXPORTS = {
    "id": (
        "ticket_id", "chat_id", "call_id", "case_id", "case_number", "thread_id", "interaction_id", "contact_id",
        "conversation", "session", "chat", "call", "ticket", "ticket_number",
    ),
    "role": (
        "author_type", "sender_type", "author_role", "sender_role", "user_type", "participant_type", "direction",
        "author", "sender", "from", "participant", "author_name", "sender_name", "user_name", "name", "who",
    ),
    "content": (
        "body", "plain_body", "message_body", "message_text", "comment", "comment_body", "transcript", "utterance_text",
        "sentence", "msg", "value", "chat_message",
    ),
    "time": ("sent_at", "created", "created_time", "message_time", "sent", "start", "start_time", "posted_at"),
}  # fmt: skip

PAIR = ("first", "second")  # fields of a table of sentence pairs: a row is a dialogue of two turns
WIDE = ("user", "assistant")  # fields of a table in wide form, instead of role and content: the texts of both sides
_REQUIRED = ("id", "role", "content")
_HOW = "say which with --columns 'id=NAME,role=NAME,content=NAME', or with numbers, as in 'id=1', if there is no header"


@dataclass(frozen=True)
class Layout:
    """The places of a table's columns.

    Without a column for the id, a row is a dialogue; with columns for the sides, a row has what both said.
    """

    positions: Mapping[str, int]  # from a field to its column
    width: int  # cells of a row
    has_header: bool = True

    def cell(self, cells: Sequence[str], column: str) -> str:
        """Return a field of a row; empty without such a cell."""
        position = self.positions.get(column, -1)
        return cells[position] if 0 <= position < len(cells) else ""

    def names(self, cells: Sequence[str], column: str) -> list[str]:
        """Return the names in a cell, which are separated by ``|``."""
        return [name.strip() for name in self.cell(cells, column).split("|") if name.strip()]


def parse_columns(text: str | None) -> dict[str, str]:
    """Parse the user's description of a table's columns."""
    columns: dict[str, str] = {}
    for pair in text.split(",") if text else ():
        field, equals, name = (part.strip() for part in pair.partition("="))
        if not equals or not name:
            raise InputError(f"columns: got {pair.strip()!r}, expected FIELD=NAME, as in 'id=call,role=speaker'")
        if field not in (*COLUMNS, *PAIR, *WIDE):
            raise unknown_name("field in columns", field, (*COLUMNS, *PAIR, *WIDE))
        if field in columns:
            raise InputError(f"columns: got {field} twice, expected it once; leave one of the two out")
        columns[field] = name
    pairs, sides = columns.keys() & set(PAIR), columns.keys() & set(WIDE)
    needed = PAIR if pairs else ("id", *WIDE) if sides else _REQUIRED
    numbers = list(map(_is_number, columns.values()))
    if pairs and columns.keys() != set(PAIR):
        problem = "first and second together and nothing beside them"
    elif sides and (len(sides) == 1 or {"role", "content"} & columns.keys()):
        problem = "user and assistant together, without role and content"
    elif any(numbers) and not (all(numbers) and columns.keys() >= set(needed)):
        problem = (
            "numbers for id, role and content and no name beside them, or names only; as in 'id=1,role=2,content=3'"
        )
    else:
        return columns
    raise InputError(f"columns: got {text!r}, expected {problem}")


def lay_out(place: str, cells: Sequence[str], columns: Mapping[str, str], notes: Notes) -> Layout:
    """Return the layout by a table's first row; note the columns that were guessed by names of exports."""
    pairs = PAIR[0] in columns
    if pairs:
        columns = {side: columns[field] for side, field in zip(WIDE, PAIR, strict=True)}
    if any(map(_is_number, columns.values())):
        for field, number in columns.items():
            if not 1 <= int(number) <= len(cells):
                raise InputError(
                    f"{place}: columns: got {field}={number}, expected a number from 1 to {len(cells)}, "
                    "as the row has no more cells; correct columns"
                )
        return Layout({field: int(number) - 1 for field, number in columns.items()}, len(cells), has_header=False)
    header = [name.strip() for name in cells]
    for name in columns.values():
        if name not in header:
            raise InputError(f"{place}: {unknown_name('column', name, set(header))}")
    positions = {field: _only(place, header, field, [name]) for field, name in columns.items()}
    if not pairs:
        positions |= _guessed(place, header, positions, notes)
    return Layout(positions, len(cells))


def _guessed(place: str, header: Sequence[str], given: Mapping[str, int], notes: Notes) -> dict[str, int]:
    """Find the columns that were not given by their usual names, or else by the names that exports have."""
    plain = list(map(_plain, header))
    positions = {**given}
    for field, usual in COLUMNS.items():
        names = [name for name, word in zip(header, plain, strict=True) if word in map(_plain, usual)]
        if field not in given and names:
            positions[field] = (
                header.index(names[0]) if field in ("time", "name") else _only(place, header, field, names)
            )
    usual_fields, sides = set(positions), _sides(header)
    if not {"role", "content", *WIDE} & positions.keys() and len(sides) == len(WIDE):
        positions |= sides
    needed = ("id", *WIDE) if WIDE[0] in positions else _REQUIRED
    for field in {*needed, "time"} - positions.keys():
        if known := [name for name in map(_plain, _EXPORTS.get(field, ())) if name in plain]:
            positions[field] = plain.index(known[0])
    for field in needed:
        if field not in positions:
            raise InputError(
                f"{place}: got no column for {field} (found: {', '.join(header[:20])}); {_HOW}; "
                "or, where a row has what both sides said, --columns 'id=NAME,user=NAME,assistant=NAME'"
            )
    if positions.keys() - usual_fields:
        taken = [*needed, *(field for field in COLUMNS if field in positions and field not in _REQUIRED)]
        words = ",".join(f"{field}={header[positions[field]]}" for field in taken)
        notes.add(f"columns: read as --columns '{words}'", place)
    return positions


def _only(place: str, header: Sequence[str], field: str, names: Sequence[str]) -> int:
    places = [position for position, name in enumerate(header) if name in names]
    if len(places) > 1:
        several = ", ".join(header[position] for position in places)
        raise InputError(f"{place}: got several columns for {field} ({several}), expected one; {_HOW}")
    return places[0]


def _sides(header: Sequence[str]) -> dict[str, int]:
    """Return the columns of a wide form, such as ``customer`` and ``agent_message``."""
    places: dict[str, list[int]] = {}
    for position, name in enumerate(header):
        role = WELL_KNOWN.get(re.sub(r"[\s_-]*(message|text|utterance|said|turn)$", "", name.casefold()))
        if role in WIDE and not name.isdecimal():
            places.setdefault(role, []).append(position)
    return {role: positions[0] for role, positions in places.items() if len(positions) == 1}


def _plain(name: str) -> str:
    return re.sub(r"[\s_.-]", "", name).casefold()


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdecimal() and len(name) < 10
