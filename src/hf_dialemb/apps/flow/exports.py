"""Write a flow as tables for spreadsheets."""

import csv
import io
import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ...display import visible
from ...storage.files import write_atomically, write_text_atomically
from .flow import Flow
from .paths import ends

CLUSTERS, ENDS = "clusters.csv", "ends.csv"

_NO_CHARACTERS = str.maketrans("\ufffe\uffff", "\ufffd\ufffd")  # no XML may hold them
_FORMULA = ("=", "+", "-", "@")  # the beginning of a cell that a spreadsheet computes

logger = logging.getLogger(__name__)


def write_tables(flow: Flow, folder: Path) -> None:
    """Write ``clusters.csv``, a row for each cluster, and ``ends.csv``, one for each dialogue."""
    for name, text in ((CLUSTERS, _clusters(flow)), (ENDS, _ends(flow))):
        # Lone surrogates, which no file can hold, are replaced.
        write_text_atomically(folder / name, text.encode("utf-8", "replace").decode("utf-8"))


def line_of(text: str) -> str:
    """Return a text as one line that any file can hold; invisible characters become escapes."""
    return visible(" ".join(text.split())).translate(_NO_CHARACTERS)


def as_cell(text: str) -> str:
    """Return a text as one visible line that no spreadsheet takes for a formula."""
    line = line_of(text)
    return f"'{line}" if line.startswith(_FORMULA) else line


def table_of(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as CSV; see `as_cell` for texts."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([head, *rows])
    return file.getvalue()


def cell_of(value: object) -> object:
    """Return a value as a cell: numbers as they are, texts and lists of them by `as_cell`.

    None becomes an empty cell.
    """
    if isinstance(value, tuple | list):
        value = "; ".join(value)
    if value is None:
        return ""
    return as_cell(value) if isinstance(value, str) else value


def write_workbook(path: Path, sheets: Mapping[str, Sequence[Mapping[str, object]]]) -> None:
    """Write tables as sheets of a workbook, in which no cell is a formula.

    Warn where openpyxl is missing.
    """
    try:
        from openpyxl import Workbook
    except ImportError:
        logger.warning(
            '%s: not written, which needs openpyxl; pip install "hf-dialemb[apps]"', path
        )
        return
    book = Workbook(write_only=True)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        sheet.freeze_panes = "A2"
        sheet.append(list(rows[0]))
        for row in rows:
            sheet.append([cell_of(value) for value in row.values()])
    write_atomically(path, book.save)


def _ends(flow: Flow) -> str:
    end_of = {name: end for end in ends(flow) for name in end.dialogues}
    rows = []
    for name in flow.utterances.dialogues:
        cluster = flow.by_state[end_of[name].state]
        rows.append([as_cell(name), end_of[name].kind, cluster.id, as_cell(cluster.name)])
    return table_of(["dialogue", "end", "state", "name"], rows)


def _clusters(flow: Flow) -> str:
    rows = []
    for cluster in flow.clusters:
        texts = " | ".join(cluster.phrases), " | ".join(cluster.examples)
        role, name, phrases, examples = map(as_cell, (cluster.role, cluster.name, *texts))
        rows.append([cluster.id, role, name, cluster.size, phrases, examples])
    return table_of(["id", "role", "name", "utterances", "phrases", "examples"], rows)
