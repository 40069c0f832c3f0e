"""Figures of dialogue flows in the layout of Dialog2Flow's Table 6: a row for each model, a column for each domain."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from ..drawing import table_lines
from ..evaluation.results.rows import Row, part_named
from ..evaluation.results.tables import FLOWS as TASK
from ..evaluation.results.tables import column_of, mark_notes, measured_of, printed_cells

HEADINGS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
"""What each metric's table is called, in their order, and its column where there is a table for each corpus."""

REFERENCE = "after the annotated actions themselves"  # whose perplexity is a yardstick for clusters, but no bound
_OFFICIAL, _REFERENCE = "official", "reference_"


def flow_tables(rows: Iterable[Row]) -> str:
    """Render the figures of flows as Markdown, a table for each metric, corpus and split; other rows are left out.

    Sizes are those that the paper's program counts, as in Table 6.
    """
    return "\n".join(
        f"**{part_named(corpus, split)}: {HEADINGS[metric][0]}**\n\n{_table(of)}"
        for (corpus, split, metric), of in _by_metric(rows)
    )


def flow_means(rows: Iterable[Row]) -> str:
    """Render the means over domains as Markdown: a table for each corpus and split, a column for each metric."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for (corpus, split, _), of in _by_metric(rows):
        groups.setdefault((corpus, split), []).extend(row for row in of if not _domain(row))
    columns = {metric: short for metric, (_, short) in HEADINGS.items()}
    return "\n".join(f"**{part_named(*part)}**\n\n{_table(of, columns)}" for part, of in groups.items())


def _by_metric(rows: Iterable[Row]) -> list[tuple[tuple[str, str, str], list[Row]]]:
    groups: dict[tuple[str, str, str], list[Row]] = {}
    references = {}
    for row in rows:
        if row.task == TASK and row.metric.startswith(_REFERENCE):  # the same for every model
            row = replace(row, model=REFERENCE, metric=row.metric.removeprefix(_REFERENCE), learnt=False)
            references[row.corpus, row.split, row.metric, row.setting] = row
            continue
        sizes = row.metric == "size_difference"
        if row.task == TASK and row.metric in HEADINGS and sizes == row.setting.startswith(_OFFICIAL):
            groups.setdefault((row.corpus, row.split, row.metric), []).append(row)
    for row in references.values():
        groups.setdefault((row.corpus, row.split, row.metric), []).append(row)
    order = list(HEADINGS)
    return sorted(groups.items(), key=lambda item: (*item[0][:2], order.index(item[0][2])))


def _table(rows: Sequence[Row], metrics: Mapping[str, str] = MappingProxyType({})) -> str:
    """Make a column for each domain and the last for their mean, or for each metric that has a name here."""
    of_column = {(row.metric if metrics else _domain(row)): column_of(row) for row in rows}
    names = [*(name for name in of_column if name), *([""] if "" in of_column else [])]
    models: dict[str, dict[str, Row]] = {}
    for row in rows:
        model = models.setdefault(f"paper: {row.model}" if row.quoted_from else row.model, {})
        model[row.metric if metrics else _domain(row)] = row
    columns = []
    for name in names:
        figures = [results.get(name) for results in models.values()]
        competing = [row for row in measured_of(figures) if row.model != REFERENCE]
        columns.append(printed_cells(of_column[name], figures, competing, missing="—"))
    arrow = " ↓" if next(iter(of_column.values())).lower_is_better else ""
    heads = [metrics.get(name, name) or f"Mean{arrow}" for name in names]
    lines = table_lines(["Model"], heads, ([model, *element] for model, *element in zip(models, *columns, strict=True)))
    return "\n".join([*lines, *mark_notes(rows)]) + "\n"


def _domain(row: Row) -> str:
    return row.setting.removeprefix(_OFFICIAL).removeprefix(", ")
