"""Markdown tables of results: one row per model, or one row per figure where there are many; the best in bold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .results import Row

WIDEST = 12
"""How many figures stand side by side; where there are more, each has a row of its own and each model a column."""

PRINTED_DECIMALS = 2
"""What the papers print of percentages."""


class _Column(NamedTuple):
    task: str
    metric: str
    setting: str
    header: str
    decimals: int = 1
    lower_is_better: bool = False


_COLUMNS = (
    _Column("domain-categorization", "purity", "", "Purity"),
    _Column("domain-categorization", "nmi", "", "NMI"),
    _Column("semantic-relatedness", "spearman", "pairs", "Spearman (pairs)"),
    _Column("semantic-relatedness", "spearman", "per-query", "Spearman (per query)"),
    _Column("dialogue-retrieval", "map", "", "MAP"),
    _Column("dialogue-retrieval", "mrr", "", "MRR"),
    _Column("alignment-uniformity", "adjusted_alignment", "", "Adjusted alignment ↓", 3, True),
    _Column("alignment-uniformity", "uniformity", "", "Uniformity ↓", 3, True),
    _Column("intent-classification", "accuracy", "1-shot", "Accuracy (1-shot)"),
    _Column("intent-classification", "accuracy", "5-shot", "Accuracy (5-shot)"),
    _Column("action-similarity", "f1", "1-shot", "F1 (1-shot)"),
    _Column("action-similarity", "f1", "5-shot", "F1 (5-shot)"),
    _Column("action-similarity", "accuracy", "1-shot", "Accuracy (1-shot)"),
    _Column("action-similarity", "accuracy", "5-shot", "Accuracy (5-shot)"),
    _Column("action-similarity", "ndcg10", "", "nDCG@10"),
    _Column("action-similarity", "ndcg10", "official", "nDCG@10 (official)"),
    _Column("action-similarity", "intra", "", "Within actions", 3),
    _Column("action-similarity", "inter", "", "Between actions ↓", 3, True),
    _Column("action-similarity", "difference", "", "Difference", 3),
)
_TIMES = (
    _Column("encoding", "seconds", "", "Encoding (s) ↓", 1, True),
    _Column("training", "seconds", "", "Training (s)", 0, True),
)


def markdown_table(rows: Iterable[Row]) -> str:
    """Renders figures as Markdown, one table per corpus and split.

    Known metrics come in a fixed order, any other after them, and times last. A figure's best value is bold where at
    least two models have one; equal printed values are all bold. Quoted figures are marked with numbers and their
    sources listed.

    Args:
        rows: The figures, such as ``results.results`` or what `merge_results` returns.

    Returns:
        Markdown that ends in a line break; empty when there is no row.
    """
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.corpus, row.split), []).append(row)
    parts = [f"**{corpus}, {split}**\n\n{_table(group)}" for (corpus, split), group in groups.items()]
    return "\n".join(parts)


def paper_table(rows: Iterable[Row]) -> str:
    """Renders figures beside those that a paper prints, as one table: a row per figure, a column per model.

    Args:
        rows: Measured figures, and quoted ones for the same corpora, tasks, metrics and settings; a quoted model's
            column is called after the paper. Times are left out.

    Returns:
        Markdown that ends in a line break: the table, with a dash where a model has no figure, the best measured value
        of each row in bold, and below it where the quoted figures stand.
    """
    models: dict[str, dict[tuple[str, str, str, str, str], Row]] = {}
    places: dict[tuple[str, str, str, str, str], _Column] = {}
    sources: dict[str, None] = {}
    for row in rows:
        if row.metric == "seconds":
            continue
        place = (row.corpus, row.split, row.task, row.metric, row.setting)
        column = _column(row)
        places[place] = column._replace(decimals=max(column.decimals, PRINTED_DECIMALS))
        name = f"paper: {row.model}" if row.quoted_from else row.model
        models.setdefault(name, {})[place] = row
        if row.quoted_from:
            sources[row.quoted_from.rpartition(", row ")[0] or row.quoted_from] = None
    head = ("Corpus", "Task", "Metric", "Setting")
    lines = [_line([*head, *map(_escaped, models)]), _line([*(":--" for _ in head), *("--:" for _ in models)])]
    for place, column in places.items():
        figures = [found.get(place) for found in models.values()]
        measured = [row for row in figures if row is not None and row.quoted_from is None]
        corpus, split, *words = place
        lines.append(_line([f"{corpus}, {split}", *words, *_cells(column, figures, measured, missing="—")]))
    notes = ["", f"The paper's figures are quoted from {'; '.join(sources)}."] if sources else []
    return "\n".join([*lines, *notes]) + "\n"


def _table(rows: Sequence[Row]) -> str:
    models: dict[str, dict[_Column, Row]] = {}
    sources = list(dict.fromkeys(row.quoted_from for row in rows if row.quoted_from))
    for row in rows:
        mark = f" [{sources.index(row.quoted_from) + 1}]" if row.quoted_from else ""
        models.setdefault(_escaped(row.model) + mark, {})[_column(row)] = row
    used = {column: None for figures in models.values() for column in figures}
    others = [column for column in used if column not in _COLUMNS + _TIMES]
    columns = [column for column in (*_COLUMNS, *others, *_TIMES) if column in used]
    found = {column: [figures.get(column) for figures in models.values()] for column in columns}
    cells = [_cells(column, figures, figures, missing="") for column, figures in found.items()]
    if len(columns) <= WIDEST:
        lines = [_line(["Model", *(column.header for column in columns)]), _line([":--", *("--:" for _ in columns)])]
        lines += [_line([model, *each]) for model, each in zip(models, zip(*cells, strict=True), strict=True)]
    else:
        lines = [_line(["Figure", *models]), _line([":--", *("--:" for _ in models)])]
        lines += [_line([column.header, *each]) for column, each in zip(columns, cells, strict=True)]
    notes = [f"[{number}] Quoted from {source}.  " for number, source in enumerate(sources, 1)]
    return "\n".join([*lines, *([""] if notes else []), *notes]) + "\n"


def _column(row: Row) -> _Column:
    for column in _COLUMNS + _TIMES:
        if (row.task, row.metric, row.setting) == (column.task, column.metric, column.setting):
            return column
    setting = f" ({row.setting})" if row.setting else ""
    return _Column(row.task, row.metric, row.setting, f"{row.task} {row.metric}{setting}")


def _cells(column: _Column, rows: Sequence[Row | None], competing: Sequence[Row | None], missing: str) -> list[str]:
    """Prints one figure of each model; the best of those that compete is bold where there are two to compare."""
    compared = [row for row in competing if row is not None]
    choose = min if column.lower_is_better else max
    best = _figure(column, choose(row.mean for row in compared)) if len(compared) > 1 else None
    cells = []
    for row in rows:
        if row is None:
            cells.append(missing)
            continue
        figure = _figure(column, row.mean)
        shown = f"**{figure}**" if figure == best and row in compared else figure
        cells.append(shown if row.std is None else f"{shown} ± {_figure(column, row.std)}")
    return cells


def _figure(column: _Column, value: float) -> str:
    return f"{value:.{column.decimals}f}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(name: str) -> str:
    return name.replace("|", "\\|")
