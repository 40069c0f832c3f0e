"""Your own tables: CSV, TSV or Excel, a turn a row, or a row with what both sides said.

Rows may stand in any order: those of a dialogue are put together by its id, and sorted by time where the table has one.
"""

import csv
import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...runs.frames import counted
from ..source.parsing import LONGEST_CELL
from .columns import PAIR, WIDE, Layout, lay_out
from .findings import Draft, Finding, Line, Notes, Problem, at_least_one, began, distinct, from_drafts, is_text, text_of
from .roles import RoleMap

WORKBOOK = ".xlsx"
_NO_TEXT = "left out a turn without text"
_NO_SPEAKER = "left out a turn without a speaker"
_NO_ID = "left out a turn without an id"


@dataclass(frozen=True)
class Row:
    """A row of a table: its line in the file, its cells, and what is wrong with it."""

    line: int
    cells: Sequence[str] = ()
    fault: str = ""


Rows = Callable[[Notes], Iterator[Row]]


def find_in_table(rows: Rows, name: str, columns: Mapping[str, str], roles: RoleMap, notes: Notes) -> Iterator[Finding]:
    """Read the rows of a table dialogue by dialogue, malformed ones too.

    With the columns of `PAIR`, each row is a dialogue of two turns, user and assistant: entailment pairs, or questions
    and answers. With those of `WIDE`, a row has what the user said and then what the assistant said. Rows without text
    in any cell are passed over. A dialogue's labels are those of all its rows; ``a|b`` in a cell is two labels, or two
    dialogue acts. A row of more or fewer cells counts to the dialogue whose id it has, or to the one before it.
    Problems name the table. The rows are read several times.
    """
    first = next(rows(Notes()), None)
    if first is not None and first.fault:
        raise InputError(f"{name}:{first.line}: {first.fault}")
    found: Iterator[Finding] = iter(())
    if first is not None:
        layout = lay_out(f"{name}:{first.line}", first.cells, columns, notes)
        body = partial(_body, rows, layout)
        pairs = layout.form is PAIR
        order = None if pairs else _order(name, body(Notes()), layout, notes)
        found = from_drafts(partial(_drafts, name, body, layout, order), RoleMap() if pairs else roles, notes)
    yield from at_least_one(distinct(found), name, "one turn per row")


def _body(rows: Rows, layout: Layout, notes: Notes) -> Iterator[Row]:
    return islice(rows(notes), int(layout.has_header), None)


def rows_of(header: Sequence[str], cells: Iterable[Sequence[object]]) -> list[Row]:
    """Make rows of a table in memory, as a file of it would give them."""
    rows = [Row(1, header), *(Row(line, list(map(_cell_text, row))) for line, row in enumerate(cells, 2))]
    return [row for row in rows if any(cell.strip() for cell in row.cells)]


def file_rows(path: Path, notes: Notes) -> Iterator[Row]:
    """Read the rows of a file, CSV, TSV or Excel, but for blank ones."""
    if path.name.lower().endswith(WORKBOOK):
        found: Iterable[Row] = (Row(line, cells) for line, cells in _workbook_rows(path, notes))
    else:
        found = _text_rows(path, notes)
    for row in found:
        if row.fault or any(cell.strip() for cell in row.cells):
            yield row


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


def _workbook_rows(path: Path, notes: Notes) -> Iterator[tuple[int, list[str]]]:
    """The number and the cells of each row of the first sheet that has any, as texts."""
    try:
        from openpyxl import load_workbook
        from openpyxl.utils.exceptions import InvalidFileException
    except ImportError:
        raise InputError(f'{path}: needs openpyxl; pip install "hf-dialemb[excel]", or save it as CSV') from None
    from zipfile import BadZipFile

    try:
        book = load_workbook(path, read_only=True, data_only=True)
    except (InvalidFileException, BadZipFile, KeyError, OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error}); save it again as .xlsx or as CSV") from None
    try:
        sheet = next((each for each in book.worksheets if each.max_row is None or each.max_row > 1), book.worksheets[0])
        if len(book.worksheets) > 1:
            notes.add(f"read the sheet {sheet.title!r} alone", str(path))
        for line, cells in enumerate(sheet.iter_rows(values_only=True), 1):
            yield line, list(map(_cell_text, cells))
    finally:
        book.close()


def _cell_text(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # an id that was typed as 12
    return value.isoformat() if isinstance(value, datetime.datetime) else "" if value is None else str(value)


def _delimiter(head: str, usual: str) -> str:
    """Finds what separates cells: what the file's ending says, or where that separates nothing, what separates most."""
    counts = {mark: len(next(csv.reader([head], delimiter=mark), [])) for mark in (usual, ";", "\t", ",", "|")}
    return usual if counts[usual] > 1 else max(counts, key=counts.__getitem__)


def _order(name: str, rows: Iterator[Row], layout: Layout, notes: Notes) -> list[int] | None:
    """Finds in which order rows are to be read; None where they stand in it."""
    import numpy as np

    ranks, times = [], []
    seen: dict[str, int] = {}
    for identifier, row in _with_ids(rows, layout):
        ranks.append(seen.setdefault(identifier, len(seen)))
        times.append(layout.cell(row.cells, "time").strip())
    rank = np.array(ranks, dtype=np.intp)
    apart = int((np.bincount(rank[np.flatnonzero(np.diff(rank, prepend=-1))], minlength=1) > 1).sum())
    moments = _moments(times) if any(times) else np.zeros(len(rank))
    unknown = np.unique(rank[np.isnan(moments)])
    moments = np.where(np.isin(rank, unknown), 0, moments)
    order: list[int] = np.lexsort((np.arange(len(rank)), moments, rank)).tolist()
    later = np.argsort(rank, kind="stable")
    swapped = np.unique(rank[later][1:][(np.diff(moments[later]) < 0) & (np.diff(rank[later]) == 0)]).size
    for count, done in ((apart, "whose rows stood apart put together"), (swapped, "sorted by time")):
        if count:
            notes.add(f"{counted(count, 'dialogue')} {done}", name)
    return None if order == list(range(len(order))) else order


def _moments(times: Sequence[str]) -> Any:  # noqa: ANN401 - NumPy, which is imported where it is needed
    """Reads times: seconds since some moment, (N,) float64, or NaN for what is no time."""
    import numpy as np
    import pandas

    numbers = pandas.to_numeric(pandas.Series(times), errors="coerce").to_numpy(dtype=np.float64)
    if not np.isnan(numbers).any():
        return numbers
    found = pandas.to_datetime(pandas.Series(times), errors="coerce", utc=True, format="mixed")
    return np.where(found.isna(), np.nan, found.astype("int64") / 1e9)


def _drafts(name: str, body: Rows, layout: Layout, order: list[int] | None, notes: Notes) -> Iterator[Draft]:
    rows = body(notes)
    if order is not None:
        kept = list(rows)
        rows = (kept[place] for place in order)
    for identifier, group in groupby(_with_ids(rows, layout), key=lambda pair: pair[0]):
        draft = _draft(name, identifier, [row for _, row in group], layout, notes)
        if draft is not None:
            yield draft


def _with_ids(rows: Iterable[Row], layout: Layout) -> Iterator[tuple[str, Row]]:
    before = ""
    for row in rows:
        before = str(row.line) if layout.form is PAIR else layout.cell(row.cells, "id").strip() or before
        yield before, row


def _draft(name: str, identifier: str, rows: Sequence[Row], layout: Layout, notes: Notes) -> Draft | None:
    lines: list[Line] = []
    problems, domains, time = [], [], ""
    for row in rows:
        place = f"{name}:{row.line}"
        if fault := row.fault or _fault(row, layout):
            problems.append(Problem(place, fault))
        elif layout.form is not PAIR and not layout.cell(row.cells, "id").strip():
            notes.add(_NO_ID, place)
        else:
            domains += layout.names(row.cells, "domain")
            time = time or began(layout.cell(row.cells, "time").strip())
            lines += _lines(place, row, layout, notes)
    if not lines and not problems:
        return None
    return Draft(f"{name}:{rows[0].line}", identifier, lines, tuple(domains), tuple(problems), time=time)


def _lines(place: str, row: Row, layout: Layout, notes: Notes) -> Iterator[Line]:
    acts = tuple(layout.names(row.cells, "dialogue_act"))
    if layout.form in (PAIR, WIDE):
        said = [(role, layout.cell(row.cells, side)) for role, side in zip(WIDE, layout.form, strict=True)]
        if not any(text.strip() for _, text in said):
            notes.add(_NO_TEXT, place)
        yield from (Line(place, role, text, acts) for role, text in said if text.strip())
        return
    speaker, text = layout.cell(row.cells, "role"), layout.cell(row.cells, "content")
    if not text.strip():
        notes.add(_NO_TEXT, place)
    elif not speaker.strip():
        notes.add(_NO_SPEAKER, place)
    else:
        yield Line(place, speaker, text, acts, layout.cell(row.cells, "name"))


def _fault(row: Row, layout: Layout) -> str:
    if len(row.cells) != layout.width:
        return (
            f"got {len(row.cells)} cell(s), expected {layout.width} as in the first row; "
            "put cells that hold the separator in quotation marks, or add what is missing"
        )
    texts = [(side, layout.cell(row.cells, side)) for side in PAIR if layout.form is PAIR]
    faults = [f"field {side}: got {text!r}, expected text; remove the row" for side, text in texts if not text.strip()]
    return faults[0] if faults else ""
