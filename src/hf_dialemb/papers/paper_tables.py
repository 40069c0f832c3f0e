"""Figures of ensembles in the layout of the paper's own tables.

They have a row per system, our figures beside those that the paper prints.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..display import table_lines
from ..evaluation.results.rows import Results, Row

_WORDS = "bag-of-words-probe"
_ACTS = "dialogue-act-probe"
_RETRIEVAL = "next-utterance-retrieval"


class _Table(NamedTuple):
    """A table of the paper: whether it has the granularities, the systems of several, or both."""

    printed: str
    title: str
    columns: Sequence[tuple[str, str, str]]  # heading, task and metric
    whole: bool
    granularities: bool


_PROBES = [("BoW F1", _WORDS, "micro_f1"), ("DA F1", _ACTS, "micro_f1")]
_TABLES = [
    _Table(
        "Table 2",
        "Next-utterance retrieval",
        [("MRR", _RETRIEVAL, "mrr"), ("Hits@1", _RETRIEVAL, "hits1")],
        whole=True,
        granularities=True,
    ),
    _Table(
        "Table 4",
        "What each granularity knows (frozen; granularity 1 is the highest, its negatives are the "
        "closest)",
        _PROBES,
        whole=False,
        granularities=True,
    ),
    _Table("Table 5", "What the whole knows (frozen)", _PROBES, whole=True, granularities=False),
]


def ensemble_tables(results: Results) -> str:
    """Render the results of `hf_dialemb.papers.ensemble.ensemble_report.report_ensemble`."""
    config = results.run["config"]
    parts = [_render(table, results.results) for table in _TABLES]
    if "training" in config:
        parts.insert(0, _render_training(config))
    if config.get("comparisons"):
        parts.append(_render_comparisons(config["comparisons"]))
    return "\n".join(part for part in parts if part)


def _render_training(config: Mapping[str, Any]) -> str:
    recipe = config["recipe"]
    baseline = config["training"]["baseline"]
    batch = recipe["per_device_train_batch_size"] * baseline["processes"]
    batch *= recipe.get("gradient_accumulation_steps", 1)
    steps = sorted(run["steps"] for run in config["training"].values())
    counts = dict.fromkeys((steps[0], steps[-1]))  # with patience some runs stop before others
    taken = " to ".join(f"{count:,d}" for count in counts)
    epochs = " to ".join(f"{count * batch / baseline['examples']:.3g}" for count in counts)
    drawn = config["candidates"].get("max_dialogues")
    measured = f"measured among {config['candidates']['num_candidates']}"
    if drawn is not None:
        measured += f" in {drawn:,} drawn dialogues"
    return (
        f"Each run: {baseline['examples']:,} responses of {baseline['dialogues']:,} dialogues, "
        f"{taken} steps of {batch} ({epochs} epochs), the true response among "
        f"{recipe['num_candidates']}; {measured}.\n"
    )


def _render(table: _Table, rows: Sequence[Row]) -> str:
    """Render a table, empty where no system has a figure; the furthest granularity comes first."""
    measured = {}
    printed = {}
    for row in rows:
        place = (row.model, row.task, row.metric)
        if row.quoted_from is None:
            measured[place] = row
        elif f", {table.printed}, row" in row.quoted_from:
            printed[place] = row
    systems = list(dict.fromkeys(model for model, _, _ in measured))
    levels = sorted(name for name in systems if name.startswith("granularity "))
    names = [name for name in systems if name not in levels] if table.whole else []
    if table.granularities:
        names += levels[::-1]
    lines = []
    for name in names:
        places = [(name, task, metric) for _, task, metric in table.columns]
        if any(place in measured for place in places):
            figures = [of.get(place) for place in places for of in (measured, printed)]
            lines.append([name, *map(_figure, figures)])
    if not lines:
        return ""
    headers = [text for header, _, _ in table.columns for text in (header, f"{header}, paper")]
    title = f"**{table.title}** (the paper's {table.printed})"
    return "\n".join([title, "", *table_lines(["System"], headers, lines)]) + "\n"


def _figure(row: Row | None) -> str:
    if row is None:
        return "—"
    return f"{row.mean:.2f}" if row.std is None else f"{row.mean:.2f} ± {row.std:.2f}"


def _render_comparisons(comparisons: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        [
            *(row[key] for key in ("first", "second", "task", "metric")),
            f"{row['difference']:+.2f}",
            f"{row['low']:+.2f} to {row['high']:+.2f}",
            f"{row['p_value']:.4f}",
        ]
        for row in comparisons
    ]
    title = "**More than chance?** (paired bootstrap over the test examples, two-sided)"
    words = ["First", "Second", "Task", "Metric"]
    figures = ["Difference", "95 % interval", "p"]
    return "\n".join([title, "", *table_lines(words, figures, lines)]) + "\n"
