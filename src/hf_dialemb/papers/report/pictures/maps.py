"""Where embeddings lie, one panel per model, and how alignment and uniformity change while a model learns.

The latter as in dial2vec, section 5.3.3 and Figure 3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .... import drawing
from ....drawing import check_drawing, new_figure, save, shortened
from ....errors import InputError
from ....evaluation.tasks.sampling import fixed_sample
from .projections import METHODS, largest_labels, project

MAX_POINTS = 2000  # dialogues in a panel; of larger sets a fixed random sample is drawn
MAX_MODELS = 2 * len(drawing.COLOURS)  # paths of one picture: each colour with two shapes
MAX_COLOURED = 20  # labels that get a colour of their own; the smaller ones are grey

_OTHERS = (drawing.GREY, drawing.MARKERS[0])
_LAYERS = 8


def scatter(
    embeddings_by_model: Mapping[str, NDArray[Any]],
    labels: Sequence[str],
    path: Path | str,
    captions: Mapping[str, str] | None = None,
    method: str = "tsne",
) -> None:
    """Draws a map of the same N dialogues for each model and writes it as a PNG, whole or not at all; see `project`."""
    check_drawing()
    if not embeddings_by_model:
        raise InputError("embeddings_by_model: got no model, expected at least one; pass its vectors under its name")
    chosen = fixed_sample(range(len(labels)), MAX_POINTS)
    kept = [labels[row] for row in chosen]
    styles = {label: drawing.style(index) for index, label in enumerate(largest_labels(labels, MAX_COLOURED))}
    columns = 2 if len(embeddings_by_model) == 4 else min(3, len(embeddings_by_model))
    rows = math.ceil(len(embeddings_by_model) / columns)
    figure = new_figure(4.2 * columns + 2.4, 4.5 * rows)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, (model, vectors) in zip(grid, embeddings_by_model.items(), strict=False):
        _draw(axes, project(vectors[chosen], method), [styles.get(label, _OTHERS) for label in kept])
        _title(axes, model, (captions or {}).get(model, ""))
    for axes in grid[len(embeddings_by_model) :]:
        axes.set_visible(False)
    others = len(set(labels)) - len(styles)
    names = [*(shortened(name, 28) for name in styles), *([f"{others} more"] if others else [])]
    drawing.legend(figure, names, [*styles.values(), _OTHERS][: len(names)], 6, 8)
    text = (
        "Each point is an item in the colour of its label; items that a model finds alike lie close together "
        f"({METHODS[method]})."
    )
    cut = f" Shown: {len(kept):,} of {len(labels):,}, drawn at random." if len(kept) < len(labels) else ""
    drawing.note(figure, text + cut)
    save(figure, path)


def _draw(axes: Any, points: NDArray[np.float64], styles: Sequence[tuple[str, str]]) -> None:  # noqa: ANN401
    # A fixed shuffle, in layers, so that no label lies on top only because it comes last; but grey stays below.
    order = np.random.default_rng(0).permutation(len(points))
    grey = [row for row in order if styles[row] == _OTHERS]
    coloured = np.array_split([row for row in order if styles[row] != _OTHERS], _LAYERS)
    layers = [grey, *(layer.tolist() for layer in coloured)]
    size = float(np.clip(6000 / len(points), 6, 40))
    for depth, layer in enumerate(layers):
        for marker in drawing.MARKERS:
            rows = [row for row in layer if styles[row][1] == marker]
            colours = [styles[row][0] for row in rows]
            axes.scatter(*points[rows].T, c=colours, marker=marker, s=size, alpha=0.85, linewidths=0, zorder=1 + depth)
    axes.set(xticks=[], yticks=[])
    axes.margins(0.04)
    for spine in axes.spines.values():
        spine.set_color(drawing.RULE)


def _title(axes: Any, model: str, caption: str) -> None:  # noqa: ANN401
    looks = {"fontsize": 10, "fontweight": "bold", "parse_math": False}
    axes.set_title(drawing.short_model(model), pad=20 if caption else 8, **looks)
    if caption:
        looks = {"ha": "center", "va": "bottom", "fontsize": 9, "color": drawing.DARK_GREY}
        axes.text(0.5, 1.02, caption, transform=axes.transAxes, **looks)


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
    if not points_by_model:
        raise InputError("points_by_model: got no model, expected at least one; pass its points under its name")
    if len(points_by_model) > MAX_MODELS:
        raise InputError(
            f"points_by_model: got {len(points_by_model)} models, expected at most {MAX_MODELS}; draw several pictures"
        )
    figure = new_figure(8.6, 5.4)
    axes = figure.subplots()
    for index, (model, points) in enumerate(points_by_model.items()):
        _draw_path(axes, model, sorted(points), *drawing.style(index))
    axes.set_xlabel("uniformity  (← lower: more evenly spread)", fontsize=11)
    axes.set_ylabel("adjusted alignment  (↓ lower: alike lie closer)", fontsize=11)
    axes.margins(0.1)
    drawing.plain_axes(axes, "both", "top", "right")
    names = figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper", frameon=False, fontsize=9)
    drawing.plain_text(names.get_texts())
    text = (
        "Both axes: lower is better, so the best place is at the bottom left. Arrows follow training; the hollow mark "
        "is its start, the large one its end; numbers are training steps. A model with a single mark was not trained."
    )
    drawing.note(figure, text)
    save(figure, path)


def _draw_path(axes: Any, model: str, points: Sequence[PathPoint], colour: str, marker: str) -> None:  # noqa: ANN401
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
            looks = {"ha": side, "va": edge, "fontsize": 8.5, "color": drawing.DARK_GREY, "bbox": box, "zorder": 5}
            axes.annotate(f"{points[place].step:,}", places[place], shift, textcoords="offset points", **looks)
    looks = {"color": colour, "markersize": 9, "markeredgecolor": "white", "zorder": 4}
    axes.plot(*places[-1], marker, label=drawing.short_model(model), **looks)
