"""Figures of dialogue flows in the layout of Dialog2Flow's Table 6: a row for each model, a column for each domain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from .rows import Row, part_named
from .tables import column_of, mark_notes, measured_of, printed_cells, table_lines

TASK = "flow-extraction"
HEADINGS = {
    "size_difference": "Size of graphs: difference to the graphs of annotated actions, in % (Table 6)",
    "v_measure": "V-measure of clusters and actions, in %",
    "adjusted_rand": "Adjusted Rand index of clusters and actions, in %",
    "edge_f1": "F1 of transitions, clusters matched with actions, in %",
    "transition_divergence": "Divergence of transitions, clusters matched with actions, in bits",
    "next_action_perplexity": "Perplexity of the next annotated action after a cluster, on held-out dialogues",
}
"""What each metric's table is called, in their order."""

REFERENCE = "after the annotated actions themselves"  # whose perplexity is a yardstick for clusters, but no bound
_OFFICIAL, _REFERENCE = "official", "reference_"


def is_in_short(row: Row) -> bool:
    """Says whether a figure is of a task as a whole; flows have further ones of each domain, and of references."""
    return row.task != TASK or (row.setting in ("", _OFFICIAL) and not row.metric.startswith(_REFERENCE))


def flow_tables(rows: Iterable[Row]) -> str:
    """Renders the figures of flows as Markdown, a table for each metric, corpus and split; other rows are left out.

    Sizes are those that the paper's program counts, as in Table 6.
    """
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
    found = sorted(groups.items(), key=lambda item: (*item[0][:2], order.index(item[0][2])))
    return "\n".join(
        f"**{part_named(corpus, split)}: {HEADINGS[metric]}**\n\n{_table(of)}" for (corpus, split, metric), of in found
    )


def _table(rows: Sequence[Row]) -> str:
    domains = {_domain(row): column_of(row) for row in rows}
    names = [*(name for name in domains if name), *([""] if "" in domains else [])]
    models: dict[str, dict[str, Row]] = {}
    for row in rows:
        models.setdefault(f"paper: {row.model}" if row.quoted_from else row.model, {})[_domain(row)] = row
    columns = []
    for name in names:
        figures = [found.get(name) for found in models.values()]
        competing = [row for row in measured_of(figures) if row.model != REFERENCE]
        columns.append(printed_cells(domains[name], figures, competing, missing="—"))
    arrow = " ↓" if next(iter(domains.values())).lower_is_better else ""
    heads = [name or f"Mean{arrow}" for name in names]
    lines = table_lines(["Model"], heads, ([model, *each] for model, *each in zip(models, *columns, strict=True)))
    return "\n".join([*lines, *mark_notes(rows)]) + "\n"


def _domain(row: Row) -> str:
    return row.setting.removeprefix(_OFFICIAL).removeprefix(", ")
