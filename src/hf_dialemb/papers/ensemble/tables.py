"""Multi-granularity results as the paper's tables: a row per system, our figures beside those that it prints."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...drawing import table_lines
from ...evaluation.results.rows import Results, Row

_RETRIEVAL, _WORDS, _ACTS = "next-utterance-retrieval", "bag-of-words-probe", "dialogue-act-probe"
_TUNED_WORDS, _TUNED_ACTS = "bag-of-words-fine-tuning", "dialogue-act-fine-tuning"


class _Table(NamedTuple):
    title: str
    systems: tuple[str, ...]  # `_WHOLE` and `_LEVELS` stand for those that were measured
    columns: tuple[tuple[str, str, str], ...]  # header, task, metric
    printed: str  # the table of the paper


_WHOLE, _LEVELS, _ALONE = "whole", "granularity ", ("Random Init", "Fine-tuned")
_RANKING, _MRR = "Next-utterance retrieval", ("MRR", _RETRIEVAL, "mrr")
_RECALLS = tuple((name, _RETRIEVAL, name.lower()) for name in ("R10@1", "R2@1"))
_KNOWN = (("BoW F1", _WORDS, "micro_f1"), ("DA F1", _ACTS, "micro_f1"))
_SINGLE = "What each granularity knows (frozen; granularity 1 is the highest, its negatives are the closest)"
_TUNING, _TUNED = "Dialogue acts of the next turn, fine-tuned", (("DA F1", _TUNED_ACTS, "micro_f1"),)
_TABLES = (
    _Table(_RANKING, (_WHOLE, _LEVELS), (_MRR, ("Hits@1", _RETRIEVAL, "hits1")), "Table 2"),
    _Table(_RANKING, (_WHOLE, _LEVELS), (_MRR, *_RECALLS), "Table 3"),
    _Table(_SINGLE, (_LEVELS,), _KNOWN, "Table 4"),
    _Table("What the whole knows (frozen; the last row learns the task)", (_WHOLE, "Fine-tuned"), _KNOWN, "Table 5"),
    _Table(_TUNING, ("Random Init", _WHOLE), _TUNED, "Table 6"),
)


def ensemble_tables(results: Results) -> str:
    """Render the results of `hf_dialemb.papers.ensemble.report.report_ensemble`."""
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
    batch = recipe["per_device_train_batch_size"] * recipe.get("gradient_accumulation_steps", 1) * baseline["processes"]
    steps = sorted(run["steps"] for run in config["training"].values())
    counts = dict.fromkeys((steps[0], steps[-1]))  # with patience some runs stop before others
    taken = " to ".join(f"{count:,d}" for count in counts)
    epochs = " to ".join(f"{count * batch / baseline['examples']:.3g}" for count in counts)
    drawn = config["candidates"].get("max_dialogues")
    lines = [
        f"Each run: {baseline['examples']:,} responses of {baseline['dialogues']:,} dialogues, {taken} "
        f"steps of {batch} ({epochs} epochs), the true response among {recipe['num_candidates']}; measured among "
        f"{config['candidates']['num_candidates']}{'' if drawn is None else f' in {drawn:,} drawn dialogues'}."
    ]
    for task, probe in (("words", _WORDS), ("acts", _ACTS)):
        analyses = [facts for name, facts in config.get("analyses", {}).items() if name.startswith(probe)]
        for facts in analyses[:1]:
            train, test = (f"{facts['contexts'][part]:,}" for part in ("train", "test"))
            lines.append(f"Probes of {task}: {facts['classes']:,} classes, {train} contexts of train, {test} of test.")
    return "\n".join(lines) + "\n"


def _render(table: _Table, rows: Sequence[Row]) -> str:
    quoted = [row for row in rows if row.quoted_from and f", {table.printed}, row" in row.quoted_from]
    own = [row for row in rows if row.quoted_from is None]
    measured, printed = ({(row.model, row.task, row.metric): row for row in part} for part in (own, quoted))
    if table.printed == "Table 5":  # its last row is what fine-tuning reaches
        for system, task, tuned in (("Fine-tuned", _WORDS, _TUNED_WORDS), ("Random Init", _ACTS, _TUNED_ACTS)):
            if (system, tuned, "micro_f1") in measured:
                measured["Fine-tuned", task, "micro_f1"] = measured[system, tuned, "micro_f1"]
    lines = []
    for system in _systems(table, rows):
        places = [(system, task, metric) for _, task, metric in table.columns]
        if any(place in measured for place in places):
            lines.append([system, *(_figure(part.get(place)) for place in places for part in (measured, printed))])
    if not lines:
        return ""
    headers = [text for header, _, _ in table.columns for text in (header, f"{header}, paper")]
    title = f"**{table.title}** (the paper's {table.printed})"
    return "\n".join([title, "", *table_lines(["System"], headers, lines)]) + "\n"


def _systems(table: _Table, rows: Sequence[Row]) -> list[str]:
    """List the systems that a table may have rows of; of granularities the furthest first."""
    known = list(dict.fromkeys(row.model for row in rows if row.quoted_from is None))
    levels = sorted((name for name in known if name.startswith(_LEVELS)), key=lambda name: -int(name.split()[-1]))
    groups = {_LEVELS: levels, _WHOLE: [name for name in known if name not in (*levels, *_ALONE)]}
    return [name for system in table.systems for name in groups.get(system, [system])]


def _figure(row: Row | None) -> str:
    if row is None:
        return "—"
    return f"{row.mean:.2f}" if row.std is None else f"{row.mean:.2f} ± {row.std:.2f}"


def _render_comparisons(comparisons: Sequence[dict[str, Any]]) -> str:
    words = ("First", "Second", "Task", "Metric")
    shown = "{difference:+.2f}|{low:+.2f} to {high:+.2f}|{p_value:.4f}"
    lines = [[*(row[word.lower()] for word in words), *shown.format(**row).split("|")] for row in comparisons]
    title = "**More than chance?** (paired bootstrap over the test examples, two-sided)"
    return "\n".join([title, "", *table_lines(words, ("Difference", "95 % interval", "p"), lines)]) + "\n"
