"""Figures in the layout of the papers' own tables.

Of multi-granularity ensembles, and of Dialog2Flow's Table 6.

The first have a row per system, our figures beside those that the paper prints; the latter a row
for each model, a column for each domain.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from ..drawing import table_lines
from ..evaluation.results.result_tables import (
    FLOWS,
    column_of,
    mark_notes,
    measured_of,
    printed_cells,
)
from ..evaluation.results.rows import Results, Row, part_named

_WORDS, _TUNED_WORDS = "bag-of-words-probe", "bag-of-words-fine-tuning"
_ACTS, _TUNED_ACTS = "dialogue-act-probe", "dialogue-act-fine-tuning"
_WHOLE, _LEVELS, _ALONE = "whole", "granularity ", ("Random Init", "Fine-tuned")


class _Table(NamedTuple):
    title: str
    systems: Sequence[str]
    columns: Sequence[tuple[str, str, str]]
    printed: str


_STATED = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_TABLES = [_Table(**table) for table in _STATED["ensembles"]]
HEADINGS: Mapping[str, Sequence[str]] = _STATED["flows"]
"""What each metric's table of flows is called, in their order, and its column where a table is of
each corpus."""

# whose perplexity is a yardstick for clusters, but no bound
REFERENCE = "after the annotated actions themselves"
_OFFICIAL, _REFERENCE = "official", "reference_"


def ensemble_tables(results: Results) -> str:
    """Render the results of `hf_dialemb.papers.ensemble.ensemble_report.report_ensemble`."""
    left_out = "Table 2" if any(row.corpus == "ubuntu" for row in results.results) else "Table 3"
    parts = [_render(table, results.results) for table in _TABLES if table.printed != left_out]
    config = results.run["config"]
    if "training" in config:
        parts.insert(0, _render_training(config))
    if config.get("comparisons"):
        parts.append(_render_comparisons(config["comparisons"]))
    return "\n".join(part for part in parts if part)


def _render_training(config: Mapping[str, Any]) -> str:
    recipe, baseline = config["recipe"], config["training"]["baseline"]
    batch = (
        recipe["per_device_train_batch_size"]
        * recipe.get("gradient_accumulation_steps", 1)
        * baseline["processes"]
    )
    steps = sorted(run["steps"] for run in config["training"].values())
    counts = dict.fromkeys((steps[0], steps[-1]))  # with patience some runs stop before others
    taken = " to ".join(f"{count:,d}" for count in counts)
    epochs = " to ".join(f"{count * batch / baseline['examples']:.3g}" for count in counts)
    drawn = config["candidates"].get("max_dialogues")
    lines = [
        f"Each run: {baseline['examples']:,} responses of {baseline['dialogues']:,} dialogues, "
        f"{taken} "
        f"steps of {batch} ({epochs} epochs), the true response among {recipe['num_candidates']}; "
        "measured among "
        f"{config['candidates']['num_candidates']}{'' if drawn is None else f' in {drawn:,} drawn dialogues'}."
    ]
    for task, probe in (("words", _WORDS), ("acts", _ACTS)):
        analyses = [
            facts for name, facts in config.get("analyses", {}).items() if name.startswith(probe)
        ]
        for facts in analyses[:1]:
            train, test = (f"{facts['contexts'][part]:,}" for part in ("train", "test"))
            lines.append(
                f"Probes of {task}: {facts['classes']:,} classes, {train} contexts of train, "
                f"{test} of test."
            )
    return "\n".join(lines) + "\n"


def _render(table: _Table, rows: Sequence[Row]) -> str:
    quoted = [
        row for row in rows if row.quoted_from and f", {table.printed}, row" in row.quoted_from
    ]
    own = [row for row in rows if row.quoted_from is None]
    measured, printed = (
        {(row.model, row.task, row.metric): row for row in part} for part in (own, quoted)
    )
    if table.printed == "Table 5":  # its last row is what fine-tuning reaches
        for system, task, tuned in (
            ("Fine-tuned", _WORDS, _TUNED_WORDS),
            ("Random Init", _ACTS, _TUNED_ACTS),
        ):
            if (system, tuned, "micro_f1") in measured:
                measured["Fine-tuned", task, "micro_f1"] = measured[system, tuned, "micro_f1"]
    lines = []
    for system in _systems(table, rows):
        places = [(system, task, metric) for _, task, metric in table.columns]
        if any(place in measured for place in places):
            lines.append(
                [
                    system,
                    *(_figure(part.get(place)) for place in places for part in (measured, printed)),
                ]
            )
    if not lines:
        return ""
    headers = [text for header, _, _ in table.columns for text in (header, f"{header}, paper")]
    title = f"**{table.title}** (the paper's {table.printed})"
    return "\n".join([title, "", *table_lines(["System"], headers, lines)]) + "\n"


def _systems(table: _Table, rows: Sequence[Row]) -> list[str]:
    """List the systems that a table may have rows of; of granularities the furthest first."""
    known = list(dict.fromkeys(row.model for row in rows if row.quoted_from is None))
    levels = sorted(
        (name for name in known if name.startswith(_LEVELS)),
        key=lambda name: -int(name.split()[-1]),
    )
    groups = {_LEVELS: levels, _WHOLE: [name for name in known if name not in (*levels, *_ALONE)]}
    return [name for system in table.systems for name in groups.get(system, [system])]


def _figure(row: Row | None) -> str:
    if row is None:
        return "—"
    return f"{row.mean:.2f}" if row.std is None else f"{row.mean:.2f} ± {row.std:.2f}"


def _render_comparisons(comparisons: Sequence[dict[str, Any]]) -> str:
    words = ("First", "Second", "Task", "Metric")
    shown = "{difference:+.2f}|{low:+.2f} to {high:+.2f}|{p_value:.4f}"
    lines = [
        [*(row[word.lower()] for word in words), *shown.format(**row).split("|")]
        for row in comparisons
    ]
    title = "**More than chance?** (paired bootstrap over the test examples, two-sided)"
    return (
        "\n".join([title, "", *table_lines(words, ("Difference", "95 % interval", "p"), lines)])
        + "\n"
    )


def flow_tables(rows: Iterable[Row]) -> str:
    """Render the figures of flows as Markdown, a table for each metric, corpus and split.

    Other rows are left out.

    Sizes are those that the paper's program counts, as in Table 6.
    """
    return "\n".join(
        f"**{part_named(corpus, split)}: {HEADINGS[metric][0]}**\n\n{_table(of)}"
        for (corpus, split, metric), of in _by_metric(rows)
    )


def flow_means(rows: Iterable[Row]) -> str:
    """Render the means over domains as Markdown.

    A table for each corpus and split, a column for each metric.
    """
    groups: dict[tuple[str, str], list[Row]] = {}
    for (corpus, split, _), of in _by_metric(rows):
        groups.setdefault((corpus, split), []).extend(row for row in of if not _domain(row))
    columns = {metric: short for metric, (_, short) in HEADINGS.items()}
    return "\n".join(
        f"**{part_named(*part)}**\n\n{_table(of, columns)}" for part, of in groups.items()
    )


def _by_metric(rows: Iterable[Row]) -> list[tuple[tuple[str, str, str], list[Row]]]:
    groups: dict[tuple[str, str, str], list[Row]] = {}
    references = {}
    for row in rows:
        if row.task == FLOWS and row.metric.startswith(_REFERENCE):  # the same for every model
            row = replace(
                row, model=REFERENCE, metric=row.metric.removeprefix(_REFERENCE), learnt=False
            )
            references[row.corpus, row.split, row.metric, row.setting] = row
            continue
        sizes = row.metric == "size_difference"
        if (
            row.task == FLOWS
            and row.metric in HEADINGS
            and sizes == row.setting.startswith(_OFFICIAL)
        ):
            groups.setdefault((row.corpus, row.split, row.metric), []).append(row)
    for row in references.values():
        groups.setdefault((row.corpus, row.split, row.metric), []).append(row)
    order = list(HEADINGS)
    return sorted(groups.items(), key=lambda item: (*item[0][:2], order.index(item[0][2])))


def _table(rows: Sequence[Row], metrics: Mapping[str, str] = MappingProxyType({})) -> str:
    """Make a column for each domain and the last for their mean, or for each metric that has a name
    here.
    """
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
    lines = table_lines(
        ["Model"],
        heads,
        ([model, *element] for model, *element in zip(models, *columns, strict=True)),
    )
    return "\n".join([*lines, *mark_notes(rows)]) + "\n"


def _domain(row: Row) -> str:
    return row.setting.removeprefix(_OFFICIAL).removeprefix(", ")
