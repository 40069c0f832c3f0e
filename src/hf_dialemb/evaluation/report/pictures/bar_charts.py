"""Figures as bars: one panel per figure, one bar per model, what a paper prints hatched beside what was measured."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ....corpora.audit.histograms import check_drawing, new_figure
from ....models.errors import InputError
from ...results.learnt import LEARNT, NOTE
from ...results.rows import Place, Row, place_of
from ...results.tables import column_of, measured_of, printed_cells, printed_figure
from .drawing import COLOURS, DARK_GREY, GREY, note, plain_axes, plain_text, save, short_model, shortened, title

MAX_PANELS = 24  # figures that get a panel; of more, the first of each corpus and task come before further ones

_COLUMNS, _PANEL_WIDTH, _NAMES_WIDTH = 3, 3.9, 2.6  # inches
_BAR_HEIGHT, _PANEL_MARGIN, _MARGIN = 0.24, 0.75, 0.9  # inches
_ROOM = 0.24  # of the longest bar, for the printed figure


def bars(rows: Iterable[Row], path: Path | str, heading: str = "") -> None:
    """Draws figures as horizontal bars and writes them as a PNG, whole or not at all.

    A whisker is the 95 % interval where a figure has one, else the standard deviation over repeats. Times are left out.
    """
    check_drawing()
    places: dict[Place, dict[tuple[str, bool], Row]] = {}
    for row in rows:
        if row.metric != "seconds":
            places.setdefault(place_of(row), {})[row.model, row.quoted_from is not None] = row
    if not places:
        raise InputError("rows: got no figure to draw, expected at least one; measure a model")
    shown = [places[place] for place in _chosen(list(places))]
    models = list(dict.fromkeys(model for found in shown for model in found))
    models.sort(key=lambda model: model[1])  # quoted ones below; otherwise the order in which they come
    columns = min(_COLUMNS, len(shown))
    lines = math.ceil(len(shown) / columns)
    height = lines * (_PANEL_MARGIN + _BAR_HEIGHT * len(models)) + _MARGIN
    figure = new_figure(_NAMES_WIDTH + _PANEL_WIDTH * columns, height)
    grid = figure.subplots(lines, columns, squeeze=False, sharey=True).ravel()
    for axes, found in zip(grid, shown, strict=False):
        _draw(axes, [found.get(model) for model in models])
    for axes in grid[len(shown) :]:
        axes.set_visible(False)
    names = [f"{short_model(model, 30)}{' (quoted)' if quoted else ''}" for model, quoted in models]
    grid[0].set_yticks(range(len(models)), names)
    grid[0].set_ylim(len(models) - 0.4, -0.6)
    for axes in grid:
        plain_text(axes.get_yticklabels())
    title(figure, heading)
    note(figure, _note(shown, len(places)))
    save(figure, path)


def _chosen(places: Sequence[Place]) -> list[Place]:
    """Chooses `MAX_PANELS` figures: the first of each corpus and task, then the second of each, and so on."""
    seen: Counter[tuple[str, str, str]] = Counter()
    ranks = {}
    for place in places:
        ranks[place] = seen[place[:3]]
        seen[place[:3]] += 1
    first = set(sorted(places, key=ranks.__getitem__)[:MAX_PANELS])
    return [place for place in places if place in first]


def _draw(axes: Any, rows: Sequence[Row | None]) -> None:  # noqa: ANN401
    found = [row for row in rows if row is not None]
    column = column_of(found[0])
    best = [cell.startswith("**") for cell in printed_cells(column, rows, measured_of(rows), missing="")]
    ends = [end for row in found for end in (row.mean, *_span(row))]
    low, high = min(0.0, *ends), max(0.0, *ends)
    high = high if low < high else 1.0  # all are zero
    room = _ROOM * (high - low)
    for place, row in enumerate(rows):
        if row is None:
            axes.text(0, place, " —", va="center", fontsize=8, color=DARK_GREY)
            continue
        measured = row.quoted_from is None
        colour, edge, hatch = (COLOURS[0], COLOURS[0], None) if measured else ("white", DARK_GREY, "////")
        axes.barh(place, row.mean, height=0.72, color=colour, edgecolor=edge, hatch=hatch, linewidth=0.8)
        start, end = _span(row)
        if start < end:
            axes.errorbar((start + end) / 2, place, xerr=(end - start) / 2, color="black", capsize=2.5, linewidth=1)
        text = printed_figure(column, row.mean) + (LEARNT if row.learnt else "")
        x, shift, side = (min(start, row.mean), -5, "right") if row.mean < 0 else (max(end, row.mean), 5, "left")
        looks = {"ha": side, "va": "center", "fontsize": 8.5, "fontweight": "bold" if best[place] else "normal"}
        axes.annotate(text, (x, place), (shift, 0), textcoords="offset points", **looks)
    axes.set_xlim(low - (room if low < 0 else 0), high + (room if high > 0 else 0))
    axes.axvline(0, color=GREY, linewidth=0.8, zorder=0)
    _finish(axes, found[0], column.lower_is_better)


def _span(row: Row) -> tuple[float, float]:
    """Where a figure's whisker begins and ends; at the figure itself where it has none."""
    if row.interval is not None:
        return row.interval
    return row.mean - (row.std or 0.0), row.mean + (row.std or 0.0)


def _finish(axes: Any, row: Row, lower_is_better: bool) -> None:  # noqa: ANN401
    setting = f" ({row.setting})" if row.setting else ""
    metric = shortened(f"{row.metric}{setting}", 54) + (" ↓" if lower_is_better else "")
    place = shortened(f"{row.corpus}, {row.split}: {row.task}", 54)
    axes.set_title(f"{place}\n{metric}", fontsize=9, loc="left", pad=5, parse_math=False)
    axes.tick_params(axis="x", labelsize=8, length=2)
    axes.tick_params(axis="y", labelsize=8.5, length=0)
    axes.xaxis.get_major_locator().set_params(nbins=5)
    plain_axes(axes, "x", "top", "left", "right")


def _note(shown: Sequence[dict[tuple[str, bool], Row]], count: int) -> str:
    rows = [row for found in shown for row in found.values()]
    parts = ["Bold: the best measured figure."]
    if any(column_of(row).lower_is_better for row in rows):
        parts.append("↓ marks figures of which lower is better.")
    if any(row.quoted_from for row in rows):
        parts.append("Hatched: quoted from a paper, not measured here.")
    if any(row.learnt for row in rows):
        parts.append(NOTE)
    if any(row.interval is not None for row in rows):
        parts.append("Whiskers: 95 % interval, or else the standard deviation over repeats.")
    elif any(row.std for row in rows):
        parts.append("Whiskers: standard deviation over repeats.")
    if len({frozenset(found) for found in shown}) > 1:
        parts.append("—: no figure.")
    if len(shown) < count:
        parts.append(f"Shown: {len(shown)} of {count:,} figures.")
    return " ".join(parts)
