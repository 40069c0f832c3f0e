"""What a report opens with: who is first, at what, and the figures that say so, in words that a reader knows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from ...evaluation.results.rows import Results, Row
from ...evaluation.results.tables import PART, PRINTED_DECIMALS, column_of, printed_figure

Means = dict[str, float]  # of each model


class Bar(NamedTuple):
    """A model's figure of a task: as printed, and how long its bar is, in percent."""

    model: str
    text: str
    share: float
    best: bool


class Headline(NamedTuple):
    """A task by the one figure that stands for it; ``printed`` is the best that papers print on the same corpora."""

    task: str
    metric: str
    corpora: list[str]
    bars: list[Bar]
    printed: str


class Standing(NamedTuple):
    """A model's place; ``rank`` is its mean place over tasks, ``first`` at what it is the best."""

    model: str
    rank: float
    first: list[str]


@cache
def words() -> dict[str, Any]:
    """Read what tasks, metrics and settings are called, and which figure stands for a task."""
    collected: dict[str, Any] = json.loads(Path(__file__).with_name("words.json").read_text(encoding="utf-8"))
    return collected


def called(kind: str, name: str) -> str:
    """Return what a task, metric, setting or suite is called; what is not in the list is called by its own name."""
    return str(words()[kind].get(name, name.replace("_", " ")))


def opening(results: Sequence[Results]) -> tuple[str, list[Standing], list[Headline]]:
    """Return the result in a sentence, models from first to last, and what they are compared by."""
    rows = [row for entry in results for row in entry.results]
    tasks = {task: _means(rows, task) for task in words()["headlines"]}
    tasks = {task: collected for task, collected in tasks.items() if collected[0]}
    models = list(dict.fromkeys(model for means, _ in tasks.values() for model in means))
    of_all = {task: means for task, (means, _) in tasks.items() if len(means) == len(models)}
    standings = [
        Standing(
            model,
            fmean(1 + sum(other > means[model] for other in means.values()) for means in of_all.values()),
            [called("tasks", task) for task, (means, _) in tasks.items() if _is_best(means, model)],
        )
        for model in (models if of_all else ())
    ]
    standings.sort(key=lambda entry: (entry.rank, models.index(entry.model)))
    order = [entry.model for entry in standings] or models
    return _sentence(standings, len(tasks)), standings, [_headline(task, *tasks[task], order) for task in tasks]


def _means(rows: Iterable[Row], task: str) -> tuple[Means, list[Row]]:
    """Average each model's figure over the corpora that all models have; also returns the rows of these corpora."""
    metric, setting = words()["headlines"][task]
    of_task = [row for row in rows if (row.task, row.metric, row.setting) == (task, metric, setting)]
    collected: dict[tuple[str, str], Means] = {}
    for row in of_task:
        if row.quoted_from is None:
            collected.setdefault((row.corpus, row.split), {}).update({} if row.learnt else {row.model: row.mean})
    models = {row.model: None for row in of_task if row.quoted_from is None}
    shared = {place: means for place, means in collected.items() if len(means) == len(models)}
    means = {model: fmean(item[model] for item in shared.values()) for model in models} if shared else {}
    return means, [row for row in of_task if (row.corpus, row.split) in shared]


def _headline(task: str, means: Means, rows: Sequence[Row], order: Sequence[str]) -> Headline:
    column = column_of(rows[0])._replace(decimals=PRINTED_DECIMALS - 1)
    corpora = list(dict.fromkeys(row.corpus for row in rows))
    mark = PART if any(row.part for row in rows) else ""
    longest = max(100.0, *means.values()) if max(means.values()) > 1 else 1.0
    bars = [
        Bar(
            model,
            printed_figure(column, means[model]) + mark,
            max(0.0, 100 * means[model] / longest),
            _is_best(means, model),
        )
        for model in order
        if model in means
    ]
    quoted: dict[str, list[float]] = {}
    for row in rows:
        if row.quoted_from and not mark:
            quoted.setdefault(row.model, []).append(row.mean)
    whole = {model: fmean(values) for model, values in quoted.items() if len(values) == len(corpora)}
    top = max(whole, key=lambda model: whole[model], default="")
    metric = f"{called('metrics', rows[0].metric)} {called('settings', rows[0].setting)}".strip()
    return Headline(
        called("tasks", task), metric, corpora, bars, f"{top} {printed_figure(column, whole[top])}" if top else ""
    )


def _is_best(means: Means, model: str) -> bool:
    return len(means) > 1 and means.get(model) == max(means.values())


def _sentence(standings: Sequence[Standing], tasks: int) -> str:
    if len(standings) < 2:
        return ""
    leads = max(standings, key=lambda entry: len(entry.first))
    first = standings[0]
    level = [entry.model for entry in standings if entry.rank == first.rank]
    if len(level) > 1:
        return f"{', '.join(level[:-1])} and {level[-1]} come out level: the mean place of each is {first.rank:.1f}."
    count = f"{len(first.first)} of {tasks} tasks" if tasks > 1 else "the one task that is compared"
    spoken = f"{first.model} comes out first: it is best at {count}."
    return spoken if leads is first else f"{spoken} {leads.model} is best at {len(leads.first)}."
