"""Your own tables: CSV, TSV, Excel or a DataFrame; a row is a turn, or what both sides said.

Rows may stand in any order: those of a dialogue are put together by its id, and sorted by time where the table has one.
"""

import csv
import datetime
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby, islice
from math import isnan
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from ...errors import InputError
from ...runs.frames import counted
from ..parsing import LONGEST_CELL
from .columns import WIDE, Layout, lay_out
from .encoding import is_text, text_of
from .findings import Draft, Finding, Notes, Problem, from_drafts, message_of


@dataclass(frozen=True)
class Row:
    """A row of a table: its line in the file, its cells, and its fault."""

    line: int
    cells: Sequence[str] = ()
    fault: str = ""


Rows = Callable[[Notes], Iterator[Row]]


def find_in_table(rows: Rows, name: str, columns: Mapping[str, str], notes: Notes) -> Iterator[Finding]:
    """Read the rows of a table dialogue by dialogue, malformed ones too; the rows are read several times.

    See `Layout` for its forms. Rows without text in any cell are passed over. A dialogue has the labels of all its
    rows; ``a|b`` in a cell is two labels, or two dialogue acts. A row of more or fewer cells counts to the dialogue
    whose id it has, or to the one before it. Problems name the table.
    """
    first = next(rows(Notes()), None)
    if first is None:
        return
    if first.fault:
        raise InputError(f"{name}:{first.line}: {first.fault}")
    layout = lay_out(f"{name}:{first.line}", first.cells, columns, notes)

    def body(notes: Notes) -> Iterator[Row]:
        return islice(rows(notes), int(layout.has_header), None)

    order = _order(name, body(Notes()), layout, notes)
    yield from from_drafts(partial(_drafts, name, body, layout, order), notes)


def rows_of(header: Sequence[str], cells: Iterable[Iterable[object]]) -> list[Row]:
    """Make rows of a table in memory, as a file of it would give them."""
    return [
        Row(1, header),
        *filter(_is_filled, (Row(line, list(map(_text, row))) for line, row in enumerate(cells, 2))),
    ]


def file_rows(path: Path, notes: Notes) -> Iterator[Row]:
    """Read the rows of a file, CSV, TSV or Excel, but for blank ones."""
    is_workbook = path.name.lower().endswith(".xlsx")
    return filter(_is_filled, _workbook_rows(path, notes) if is_workbook else _text_rows(path, notes))


def _is_filled(row: Row) -> bool:
    return bool(row.fault) or any(cell.strip() for cell in row.cells)


def _text_rows(path: Path, notes: Notes) -> Iterator[Row]:
    csv.field_size_limit(LONGEST_CELL)
    usual = "\t" if path.name.lower().removesuffix(".gz").endswith(".tsv") else ","
    with text_of(path, notes) as text:
        head = text.readline()
        reader = csv.reader(chain([head], text), delimiter=_delimiter(head, usual), strict=True)
        while True:
            line = reader.line_num + 1
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                yield Row(line, fault=f"got broken CSV ({error}), expected quoted cells to be closed, and quotation "
                          "marks in them doubled; repair the row")  # fmt: skip
                continue
            fault = "" if is_text("".join(cells)) else "got bytes that are not UTF-8, expected text; save it as UTF-8"
            yield Row(line, cells, fault)


def _workbook_rows(path: Path, notes: Notes) -> Iterator[Row]:
    """Read the rows of the first sheet that has several."""
    import pandas

    try:
        sheets = pandas.read_excel(path, sheet_name=None, header=None, dtype=object, na_filter=False)
    except ImportError:
        raise InputError(f'{path}: needs openpyxl; pip install "hf-dialemb[excel]", or save it as CSV') from None
    except (BadZipFile, KeyError, OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error}); save it again as .xlsx or as CSV") from None
    title = next((title for title, sheet in sheets.items() if len(sheet) > 1), next(iter(sheets)))
    if len(sheets) > 1:
        notes.add(f"read the sheet {title!r} alone", str(path))
    for line, cells in enumerate(sheets[title].itertuples(index=False, name=None), 1):
        yield Row(line, list(map(_text, cells)))


def _text(cell: object) -> str:
    if cell is None or (isinstance(cell, float) and isnan(cell)):  # also where a formula of a workbook failed
        return ""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))  # an id that was typed as 12
    return cell.isoformat() if isinstance(cell, datetime.datetime) else str(cell)


def _delimiter(head: str, usual: str) -> str:
    """Return the separator of the file's ending, or the one that separates most if that separates nothing."""
    counts = {mark: len(next(csv.reader([head], delimiter=mark), [])) for mark in (usual, ";", "\t", ",", "|")}
    return usual if counts[usual] > 1 else max(counts, key=counts.__getitem__)


def _order(name: str, rows: Iterator[Row], layout: Layout, notes: Notes) -> list[int] | None:
    """Return the order in which rows are to be read; None if those of each dialogue stand together."""
    places: dict[str, list[int]] = {}
    runs = Counter[str]()
    for number, (identifier, _) in enumerate(_with_ids(rows, layout)):
        of_dialogue = places.setdefault(identifier, [])
        runs[identifier] += of_dialogue[-1:] != [number - 1]
        of_dialogue.append(number)
    apart = sum(count > 1 for count in runs.values())
    if apart:
        notes.add(f"{counted(apart, 'dialogue')} whose rows stood apart put together", name)
    return [*chain.from_iterable(places.values())] if apart else None


def _drafts(name: str, body: Rows, layout: Layout, order: list[int] | None, notes: Notes) -> Iterator[Draft]:
    rows = body(notes)
    if order is not None:
        rows = map(list(rows).__getitem__, order)
    for identifier, group in groupby(_with_ids(rows, layout), key=lambda pair: pair[0]):
        draft = _draft(name, identifier, [row for _, row in group], layout, notes)
        if draft.messages or draft.problems:
            yield draft


def _with_ids(rows: Iterable[Row], layout: Layout) -> Iterator[tuple[str, Row]]:
    before = ""
    for row in rows:
        before = layout.cell(row.cells, "id").strip() or before if "id" in layout.positions else str(row.line)
        yield before, row


def _draft(name: str, identifier: str, rows: Sequence[Row], layout: Layout, notes: Notes) -> Draft:
    messages: list[dict[str, Any]] = []
    problems, domains = [], []
    for row in rows:
        place = f"{name}:{row.line}"
        if fault := row.fault or _fault(row, layout):
            problems.append(Problem(place, fault))
        elif "id" in layout.positions and not layout.cell(row.cells, "id").strip():
            notes.add("left out a turn without an id", place)
        else:
            domains += layout.names(row.cells, "domain")
            messages += _messages(place, row, layout, notes)
    place = f"{name}:{rows[0].line}"
    return Draft(place, identifier, messages, tuple(dict.fromkeys(domains)), tuple(problems))


def _messages(place: str, row: Row, layout: Layout, notes: Notes) -> Iterator[dict[str, Any]]:
    acts = layout.names(row.cells, "dialogue_act")
    time = {"time": layout.cell(row.cells, "time").strip()}
    if WIDE[0] in layout.positions:
        sides = [(role, layout.cell(row.cells, role)) for role in WIDE]
        filled = [(role, text) for role, text in sides if text.strip()]
        yield from (message_of(place, role, text, acts=acts) | time for role, text in filled or sides[:1])
        return
    speaker, text = layout.cell(row.cells, "role"), layout.cell(row.cells, "content")
    if text.strip() and not speaker.strip():
        notes.add("left out a turn without a speaker", place)
    else:
        yield message_of(place, speaker, text, layout.cell(row.cells, "name"), acts) | time


def _fault(row: Row, layout: Layout) -> str:
    if len(row.cells) != layout.width:
        return (
            f"got {len(row.cells)} cell(s), expected {layout.width} as in the first row; "
            "put cells that hold the separator in quotation marks, or add what is missing"
        )
    if "id" not in layout.positions and not all(layout.cell(row.cells, role).strip() for role in WIDE):
        return "got an empty cell, expected both texts of the pair; remove the row"
    return ""
