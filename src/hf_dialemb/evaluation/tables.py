"""Markdown tables of results: one row per model, the best figure of each column in bold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .results import Row


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
    _Column("action-similarity", "intra", "", "Within actions", 3),
    _Column("action-similarity", "inter", "", "Between actions ↓", 3, True),
    _Column("action-similarity", "difference", "", "Difference", 3),
    _Column("encoding", "seconds", "", "Encoding (s) ↓", 1, True),
    _Column("training", "seconds", "", "Training (s)", 0, True),
)


def markdown_table(rows: Iterable[Row]) -> str:
    """Renders figures as Markdown, one table per corpus and split.

    Known metrics come in a fixed order and any other after them. A column's best value is bold where at least two
    models have one; equal printed values are all bold. Quoted figures are marked with numbers and their sources listed.

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


def _table(rows: Sequence[Row]) -> str:
    cells: dict[str, dict[_Column, Row]] = {}
    sources = list(dict.fromkeys(row.quoted_from for row in rows if row.quoted_from))
    for row in rows:
        mark = f" [{sources.index(row.quoted_from) + 1}]" if row.quoted_from else ""
        cells.setdefault(row.model.replace("|", "\\|") + mark, {})[_column(row)] = row
    used = {column for figures in cells.values() for column in figures}
    columns = [column for column in _COLUMNS if column in used]
    columns += sorted(used.difference(_COLUMNS))
    best = {
        column: _best(column, [figures[column] for figures in cells.values() if column in figures])
        for column in columns
    }
    lines = [_line(["Model", *(column.header for column in columns)]), _line([":--", *("--:" for _ in columns)])]
    for model, figures in cells.items():
        lines.append(_line([model, *(_cell(column, figures.get(column), best[column]) for column in columns)]))
    notes = [f"[{number}] Quoted from {source}.  " for number, source in enumerate(sources, 1)]
    return "\n".join([*lines, *([""] if notes else []), *notes]) + "\n"


def _column(row: Row) -> _Column:
    for column in _COLUMNS:
        if (row.task, row.metric, row.setting) == (column.task, column.metric, column.setting):
            return column
    setting = f" ({row.setting})" if row.setting else ""
    return _Column(row.task, row.metric, row.setting, f"{row.task} {row.metric}{setting}")


def _best(column: _Column, rows: Sequence[Row]) -> str | None:
    if len(rows) < 2:
        return None
    choose = min if column.lower_is_better else max
    return _figure(column, choose(row.mean for row in rows))


def _cell(column: _Column, row: Row | None, best: str | None) -> str:
    if row is None:
        return ""
    figure = _figure(column, row.mean)
    shown = f"**{figure}**" if figure == best else figure
    return shown if row.std is None else f"{shown} ± {_figure(column, row.std)}"


def _figure(column: _Column, value: float) -> str:
    return f"{value:.{column.decimals}f}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
