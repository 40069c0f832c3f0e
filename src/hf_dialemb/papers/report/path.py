"""How alignment and uniformity change while a model learns (dial2vec, section 5.3.3 and Figure 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from ... import drawing
from ...errors import InputError

MAX_MODELS = 2 * len(drawing.COLOURS)  # paths of one picture: each colour with two shapes


class PathPoint(NamedTuple):
    """A step of training, from 0, with adjusted alignment (equation 8) and uniformity (equation 9)."""

    step: int
    alignment: float
    uniformity: float


def measured_point(step: int, embeddings: NDArray[Any], labels: Sequence[str]) -> PathPoint:
    """Measure the vectors ``(N, D)`` of a checkpoint."""
    from ...metrics.alignment_uniformity import alignment_uniformity

    scores = alignment_uniformity(embeddings, list(labels))
    return PathPoint(step, scores["adjusted_alignment"], scores["uniformity"])


def alignment_uniformity_path(points_by_model: Mapping[str, Sequence[PathPoint]], path: Path | str) -> None:
    """Write a PNG of where models move while they learn; an untrained model is a point."""
    drawing.check_drawing()
    if not points_by_model:
        raise InputError("points_by_model: got no model, expected at least one; pass its points under its name")
    if len(points_by_model) > MAX_MODELS:
        raise InputError(
            f"points_by_model: got {len(points_by_model)} models, expected at most {MAX_MODELS}; draw several pictures"
        )
    figure = drawing.new_figure(8.6, 5.4)
    axes = figure.subplots()
    for index, (model, points) in enumerate(points_by_model.items()):
        _draw_path(axes, model, sorted(points), *drawing.style(index))
    axes.set_xlabel("uniformity  (← lower: more evenly spread)", fontsize=11)
    axes.set_ylabel("adjusted alignment  (↓ lower: alike lie closer)", fontsize=11)
    axes.margins(0.1)
    drawing.plain_axes(axes, "both", "top", "right")
    legend = figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper", frameon=False, fontsize=9)
    drawing.plain_text(legend.get_texts())
    drawing.note(
        figure,
        "Both axes: lower is better, so the best place is at the bottom left. Arrows follow training; the hollow mark "
        "is its start, the large one its end; numbers are training steps. A model with a single mark was not trained.",
    )
    drawing.save(figure, path)


def _draw_path(axes: Any, model: str, points: Sequence[PathPoint], colour: str, marker: str) -> None:  # noqa: ANN401
    places = [(point.uniformity, point.alignment) for point in points]
    axes.plot(*zip(*places, strict=True), marker, color=colour, markersize=4)
    for before, after in pairwise(places):
        arrow = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.4, "shrinkA": 3, "shrinkB": 4}
        axes.annotate("", after, before, arrowprops=arrow)
    if len(points) > 1:
        axes.plot(*places[0], marker, markersize=8, markerfacecolor="white", markeredgecolor=colour, markeredgewidth=2)
        # Learning leads to the bottom left: there is room beyond an end there and before a start at the top right.
        for place, shift, side, edge in ((0, (7, 5), "left", "bottom"), (-1, (-7, -5), "right", "top")):
            box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.5}
            looks = {"ha": side, "va": edge, "fontsize": 8.5, "color": drawing.DARK_GREY, "bbox": box, "zorder": 5}
            axes.annotate(f"{points[place].step:,}", places[place], shift, textcoords="offset points", **looks)
    looks = {"color": colour, "markersize": 9, "markeredgecolor": "white", "zorder": 4}
    axes.plot(*places[-1], marker, label=drawing.short_model(model), **looks)
