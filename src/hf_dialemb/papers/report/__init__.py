"""One HTML file that shows what a benchmark measured: the result in words, tables to sort and filter, pictures."""

import base64
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple, TypeVar

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from ...errors import InputError
from ...evaluation.results import tables
from ...evaluation.results.rows import Place, Results, Row, place_of
from ...runs.files import write_text_atomically

TITLE = "Benchmark of dialogue embeddings"

_Kind = TypeVar("_Kind")
_Means = dict[str, float]  # of each model


@dataclass(frozen=True)
class Picture:
    """A picture of a report, the file of a PNG; the caption is also read out where it cannot be seen."""

    title: str
    caption: str
    path: Path


class Heading(NamedTuple):
    """The head of a model's column."""

    name: str
    quoted: bool


class Standing(NamedTuple):
    """A model's place; ``rank`` is its mean place over tasks, ``first`` at what it is the best."""

    model: str
    rank: float
    first: list[str]


def write_report(results: Sequence[Results], pictures: Sequence[Picture], path: Path, going_on: str = "") -> None:
    """Write a report: one HTML file that needs no other file and no network: the result, pictures, all figures.

    Tables can be sorted and filtered; the page's address keeps the view, such as
    ``report.html#sort=tfidf&direction=descending&corpus=sgd``. While a run goes on the page says how far it is,
    ``going_on``, and loads itself again.
    """
    sections = [_section(entry, f"Results {number}") for number, entry in enumerate(results, 1)]
    lines = [line for section in sections for line in section["lines"]]
    if not lines:
        raise InputError("results: got no figure, expected at least one; measure a model first")
    headings = [heading for section in sections for heading in section["headings"]]
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"breakable": _breakable, "called": lambda name, kind: called(kind, name)}
    sentence, standings, headlines = opening(results)
    page = environment.get_template("report.html.jinja").render(
        title=TITLE,
        sections=sections,
        corpora=_distinct(line["row"].corpus for line in lines),
        tasks=_distinct(line["row"].task for line in lines),
        models=_distinct(heading.name for heading in headings),
        quoted=any(heading.quoted for heading in headings),
        notes=[note for note in tables.mark_notes(row for entry in results for row in entry.results) if note],
        sentence=sentence,
        standings=standings,
        headlines=headlines,
        going_on=going_on,
        pictures=[(picture, base64.b64encode(picture.path.read_bytes()).decode("ascii")) for picture in pictures],
    )
    write_text_atomically(path, page)


def _section(results: Results, otherwise: str) -> dict[str, Any]:
    run, rows = results.run, [row for row in results.results if row.metric != "seconds"]
    config: Mapping[str, Any] = run.get("config") or {}
    collected: dict[Place, dict[Heading, Row]] = {}
    for row in rows:
        collected.setdefault(place_of(row), {})[Heading(row.model, row.quoted_from is not None)] = row
    distinct = _distinct(heading for figures in collected.values() for heading in figures)
    headings = sorted(distinct, key=lambda entry: entry.quoted)
    sources = _distinct(row.quoted_from for row in rows if row.quoted_from)
    not_measured = [f"{cell}: {why}" for cell, why in (config.get("not_measured") or {}).items()]
    return {
        "name": next((str(config[name]) for name in ("suite", "paper", "corpus") if config.get(name)), otherwise),
        "headings": headings,
        "lines": [_line([figures.get(entry) for entry in headings], sources) for figures in collected.values()],
        "sources": sources,
        "facts": _facts(run, rows),
        "command": str(run.get("command") or ""),
        "config": json.dumps({name: config[name] for name in config if name != "cells"}, indent=1, ensure_ascii=False),
        "left_out": [*(str(entry) for entry in config.get("left_out") or ()), *not_measured],
    }


def _facts(run: Mapping[str, Any], rows: Sequence[Row]) -> list[tuple[str, str]]:
    measured = [row for row in rows if row.quoted_from is None]
    quoted = len(rows) - len(measured)
    facts = [
        ("Models", ", ".join(_distinct(row.model for row in measured))),
        ("Corpora", ", ".join(_distinct(f"{row.corpus} ({row.split})" for row in rows))),
        ("Figures", f"{len(measured):,} measured" + (f", {quoted:,} quoted" if quoted else "")),
        ("Seeds", ", ".join(map(str, run.get("seeds") or ()))),
        ("Hardware", str(run.get("hardware") or "")),
        ("Time", _duration(run["seconds"]) if run.get("seconds") is not None else ""),
        ("Commit", str(run.get("commit") or "")),
        ("Versions", ", ".join(f"{package} {version}" for package, version in (run.get("versions") or {}).items())),
    ]
    return [(name, text) for name, text in facts if text]


def _line(rows: Sequence[Row | None], sources: Sequence[str]) -> dict[str, Any]:
    """Print each model's figure, with the number to sort by; the best is chosen as in Markdown tables."""
    first = next(row for row in rows if row is not None)
    column = tables.as_papers_print(tables.column_of(first))
    shown = tables.printed_cells(column, rows, tables.measured_of(rows), missing="")
    cells = [
        None
        if row is None
        else {
            "value": row.mean,
            "text": tables.printed_figure(column, row.mean),
            "best": text.startswith("**"),
            "std": "" if row.std is None else tables.printed_figure(column, row.std),
            "interval": ", ".join(tables.printed_figure(column, end) for end in row.interval or ()),
            "repeats": row.n,
            "source": sources.index(row.quoted_from) + 1 if row.quoted_from else None,
            "marks": tables.marks_of(row),
        }
        for row, text in zip(rows, shown, strict=True)
    ]
    return {"row": first, "lower_is_better": column.lower_is_better, "cells": cells}


def _breakable(name: str) -> Markup:
    """Escape a long name, such as a path, and allow line breaks between its words."""
    return Markup("<wbr>").join(escape(part) for part in re.split(r"(?<=[/_@,-])", name))


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours:,} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _distinct(several: Iterable[_Kind]) -> list[_Kind]:
    return list(dict.fromkeys(several))


@cache
def _words() -> dict[str, Any]:
    """Read what tasks, metrics and settings are called, and which figure stands for a task."""
    collected: dict[str, Any] = json.loads(Path(__file__).with_name("words.json").read_text(encoding="utf-8"))
    return collected


def called(kind: str, name: str) -> str:
    """Return what a task, metric, setting or suite is called; what is not in the list is called by its own name."""
    return str(_words()[kind].get(name, name.replace("_", " ")))


def opening(results: Sequence[Results]) -> tuple[str, list[Standing], list[dict[str, Any]]]:
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
            [called("tasks", task) for task, (means, rows) in tasks.items() if _is_best(means, rows, model)],
        )
        for model in (models if of_all else ())
    ]
    standings.sort(key=lambda entry: entry.rank)
    order = [entry.model for entry in standings] or models
    return _sentence(standings, len(tasks)), standings, [_headline(task, *tasks[task], order) for task in tasks]


def _means(rows: Iterable[Row], task: str) -> tuple[_Means, list[Row]]:
    """Average each model's figure over the corpora that all models have; also returns the rows of these corpora."""
    metric, setting = _words()["headlines"][task]
    of_task = [row for row in rows if (row.task, row.metric, row.setting) == (task, metric, setting)]
    collected: dict[tuple[str, str], _Means] = {}
    for row in of_task:
        if row.quoted_from is None:
            collected.setdefault((row.corpus, row.split), {}).update({} if row.learnt else {row.model: row.mean})
    models = _distinct(row.model for row in of_task if row.quoted_from is None)
    shared = {place: means for place, means in collected.items() if len(means) == len(models)}
    means = {model: fmean(item[model] for item in shared.values()) for model in models} if shared else {}
    return means, [row for row in of_task if (row.corpus, row.split) in shared]


def _headline(task: str, means: _Means, rows: Sequence[Row], order: Sequence[str]) -> dict[str, Any]:
    """Return what is shown of a task, by the figure that stands for it: bars, and the best that papers print."""
    column = tables.column_of(rows[0])._replace(decimals=tables.PRINTED_DECIMALS - 1)
    corpora = _distinct(row.corpus for row in rows)
    mark = tables.PART if any(row.part for row in rows) else ""
    longest = max(100.0, *means.values()) if max(means.values()) > 1 else 1.0
    bars = []
    for model in (model for model in order if model in means):
        text, share = tables.printed_figure(column, means[model]) + mark, max(0.0, 100 * means[model] / longest)
        bars.append({"model": model, "text": text, "share": share, "best": _is_best(means, rows, model)})
    quoted: dict[str, list[float]] = {}
    for row in rows:
        if row.quoted_from and not mark:
            quoted.setdefault(row.model, []).append(row.mean)
    whole = {model: fmean(values) for model, values in quoted.items() if len(values) == len(corpora)}
    top = max(whole, key=lambda model: whole[model], default="")
    printed = f"{top} {tables.printed_figure(column, whole[top])}" if top else ""
    metric = f"{called('metrics', rows[0].metric)} {called('settings', rows[0].setting)}".strip()
    return {"task": called("tasks", task), "metric": metric, "corpora": corpora, "bars": bars, "printed": printed}


def _is_best(means: _Means, rows: Sequence[Row], model: str) -> bool:
    return len(means) > 1 and model in means and not _above(means, rows, model)


def _above(means: _Means, rows: Sequence[Row], model: str) -> int:
    """Count the models whose mean is higher, without those whose figures tie on every corpus."""
    own = [row for row in rows if row.model == model and row.quoted_from is None]
    return sum(mean > means[model] and not all(other in row.tied for row in own) for other, mean in means.items())


def _sentence(standings: Sequence[Standing], tasks: int) -> str:
    if len(standings) < 2:
        return ""
    leads = max(standings, key=lambda entry: len(entry.first))
    first = standings[0]
    level = [entry.model for entry in standings if entry.rank == first.rank]
    if len(level) > 1:
        return f"{', '.join(level[:-1])} and {level[-1]} come out level: the mean place of each is {first.rank:.1f}."
    count = f"{len(first.first)} of {tasks} tasks" if tasks > 1 else "the one task that is compared"
    spoken = f"{first.model} comes out first: it is best, or level with the best, at {count}."
    return spoken if leads is first else f"{spoken} {leads.model} is so at {len(leads.first)}."
