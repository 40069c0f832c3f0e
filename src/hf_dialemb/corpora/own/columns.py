"""Which column of a table is what: as the user says, or as headers usually say it."""

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
"""What a table may tell of a turn, and the names by which a header says so; the first three it must tell."""

# Names of the exports of several systems, the most telling first; taken where none of `COLUMNS` is there.
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

PAIR = ("first", "second")  # what a table of sentence pairs tells instead: two texts a row, a dialogue of two turns
WIDE = ("user", "assistant")  # what a table in wide form tells instead of role and content: what each side said
_REQUIRED = ("id", "role", "content")
_HOW = "say which with --columns 'id=NAME,role=NAME,content=NAME', or with numbers, as in 'id=1', if there is no header"


@dataclass(frozen=True)
class Layout:
    """Where a table's columns are."""

    positions: Mapping[str, int]  # from what is told to the place of its column
    width: int  # how many cells a row has
    form: tuple[str, ...] = _REQUIRED  # that, `PAIR` or `WIDE`
    has_header: bool = True  # whether the first row has the columns' names

    def cell(self, cells: Sequence[str], column: str) -> str:
        """Returns what a row tells; nothing where it has no such cell."""
        position = self.positions.get(column, -1)
        return cells[position] if 0 <= position < len(cells) else ""

    def names(self, cells: Sequence[str], column: str) -> list[str]:
        """Returns the names in a cell, which are separated by ``|``."""
        return [name.strip() for name in self.cell(cells, column).split("|") if name.strip()]


def parse_columns(text: str | None) -> dict[str, str]:
    """Reads what a user wrote of a table's columns."""
    columns: dict[str, str] = {}
    for pair in text.split(",") if text else ():
        told, equals, name = (part.strip() for part in pair.partition("="))
        if not equals or not name:
            raise InputError(f"columns: got {pair.strip()!r}, expected FIELD=NAME, as in 'id=call,role=speaker'")
        if told not in (*COLUMNS, *PAIR, *WIDE):
            raise unknown_name("field in columns", told, (*COLUMNS, *PAIR, *WIDE))
        if told in columns:
            raise InputError(f"columns: got {told} twice, expected it once; leave one of the two out")
        columns[told] = name
    pairs, sides = set(PAIR) & columns.keys(), set(WIDE) & columns.keys()
    if pairs and columns.keys() != set(PAIR):
        raise InputError(f"columns: got {text!r}, expected first and second together and nothing beside them")
    if sides and (len(sides) == 1 or {"role", "content"} & columns.keys()):
        raise InputError(f"columns: got {text!r}, expected user and assistant together, without role and content")
    numbers = [name for name in columns.values() if _is_number(name)]
    needed = {"id", *WIDE} if sides else set(_REQUIRED)
    if numbers and (len(numbers) < len(columns) or not (pairs or needed <= columns.keys())):
        raise InputError(
            f"columns: got {text!r}, expected numbers for id, role and content and no name beside them, or names only; "
            "as in 'id=1,role=2,content=3'"
        )
    return columns


def lay_out(place: str, cells: Sequence[str], columns: Mapping[str, str], notes: Notes) -> Layout:
    """Finds the columns by a table's first row; what is guessed by names of exports is noted."""
    form = PAIR if columns.keys() == set(PAIR) else WIDE if columns.keys() & set(WIDE) else _REQUIRED
    if any(map(_is_number, columns.values())):
        return _numbered(place, len(cells), columns, form)
    header = [name.strip() for name in cells]
    found = {field: _named(place, header, field, name) for field, name in columns.items()}
    if form is not PAIR:
        found |= _usual(place, header, columns)
        sides = _sides(header)
        if form is not WIDE and not {"role", "content"} & found.keys() and len(sides) == len(WIDE):
            form, found = WIDE, found | sides
        needed = ("id", *form) if form is WIDE else form
        exported = {field: at for field in {*needed, "time"} - found.keys() for at in _exported(header, field)}
        found |= exported
        for field in needed:
            if field not in found:
                raise InputError(
                    f"{place}: got no column for {field} (found: {', '.join(header[:20])}); {_HOW}; "
                    "or, where a row has what both sides said, --columns 'id=NAME,user=NAME,assistant=NAME'"
                )
        if exported or (form is WIDE and not columns):
            taken = [*needed, *(field for field in COLUMNS if field in found and field not in _REQUIRED)]
            told = ",".join(f"{field}={header[found[field]]}" for field in taken)
            notes.add(f"columns: read as --columns '{told}'", place)
    return Layout(found, len(cells), form)


def _numbered(place: str, width: int, columns: Mapping[str, str], form: tuple[str, ...]) -> Layout:
    for field, number in columns.items():
        if not 1 <= int(number) <= width:
            raise InputError(
                f"{place}: columns: got {field}={number}, expected a number from 1 to {width}, "
                "as the row has no more cells; correct columns"
            )
    return Layout({field: int(number) - 1 for field, number in columns.items()}, width, form, has_header=False)


def _named(place: str, header: Sequence[str], field: str, name: str) -> int:
    found = [at for at, cell in enumerate(header) if cell == name]
    if not found:
        raise InputError(f"{place}: {unknown_name('column', name, set(header))}")
    return _only(place, header, field, found)


def _usual(place: str, header: Sequence[str], columns: Mapping[str, str]) -> dict[str, int]:
    found = {}
    for field in COLUMNS.keys() - columns.keys():
        usual = set(map(_plain, COLUMNS[field]))
        places = [at for at, cell in enumerate(header) if _plain(cell) in usual]
        if places:
            found[field] = places[0] if field in ("time", "name") else _only(place, header, field, places)
    return found


def _only(place: str, header: Sequence[str], field: str, found: Sequence[int]) -> int:
    if len(found) > 1:
        several = ", ".join(header[at] for at in found)
        raise InputError(f"{place}: got several columns for {field} ({several}), expected one; {_HOW}")
    return found[0]


def _exported(header: Sequence[str], field: str) -> list[int]:
    """Finds the most telling column of an export: one place, or none."""
    plain = [_plain(name) for name in header]
    return [plain.index(_plain(name)) for name in _EXPORTS.get(field, ()) if _plain(name) in plain][:1]


def _sides(header: Sequence[str]) -> dict[str, int]:
    """Finds the columns of a wide form, such as ``customer`` and ``agent_message``."""
    found: dict[str, list[int]] = {}
    for at, name in enumerate(header):
        role = WELL_KNOWN.get(re.sub(r"[\s_-]*(message|text|utterance|said|turn)$", "", name.casefold()))
        if role in WIDE and not name.isdecimal():
            found.setdefault(role, []).append(at)
    return {role: places[0] for role, places in found.items() if len(places) == 1}


def _plain(name: str) -> str:
    return re.sub(r"[\s_.-]", "", name).casefold()


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdecimal() and len(name) < 10
