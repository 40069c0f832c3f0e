"""One HTML file that shows what a benchmark measured: tables to sort and filter, pictures, and how to repeat it."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ...errors import InputError
from ...evaluation.results import tables
from ...evaluation.results.rows import Place, Results, Row, place_of
from ...runs.files import write_text_atomically
from .opening import called, opening

if TYPE_CHECKING:
    from markupsafe import Markup

TITLE = "Benchmark of dialogue embeddings"

_NAMED = ("suite", "paper", "corpus")  # where a run's config says what it is
_Kind = TypeVar("_Kind")


@dataclass(frozen=True)
class Picture:
    """A picture of a report, the file of a PNG; the caption is also read out where it cannot be seen."""

    title: str
    caption: str
    path: Path


class Heading(NamedTuple):
    """The head of a model's column: its name, and whether it is quoted."""

    name: str
    quoted: bool


class Cell(NamedTuple):
    """A figure as it is printed, and the number to sort by; ``source`` counts in the list below the table."""

    value: float
    text: str
    best: bool
    std: str
    interval: str
    repeats: int
    source: int | None
    marks: str


class Line(NamedTuple):
    """A row of a table: a figure of what was measured, and each model's figure or None."""

    row: Row
    lower_is_better: bool
    cells: list[Cell | None]


def write_report(results: Sequence[Results], pictures: Sequence[Picture], path: Path, going_on: str = "") -> None:
    """Write a report: one HTML file that needs no other file and no network: the result, pictures, all figures.

    Tables can be sorted and filtered; the page's address keeps the view, such as
    ``report.html#sort=tfidf&direction=descending&corpus=sgd``. While a run goes on the page says how far it is,
    ``going_on``, and loads itself again.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    sections = [_section(entry, f"Results {number}") for number, entry in enumerate(results, 1)]
    lines = [line for section in sections for line in section["lines"]]
    if not lines:
        raise InputError("results: got no figure, expected at least one; measure a model first")
    headings = [heading for section in sections for heading in section["headings"]]
    loader = FileSystemLoader(Path(__file__).parent)
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"breakable": _breakable, "called": lambda name, kind: called(kind, name)}
    sentence, standings, headlines = opening(results)
    page = environment.get_template("report.html.jinja").render(
        title=TITLE,
        sections=sections,
        corpora=_distinct(line.row.corpus for line in lines),
        tasks=_distinct(line.row.task for line in lines),
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
        "name": next((str(config[field]) for field in _NAMED if config.get(field)), otherwise),
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


def _line(rows: Sequence[Row | None], sources: Sequence[str]) -> Line:
    """Print a figure of each model; which is the best is decided as in the Markdown tables."""
    first = next(row for row in rows if row is not None)
    column = tables.as_papers_print(tables.column_of(first))
    shown = tables.printed_cells(column, rows, tables.measured_of(rows), missing="")
    cells = [
        None
        if row is None
        else Cell(
            value=row.mean,
            text=tables.printed_figure(column, row.mean),
            best=text.startswith("**"),
            std="" if row.std is None else tables.printed_figure(column, row.std),
            interval=", ".join(tables.printed_figure(column, end) for end in row.interval or ()),
            repeats=row.n,
            source=sources.index(row.quoted_from) + 1 if row.quoted_from else None,
            marks=tables.marks_of(row),
        )
        for row, text in zip(rows, shown, strict=True)
    ]
    return Line(first, column.lower_is_better, cells)


def _breakable(name: str) -> Markup:
    """Escape a long name, such as a path, and allow line breaks between its words."""
    from markupsafe import Markup, escape

    return Markup("<wbr>").join(escape(part) for part in re.split(r"(?<=[/_@,-])", name))


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours:,} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _distinct(several: Iterable[_Kind]) -> list[_Kind]:
    return list(dict.fromkeys(several))
