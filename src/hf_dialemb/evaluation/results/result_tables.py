"""Markdown tables of results: one row per model, or one row per figure where there are many.

The best in bold.
"""

import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ...display import table_lines
from .contamination import LEARNT, NOTE
from .rows import Place, Row, part_named, place_of

WIDEST = (
    6  # figures that stand side by side; of more, each has a row of its own and each model a column
)
# what stands before the models where each figure of several corpora has a row
HEAD = ("Corpus", "Figure")
PART = "‡"  # what stands behind a figure of a sample
PART_NOTE = (
    f"{PART} Of a sample of the corpus: not comparable with what papers print, which is of all."
)
PRINTED_DECIMALS = 2  # what the papers print of percentages


class Column(NamedTuple):
    """How a figure of a task, metric and setting is printed.

    What stands above it, and with how many decimals.
    """

    task: str
    metric: str
    setting: str
    header: str
    decimals: int = 1
    lower_is_better: bool = False


_DATA = tomllib.loads(Path(__file__).with_name("columns.toml").read_text(encoding="utf-8"))
_COLUMNS = [Column(*entry) for entry in _DATA["columns"]]
_TIMES = [Column(*entry) for entry in _DATA["times"]]
FLOWS = "flow-extraction"  # the task whose figures also come by domain and for reference graphs
# the figures of flows, of all of which the least is the best
LOWER_OF_FLOWS = tuple(_DATA["flows"])


def markdown_table(rows: Iterable[Row]) -> str:
    """Render figures as Markdown, one table per corpus and split; empty where there is no row.

    Known metrics come in a fixed order, any other after them, and times last. In brackets stands
    the 95 % interval. A figure's best value is bold where at least two models have one, and so is
    what ties with it, or is printed alike. Quoted figures are marked with numbers and their sources
    listed. Figures of dialogues that a model learnt from are marked, and never bold.
    """
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.corpus, row.split), []).append(row)
    return "\n".join(
        f"**{part_named(*part)}**\n\n{_table(group)}" for part, group in groups.items()
    )


def meanings(rows: Sequence[Row]) -> str:
    """Return in a line for each usual task what its figures tell; empty where there is none."""
    results = [
        _DATA["meanings"][task]
        for task in dict.fromkeys(row.task for row in rows)
        if task in _DATA["meanings"]
    ]
    several = len({row.model for row in rows}) > 1
    best = "; in bold: the best, and what differs from it by no more than noise" if several else ""
    spread = "; in brackets: the 95 % interval" if any(row.interval for row in rows) else ""
    return (
        "".join(f"- {line}.\n" for line in [*results, f"↓: lower is better{best}{spread}"])
        if results
        else ""
    )


def as_papers_print(column: Column) -> Column:
    """Print a figure with no fewer decimals than papers print of percentages."""
    return column._replace(decimals=max(column.decimals, PRINTED_DECIMALS))


def paper_table(rows: Iterable[Row]) -> str:
    """Render figures beside those that a paper prints, as one Markdown table.

    A row per figure, a column per model.

    Times are left out. A dash stands where a model has no figure, the best measured value of each
    row is bold, and below the table stands where the quoted figures are printed. What a model
    learnt from is marked.
    """
    rows = [row for row in rows if row.metric != "seconds"]
    models: dict[str, dict[Place, Row]] = {}
    for row in rows:
        models.setdefault(f"paper: {row.model}" if row.quoted_from else row.model, {})[
            place_of(row)
        ] = row
    lines = []
    for place, column in {place_of(row): as_papers_print(column_of(row)) for row in rows}.items():
        figures = [results.get(place) for results in models.values()]
        cells = printed_cells(column, figures, measured_of(figures), missing="—")
        lines.append([part_named(*place[:2]), column.header, *cells])
    sources = dict.fromkeys(
        row.quoted_from.rpartition(", row ")[0] or row.quoted_from
        for row in rows
        if row.quoted_from
    )
    notes = ["", f"The paper's figures are quoted from {'; '.join(sources)}."] if sources else []
    return "\n".join([*table_lines(HEAD, list(models), lines), *mark_notes(rows), *notes]) + "\n"


def is_in_short(row: Row) -> bool:
    """Return whether a figure is of a whole task, not of a domain or reference graph."""
    return row.task != FLOWS or (
        row.setting in ("", "official") and not row.metric.startswith("reference_")
    )


def measured_of(rows: Iterable[Row | None]) -> list[Row]:
    """Leave out what is quoted or missing."""
    return [row for row in rows if row is not None and row.quoted_from is None]


def marks_of(row: Row) -> str:
    """Return the marks behind a figure, which `mark_notes` explains."""
    return LEARNT * row.learnt + PART * row.part


def mark_notes(rows: Iterable[Row]) -> list[str]:
    """Return the lines below a table that say what the marks behind figures mean.

    None where none is marked.
    """
    results = "".join(map(marks_of, rows))
    return [
        line
        for mark, note in ((LEARNT, NOTE), (PART, PART_NOTE))
        if mark in results
        for line in ("", note)
    ]


def _table(rows: Sequence[Row]) -> str:
    models: dict[str, dict[Column, Row]] = {}
    sources = list(dict.fromkeys(row.quoted_from for row in rows if row.quoted_from))
    for row in rows:
        mark = f" [{sources.index(row.quoted_from) + 1}]" if row.quoted_from else ""
        models.setdefault(row.model + mark, {})[column_of(row)] = row
    used = {column: None for figures in models.values() for column in figures}
    others = [column for column in used if column not in _COLUMNS + _TIMES]
    columns = [column for column in (*_COLUMNS, *others, *_TIMES) if column in used]
    results = {column: [figures.get(column) for figures in models.values()] for column in columns}
    cells = [
        printed_cells(column, figures, figures, missing="", intervals=True)
        for column, figures in results.items()
    ]
    if len(columns) <= max(WIDEST, len(models)):
        headers = [column.header for column in columns]
        lines = table_lines(
            ["Model"],
            headers,
            ([model, *item] for model, *item in zip(models, *cells, strict=True)),
        )
    else:
        shown = ([column.header, *item] for column, item in zip(columns, cells, strict=True))
        lines = table_lines(["Figure"], list(models), shown)
    notes = [f"[{number}] Quoted from {source}.  " for number, source in enumerate(sources, 1)]
    return "\n".join([*lines, *mark_notes(rows), *([""] if notes else []), *notes]) + "\n"


def column_of(row: Row) -> Column:
    """Return how a figure is printed."""
    if row.metric in LOWER_OF_FLOWS:
        name, decimals = _DATA["flows"][row.metric]
        header = f"{name} ({row.setting}) ↓" if row.setting else f"{name} ↓"
        return Column(row.task, row.metric, row.setting, header, decimals, True)
    for column in _COLUMNS + _TIMES:
        if (row.task, row.metric, row.setting) == (column.task, column.metric, column.setting):
            return column
    setting = f" ({row.setting})" if row.setting else ""
    return Column(row.task, row.metric, row.setting, f"{row.task} {row.metric}{setting}")


def printed_cells(
    column: Column,
    rows: Sequence[Row | None],
    competing: Sequence[Row | None],
    missing: str,
    intervals: bool = False,
) -> list[str]:
    """Print one figure of each model.

    The best of those that compete is bold where there are two to compare.

    What ties with the best, or is printed alike, is bold too. What a model learnt from does not
    compete.
    """
    compared = [row for row in competing if row is not None and not row.learnt]
    best = (min if column.lower_is_better else max)(
        compared, key=lambda row: row.mean, default=None
    )

    def is_best(row: Row) -> bool:
        if best is None or len(compared) < 2 or row not in compared:
            return False
        return row.model in best.tied or printed_figure(column, row.mean) == printed_figure(
            column, best.mean
        )

    return [
        missing if row is None else printed(row, column, is_best(row), intervals) for row in rows
    ]


def printed(row: Row, column: Column, bold: bool = False, intervals: bool = False) -> str:
    """Print a figure with its marks, and with its deviation or 95 % interval where there is one."""
    figure = printed_figure(column, row.mean)
    shown = (f"**{figure}**" if bold else figure) + marks_of(row)
    if intervals and row.interval is not None:
        return f"{shown} [{', '.join(printed_figure(column, end) for end in row.interval)}]"
    return shown if row.std is None else f"{shown} ± {printed_figure(column, row.std)}"


def printed_figure(column: Column, value: float) -> str:
    """Print a figure without its deviation."""
    return f"{value:.{column.decimals}f}"
