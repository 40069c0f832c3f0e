"""Your own tables: CSV or TSV with one turn per row, where the rows of a dialogue stand together."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from ...models.dialogue import ROLES
from ...models.errors import InputError, unknown_name
from ..source.parsing import LONGEST_CELL
from ..source.streams import decompressed
from .findings import Finding, Line, Problem, at_least_one, distinct, from_lines, is_text, text_of
from .roles import RoleMap

COLUMNS = {
    "id": ("id", "dialogue_id", "dialog_id", "conversation_id", "session_id"),
    "role": ("role", "speaker"),
    "content": ("content", "text", "utterance", "message"),
    "domain": ("domain", "domains", "topic", "topics", "label"),
    "dialogue_act": ("dialogue_act", "dialogue_acts", "dialog_act"),
}
"""What a table may tell of a turn, and the names by which a header says so; the first three it must tell."""

PAIR = ("first", "second")
"""What a table of sentence pairs tells instead: two texts a row, which become a dialogue of two turns."""

_REMEDIES = {
    "id": "an id in every row; add it",
    "role": "a speaker; add the name",
    "content": "text; remove the row or add what was said",
}
_REQUIRED = tuple(_REMEDIES)
_HOW = "say which with --columns id=NAME,role=NAME,content=NAME, or with numbers, as in 'id=1', if there is no header"


@dataclass(frozen=True)
class _Row:
    line: int
    cells: Sequence[str] = ()
    fault: str = ""


@dataclass(frozen=True)
class _Layout:
    """Where a table's columns are."""

    positions: Mapping[str, int]
    width: int

    def cell(self, row: _Row, column: str) -> str:
        position = self.positions.get(column, -1)
        return row.cells[position] if 0 <= position < len(row.cells) else ""

    def names(self, row: _Row, column: str) -> list[str]:
        return [name.strip() for name in self.cell(row, column).split("|") if name.strip()]


def parse_columns(text: str | None) -> dict[str, str]:
    """Reads what a user wrote of a table's columns."""
    columns: dict[str, str] = {}
    for pair in text.split(",") if text else ():
        told, equals, name = (part.strip() for part in pair.partition("="))
        if not equals or not name:
            raise InputError(f"columns: got {pair.strip()!r}, expected FIELD=NAME, as in 'id=call,role=speaker'")
        if told not in (*COLUMNS, *PAIR):
            raise unknown_name("field in columns", told, (*COLUMNS, *PAIR))
        if told in columns:
            raise InputError(f"columns: got {told} twice, expected it once; leave one of the two out")
        columns[told] = name
    pairs = set(PAIR) & columns.keys()
    if pairs and columns.keys() != set(PAIR):
        raise InputError(f"columns: got {text!r}, expected first and second together and nothing beside them")
    numbers = [name for name in columns.values() if _is_number(name)]
    if numbers and (len(numbers) < len(columns) or not (pairs or set(_REQUIRED) <= columns.keys())):
        raise InputError(
            f"columns: got {text!r}, expected numbers for id, role and content and no name beside them, or names only; "
            "as in 'id=1,role=2,content=3'"
        )
    return columns


def find_in_table(path: Path, columns: Mapping[str, str], roles: RoleMap) -> Iterator[Finding]:
    """Reads a table dialogue by dialogue, malformed ones too.

    With the columns of `PAIR`, each row is a dialogue of two turns, user and assistant: entailment pairs, or questions
    and answers. Rows without text in any cell are passed over. A row whose id cannot be read counts to the dialogue
    before it. A dialogue's labels are those of all its rows; ``a|b`` in a cell is two labels, or two dialogue acts.
    """
    remedy = "the rows of a dialogue must stand together: sort the file by id, keeping the order of the turns"
    findings = distinct(_find(path, columns, roles), remedy)
    yield from at_least_one(findings, path, "one turn per row")


def _find(path: Path, columns: Mapping[str, str], roles: RoleMap) -> Iterator[Finding]:
    delimiter = "\t" if path.name.lower().removesuffix(".gz").endswith(".tsv") else ","
    with decompressed(path) as stream, text_of(stream, path) as text:
        rows = _rows(text, delimiter)
        first = next(rows, None)
        if first is None:
            return
        layout, has_header = _lay_out(path, first, columns)
        if columns.keys() == set(PAIR):
            yield from (_pair(path, row, layout) for row in (rows if has_header else _chain(first, rows)))
            return
        rest = _with_ids(rows if has_header else _chain(first, rows), layout)
        for identifier, group in groupby(rest, key=lambda pair: pair[0]):
            yield _finding(path, identifier, [row for _, row in group], layout, roles)


def _chain(first: _Row, rows: Iterator[_Row]) -> Iterator[_Row]:
    yield first
    yield from rows


def _rows(text: io.TextIOWrapper, delimiter: str) -> Iterator[_Row]:
    csv.field_size_limit(LONGEST_CELL)
    reader = csv.reader(text, delimiter=delimiter, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            fault = f"got broken CSV ({error}), expected quoted cells to be closed, and quotation marks in them doubled"
            yield _Row(line, fault=f"{fault}; repair the row")
            continue
        if not is_text("".join(cells)):
            yield _Row(line, cells, "got bytes that are not UTF-8, expected text; save the file as UTF-8")
        elif any(cell.strip() for cell in cells):
            yield _Row(line, cells)


def _with_ids(rows: Iterator[_Row], layout: _Layout) -> Iterator[tuple[str, _Row]]:
    """Tells each row's dialogue; a row whose id cannot be read may be of the one before it and of the one after it."""
    identifier, unknown = "", []
    for row in rows:
        own = layout.cell(row, "id").strip()
        if not own or not is_text(own):
            unknown.append(row)
            continue
        if identifier:
            yield from ((identifier, each) for each in unknown)
        if own != identifier:
            yield from ((own, each) for each in unknown)
        identifier, unknown = own, []
        yield identifier, row
    yield from ((identifier, each) for each in unknown)


def _finding(path: Path, identifier: str, rows: Sequence[_Row], layout: _Layout, roles: RoleMap) -> Finding:
    lines, problems, domains = [], [], []
    for row in rows:
        place = f"{path}:{row.line}"
        faults = _faults(row, layout)
        problems += [Problem(place, fault) for fault in faults]
        if not faults:
            domains += layout.names(row, "domain")
            acts = tuple(layout.names(row, "dialogue_act"))
            lines.append(Line(place, layout.cell(row, "role"), layout.cell(row, "content"), acts))
    return from_lines(f"{path}:{rows[0].line}", identifier, domains, lines, roles, problems)


def _pair(path: Path, row: _Row, layout: _Layout) -> Finding:
    place = f"{path}:{row.line}"
    problems = [Problem(place, fault) for fault in _faults(row, layout, dict.fromkeys(PAIR, "text; remove the row"))]
    lines = [Line(place, role, layout.cell(row, name)) for role, name in zip(ROLES, PAIR, strict=False)]
    return from_lines(place, str(row.line), [], [] if problems else lines, RoleMap.parse(None), problems)


def _faults(row: _Row, layout: _Layout, remedies: Mapping[str, str] = _REMEDIES) -> list[str]:
    if row.fault:
        return [row.fault]
    if len(row.cells) != layout.width:
        return [
            f"got {len(row.cells)} cell(s), expected {layout.width} as in the first row; "
            "put cells that hold the separator in quotation marks, or add what is missing"
        ]
    return [
        f"field {field}: got {layout.cell(row, field)!r}, expected {remedy}"
        for field, remedy in remedies.items()
        if not layout.cell(row, field).strip()
    ]


def _lay_out(path: Path, first: _Row, columns: Mapping[str, str]) -> tuple[_Layout, bool]:
    place, width = f"{path}:{first.line}", len(first.cells)
    if first.fault:
        raise InputError(f"{place}: {first.fault}")
    if any(map(_is_number, columns.values())):
        for field, number in columns.items():
            if not 1 <= int(number) <= width:
                raise InputError(
                    f"{place}: columns: got {field}={number}, expected a number from 1 to {width}, "
                    "as the row has no more cells; correct columns"
                )
        return _Layout({field: int(number) - 1 for field, number in columns.items()}, width), False
    header = [name.strip() for name in first.cells]
    fields = PAIR if columns.keys() == set(PAIR) else COLUMNS
    found = {field: _position(place, header, field, columns.get(field)) for field in fields}
    return _Layout({field: position for field, position in found.items() if position is not None}, width), True


def _position(place: str, header: Sequence[str], field: str, name: str | None) -> int | None:
    """Finds a column by the name that the user gave, or else by what such columns are usually called."""
    other = next((mark for mark in ";\t|," if len(header) == 1 and mark in header[0]), "")
    if name is not None and name not in header and not other:
        raise InputError(f"{place}: {unknown_name('column', name, set(header))}")
    usual = {_plain(name) for name in COLUMNS.get(field, ())}
    found = [at for at, cell in enumerate(header) if (cell == name if name is not None else _plain(cell) in usual)]
    if len(found) > 1:
        several = ", ".join(header[at] for at in found)
        raise InputError(f"{place}: got several columns for {field} ({several}), expected one; {_HOW}")
    if not found and field in _REQUIRED:
        how = f"separate the cells by commas (.csv) or tabs (.tsv), not by {other!r}" if other else _HOW
        raise InputError(f"{place}: got no column for {field} (found: {', '.join(header[:20])}); {how}")
    return found[0] if found else None


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).casefold()


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdecimal() and len(name) < 10
