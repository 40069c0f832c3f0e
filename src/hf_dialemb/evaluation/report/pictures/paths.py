"""How alignment and uniformity change while a model learns (dial2vec, section 5.3.3 and Figure 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from ....corpora.audit.histograms import check_drawing, new_figure
from ....models.errors import InputError
from .drawing import COLOURS, DARK_GREY, note, plain_axes, plain_text, save, short_model, style

MAX_MODELS = 2 * len(COLOURS)  # paths of one picture: each colour with two shapes


class PathPoint(NamedTuple):
    """A step of training, from 0; adjusted alignment (equation 8) and uniformity (equation 9), lower is better."""

    step: int
    alignment: float
    uniformity: float


def measured_point(step: int, embeddings: NDArray[Any], labels: Sequence[str]) -> PathPoint:
    """Measures the vectors ``(N, D)`` of a checkpoint; raises as `hf_dialemb.metrics.alignment_uniformity`."""
    from ....metrics.alignment_uniformity.functional import alignment_uniformity

    scores = alignment_uniformity(embeddings, list(labels))
    return PathPoint(step, scores["adjusted_alignment"], scores["uniformity"])


def alignment_uniformity_path(points_by_model: Mapping[str, Sequence[PathPoint]], path: Path | str) -> None:
    """Draws where models move while they learn, as a PNG, whole or not at all; one that learns nothing is a point."""
    check_drawing()
    _check(points_by_model)
    figure = new_figure(8.6, 5.4)
    axes = figure.subplots()
    for index, (model, points) in enumerate(points_by_model.items()):
        _draw(axes, model, sorted(points), *style(index))
    axes.set_xlabel("uniformity  (← lower: more evenly spread)", fontsize=11)
    axes.set_ylabel("adjusted alignment  (↓ lower: alike lie closer)", fontsize=11)
    axes.margins(0.1)
    plain_axes(axes, "both", "top", "right")
    names = figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper", frameon=False, fontsize=9)
    plain_text(names.get_texts())
    note(
        figure,
        "Both axes: lower is better, so the best place is at the bottom left. Arrows follow training; the hollow mark "
        "is its start, the large one its end; numbers are training steps. A model with a single mark was not trained.",
    )
    save(figure, path)


def _check(points_by_model: Mapping[str, Sequence[PathPoint]]) -> None:
    if not points_by_model:
        raise InputError("points_by_model: got no model, expected at least one; pass its points under its name")
    if len(points_by_model) > MAX_MODELS:
        raise InputError(
            f"points_by_model: got {len(points_by_model)} models, expected at most {MAX_MODELS}; draw several pictures"
        )
    for model, points in points_by_model.items():
        steps = [point.step for point in points]
        if not steps or len(set(steps)) < len(steps):
            raise InputError(
                f"model {model}: got the steps {steps}, expected at least one and each once; leave the others out"
            )


def _draw(axes: Any, model: str, points: Sequence[PathPoint], colour: str, marker: str) -> None:  # noqa: ANN401
    places = [(point.uniformity, point.alignment) for point in points]
    axes.plot(*zip(*places, strict=True), marker, color=colour, markersize=4)
    for before, after in pairwise(places):
        arrow = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.4, "shrinkA": 3, "shrinkB": 4}
        axes.annotate("", after, before, arrowprops=arrow)
    if len(points) > 1:
        axes.plot(*places[0], marker, markersize=8, markerfacecolor="white", markeredgecolor=colour, markeredgewidth=2)
        # Learning leads to the bottom left: beyond an end there, and before a start at the top right, there is room.
        for place, shift, side, edge in ((0, (7, 5), "left", "bottom"), (-1, (-7, -5), "right", "top")):
            box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.5}
            looks = {"ha": side, "va": edge, "fontsize": 8.5, "color": DARK_GREY, "bbox": box, "zorder": 5}
            axes.annotate(f"{points[place].step:,}", places[place], shift, textcoords="offset points", **looks)
    looks = {"color": colour, "markersize": 9, "markeredgecolor": "white", "zorder": 4}
    axes.plot(*places[-1], marker, label=short_model(model), **looks)
