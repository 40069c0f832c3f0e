"""The report of a benchmark in Markdown.

The result in words, who is best at what, all tables, pictures.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from ..drawing import table_lines
from ..errors import InputError
from ..evaluation.results import result_tables
from ..evaluation.results.rows import Results, Row
from ..storage.files import write_text_atomically

TITLE = "Benchmark of dialogue embeddings"
_MEAN_PLACES = (
    "The mean place is over the tasks below, by one figure each, on the corpora that "
    "all models have."
)

_Means = dict[str, float]  # of each model


@dataclass(frozen=True)
class Picture:
    """A picture of a report, the file of a PNG.

    The caption is also read out where it cannot be seen.
    """

    title: str
    caption: str
    path: Path


class Standing(NamedTuple):
    """A model's place; ``rank`` is its mean place over tasks, ``first`` at what it is the best."""

    model: str
    rank: float
    first: list[str]


class Headline(NamedTuple):
    """A task by the figure that stands for it.

    The printed means of models, and the best that papers print.
    """

    task: str
    metric: str
    corpora: list[str]
    figures: dict[str, str]  # of each model, the best in bold
    printed: str


def write_report(
    results: Sequence[Results], pictures: Sequence[Picture], path: Path, going_on: str = ""
) -> None:
    """Write a report: the result, a table for each suite, pictures.

    While a run goes on it says how far, ``going_on``.

    Pictures lie below the report's folder.
    """
    rows = [row for entry in results for row in entry.results]
    if all(row.metric == "seconds" for row in rows):
        raise InputError("results: got no figure, expected at least one; measure a model first")
    sentence, standings, headlines = opening(results)
    parts = [f"# {TITLE}", going_on, sentence]
    if len(standings) > 1:
        ranked = [
            (entry.model, "; ".join(entry.first) or "—", f"{entry.rank:.1f}") for entry in standings
        ]
        parts += [
            "\n".join(table_lines(["Model", "Best at"], ["Mean place"], ranked)),
            _MEAN_PLACES,
        ]
    if headlines:
        models = [entry.model for entry in standings] or list(headlines[0].figures)
        cells = (
            [
                task,
                metric,
                ", ".join(corpora),
                *(figures.get(model, "—") for model in models),
                printed or "—",
            ]
            for task, metric, corpora, figures, printed in headlines
        )
        parts += [
            "\n".join(
                table_lines(["Task", "Figure", "Corpora"], [*models, "Best in papers"], cells)
            )
        ]
        parts += result_tables.mark_notes(rows)
    for number, entry in enumerate(results, 1):
        parts += _section(entry, f"Results {number}")
    for picture in pictures:
        place = picture.path.relative_to(path.parent).as_posix()
        parts += [
            f"## {picture.title}",
            f"![{picture.caption or picture.title}]({place})",
            picture.caption,
        ]
    write_text_atomically(path, "\n\n".join(filter(None, parts)) + "\n")


def _section(results: Results, otherwise: str) -> list[str]:
    config = results.run.get("config") or {}
    name = next(
        (str(config[field]) for field in ("suite", "paper", "corpus") if config.get(field)),
        otherwise,
    )
    missing = [f"- Left out: {place}" for place in config.get("left_out") or ()]
    missing += [
        f"- Not measured: {cell}: {why}" for cell, why in (config.get("not_measured") or {}).items()
    ]
    command = f"    {results.run['command']}" if results.run.get("command") else ""
    return [
        f"## {called('suites', name)}",
        result_tables.paper_table(results.results).rstrip(),
        "\n".join(missing),
        command,
    ]


@cache
def _words() -> dict[str, Any]:
    """Read what tasks, metrics and settings are called, and which figure stands for a task."""
    collected: dict[str, Any] = json.loads(
        Path(__file__).with_name("words.json").read_text(encoding="utf-8")
    )
    return collected


def called(kind: str, name: str) -> str:
    """Return what a task, metric, setting or suite is called.

    What is not in the list is called by its own name.
    """
    return str(_words()[kind].get(name, name.replace("_", " ")))


def opening(results: Sequence[Results]) -> tuple[str, list[Standing], list[Headline]]:
    """Return the result in a sentence, models from first to last, and what they are compared by."""
    rows = [row for entry in results for row in entry.results]
    all_tasks = {task: _means(rows, task) for task in _words()["headlines"]}
    tasks = {task: collected for task, collected in all_tasks.items() if collected[0]}
    models = _distinct(model for means, _ in tasks.values() for model in means)
    of_all = [(means, rows) for means, rows in tasks.values() if len(means) == len(models)]
    standings = [
        Standing(
            model,
            fmean(1 + _above(means, rows, model) for means, rows in of_all),
            [
                called("tasks", task)
                for task, (means, rows) in tasks.items()
                if _is_best(means, rows, model)
            ],
        )
        for model in (models if of_all else ())
    ]
    standings.sort(key=lambda entry: entry.rank)
    return (
        _sentence(standings, len(tasks)),
        standings,
        [_headline(task, *tasks[task]) for task in tasks],
    )


def _means(rows: Iterable[Row], task: str) -> tuple[_Means, list[Row]]:
    """Average each model's figure over the corpora that all models have.

    Also returns the rows of these corpora.
    """
    metric, setting = _words()["headlines"][task]
    of_task = [
        row for row in rows if (row.task, row.metric, row.setting) == (task, metric, setting)
    ]
    collected: dict[tuple[str, str], _Means] = {}
    for row in of_task:
        if row.quoted_from is None:
            collected.setdefault((row.corpus, row.split), {}).update(
                {} if row.learnt else {row.model: row.mean}
            )
    models = _distinct(row.model for row in of_task if row.quoted_from is None)
    shared = {place: means for place, means in collected.items() if len(means) == len(models)}
    means = (
        {model: fmean(item[model] for item in shared.values()) for model in models}
        if shared
        else {}
    )
    return means, [row for row in of_task if (row.corpus, row.split) in shared]


def _headline(task: str, means: _Means, rows: Sequence[Row]) -> Headline:
    column = result_tables.column_of(rows[0])._replace(decimals=result_tables.PRINTED_DECIMALS - 1)
    corpora = _distinct(row.corpus for row in rows)
    mark = result_tables.PART if any(row.part for row in rows) else ""
    figures = {
        model: result_tables.printed_figure(column, mean) + mark for model, mean in means.items()
    }
    figures = {
        model: f"**{text}**" if _is_best(means, rows, model) else text
        for model, text in figures.items()
    }
    quoted: dict[str, list[float]] = {}
    for row in rows:
        if row.quoted_from and not mark:
            quoted.setdefault(row.model, []).append(row.mean)
    whole = {
        model: fmean(values) for model, values in quoted.items() if len(values) == len(corpora)
    }
    top = max(whole, key=lambda model: whole[model], default="")
    printed = f"{top} {result_tables.printed_figure(column, whole[top])}" if top else ""
    metric = f"{called('metrics', rows[0].metric)} {called('settings', rows[0].setting)}".strip()
    return Headline(called("tasks", task), metric, corpora, figures, printed)


def _is_best(means: _Means, rows: Sequence[Row], model: str) -> bool:
    return len(means) > 1 and model in means and not _above(means, rows, model)


def _above(means: _Means, rows: Sequence[Row], model: str) -> int:
    """Count the models whose mean is higher, without those whose figures tie on every corpus."""
    own = [row for row in rows if row.model == model and row.quoted_from is None]
    return sum(
        mean > means[model] and not all(other in row.tied for row in own)
        for other, mean in means.items()
    )


def _sentence(standings: Sequence[Standing], tasks: int) -> str:
    if len(standings) < 2:
        return ""
    leads = max(standings, key=lambda entry: len(entry.first))
    first = standings[0]
    level = [entry.model for entry in standings if entry.rank == first.rank]
    if len(level) > 1:
        return (
            f"{', '.join(level[:-1])} and {level[-1]} come out level: the mean place of each "
            "is "
            f"{first.rank:.1f}."
        )
    count = f"{len(first.first)} of {tasks} tasks" if tasks > 1 else "the one task that is compared"
    spoken = f"{first.model} comes out first: it is best, or level with the best, at {count}."
    return spoken if leads is first else f"{spoken} {leads.model} is so at {len(leads.first)}."


def _distinct(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
