"""Your own tables: CSV, TSV, Excel or a DataFrame; a row is a turn, or what both sides said.

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
from ..parsing import LONGEST_CELL
from .columns import PAIR, WIDE, Layout, lay_out
from .findings import Draft, Finding, Notes, Problem, began, from_drafts, message_of
from .roles import RoleMap
from .transcripts import is_text, text_of

WORKBOOK = ".xlsx"


@dataclass(frozen=True)
class Row:
    """A row of a table: its line in the file, its cells, and its fault."""

    line: int
    cells: Sequence[str] = ()
    fault: str = ""


Rows = Callable[[Notes], Iterator[Row]]


def find_in_table(rows: Rows, name: str, columns: Mapping[str, str], roles: RoleMap, notes: Notes) -> Iterator[Finding]:
    """Read the rows of a table dialogue by dialogue, malformed ones too.

    With the columns of `PAIR`, each row is a dialogue of two turns, user and assistant: entailment pairs, or questions
    and answers. With those of `WIDE`, a row has what the user said and then what the assistant said. Rows without text
    in any cell are passed over. A dialogue has the labels of all its rows; ``a|b`` in a cell is two labels, or two
    dialogue acts. A row of more or fewer cells counts to the dialogue whose id it has, or to the one before it.
    Problems name the table. The rows are read several times.
    """
    first = next(rows(Notes()), None)
    if first is None:
        return
    if first.fault:
        raise InputError(f"{name}:{first.line}: {first.fault}")
    layout = lay_out(f"{name}:{first.line}", first.cells, columns, notes)

    def body(notes: Notes) -> Iterator[Row]:
        return islice(rows(notes), int(layout.has_header), None)

    pairs = layout.form is PAIR
    order = None if pairs else _order(name, body(Notes()), layout, notes)
    yield from from_drafts(partial(_drafts, name, body, layout, order), RoleMap() if pairs else roles, notes)


def rows_of(header: Sequence[str], cells: Iterable[Iterable[object]]) -> list[Row]:
    """Make rows of a table in memory, as a file of it would give them."""
    rows = [Row(1, header), *(Row(line, list(map(_cell_text, row))) for line, row in enumerate(cells, 2))]
    return list(filter(_is_filled, rows))


def file_rows(path: Path, notes: Notes) -> Iterator[Row]:
    """Read the rows of a file, CSV, TSV or Excel, but for blank ones."""
    is_workbook = path.name.lower().endswith(WORKBOOK)
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
    """Read the rows of the first sheet that has any."""
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
        sheets = (sheet for sheet in book.worksheets if sheet.max_row is None or sheet.max_row > 1)
        sheet = next(sheets, book.worksheets[0])
        if len(book.worksheets) > 1:
            notes.add(f"read the sheet {sheet.title!r} alone", str(path))
        for line, cells in enumerate(sheet.iter_rows(values_only=True), 1):
            yield Row(line, list(map(_cell_text, cells)))
    finally:
        book.close()


def _cell_text(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # an id that was typed as 12
    return value.isoformat() if isinstance(value, datetime.datetime) else "" if value is None else str(value)


def _delimiter(head: str, usual: str) -> str:
    """Return the separator of the file's ending, or the one that separates most if that separates nothing."""
    counts = {mark: len(next(csv.reader([head], delimiter=mark), [])) for mark in (usual, ";", "\t", ",", "|")}
    return usual if counts[usual] > 1 else max(counts, key=counts.__getitem__)


def _order(name: str, rows: Iterator[Row], layout: Layout, notes: Notes) -> list[int] | None:
    """Return the order in which rows are to be read; None if they already stand in it."""
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
    for count, change in ((apart, "whose rows stood apart put together"), (swapped, "sorted by time")):
        if count:
            notes.add(f"{counted(count, 'dialogue')} {change}", name)
    return None if order == list(range(len(order))) else order


def _moments(times: Sequence[str]) -> Any:  # noqa: ANN401 - NumPy, which is imported where it is needed
    """Return times in seconds since some moment, (N,) float64; NaN for other texts."""
    import numpy as np
    import pandas

    numbers = pandas.to_numeric(pandas.Series(times), errors="coerce").to_numpy(dtype=np.float64)
    if not np.isnan(numbers).any():
        return numbers
    moments = pandas.to_datetime(pandas.Series(times), errors="coerce", utc=True, format="mixed")
    return np.where(moments.isna(), np.nan, moments.astype("int64") / 1e9)


def _drafts(name: str, body: Rows, layout: Layout, order: list[int] | None, notes: Notes) -> Iterator[Draft]:
    rows = body(notes)
    if order is not None:
        kept = list(rows)
        rows = (kept[place] for place in order)
    for identifier, group in groupby(_with_ids(rows, layout), key=lambda pair: pair[0]):
        draft = _draft(name, identifier, [row for _, row in group], layout, notes)
        if draft.messages or draft.problems:
            yield draft


def _with_ids(rows: Iterable[Row], layout: Layout) -> Iterator[tuple[str, Row]]:
    before = ""
    for row in rows:
        before = str(row.line) if layout.form is PAIR else layout.cell(row.cells, "id").strip() or before
        yield before, row


def _draft(name: str, identifier: str, rows: Sequence[Row], layout: Layout, notes: Notes) -> Draft:
    messages: list[dict[str, Any]] = []
    problems, domains, time = [], [], ""
    for row in rows:
        place = f"{name}:{row.line}"
        if fault := row.fault or _fault(row, layout):
            problems.append(Problem(place, fault))
        elif layout.form is not PAIR and not layout.cell(row.cells, "id").strip():
            notes.add("left out a turn without an id", place)
        else:
            domains += layout.names(row.cells, "domain")
            time = time or began(layout.cell(row.cells, "time").strip())
            messages += _messages(place, row, layout, notes)
    return Draft(
        f"{name}:{rows[0].line}", identifier, messages, tuple(dict.fromkeys(domains)), tuple(problems), time=time
    )


def _messages(place: str, row: Row, layout: Layout, notes: Notes) -> Iterator[dict[str, Any]]:
    acts = layout.names(row.cells, "dialogue_act")
    if layout.form in (PAIR, WIDE):
        sides = [(role, layout.cell(row.cells, side)) for role, side in zip(WIDE, layout.form, strict=True)]
        filled = [(role, text) for role, text in sides if text.strip()]
        yield from (message_of(place, role, text, acts=acts) for role, text in filled or sides[:1])
        return
    speaker, text = layout.cell(row.cells, "role"), layout.cell(row.cells, "content")
    if text.strip() and not speaker.strip():
        notes.add("left out a turn without a speaker", place)
    else:
        yield message_of(place, speaker, text, layout.cell(row.cells, "name"), acts)


def _fault(row: Row, layout: Layout) -> str:
    if len(row.cells) != layout.width:
        return (
            f"got {len(row.cells)} cell(s), expected {layout.width} as in the first row; "
            "put cells that hold the separator in quotation marks, or add what is missing"
        )
    sides = [(side, layout.cell(row.cells, side)) for side in PAIR if layout.form is PAIR]
    faults = [f"field {side}: got {text!r}, expected text; remove the row" for side, text in sides if not text.strip()]
    return faults[0] if faults else ""
