"""Pictures: two-dimensional maps of embeddings, one panel per model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....corpora.audit.histograms import check_drawing, new_figure
from ....models.errors import InputError
from .drawing import DARK_GREY, GREY, MARKERS, RULE, legend, note, sampled, save, short_model, shortened, style
from .projections import METHODS, largest_labels, project

MAX_POINTS = 2000  # dialogues in a panel; of larger sets a fixed random sample is drawn
MAX_COLOURED = 20  # labels that get a colour of their own; the smaller ones are grey

_OTHERS = (GREY, MARKERS[0])
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
    for model, vectors in embeddings_by_model.items():
        if vectors.ndim != 2 or len(vectors) != len(labels):
            raise InputError(f"model {model}: got vectors {vectors.shape}, expected ({len(labels)}, D): one per label")
    chosen = sampled(range(len(labels)), MAX_POINTS)
    kept = [labels[row] for row in chosen]
    styles = {label: style(index) for index, label in enumerate(largest_labels(labels, MAX_COLOURED))}
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
    legend(figure, names, [*styles.values(), _OTHERS][: len(names)], 6, 8)
    text = (
        "Each point is an item in the colour of its label; items that a model finds alike lie close together "
        f"({METHODS[method]})."
    )
    cut = f" Shown: {len(kept):,} of {len(labels):,}, drawn at random." if len(kept) < len(labels) else ""
    note(figure, text + cut)
    save(figure, path)


def _draw(axes: Any, points: NDArray[np.float64], styles: Sequence[tuple[str, str]]) -> None:  # noqa: ANN401
    # A fixed shuffle, in layers, so that no label lies on top only because it comes last; but grey stays below.
    order = np.random.default_rng(0).permutation(len(points))
    grey = [row for row in order if styles[row] == _OTHERS]
    coloured = np.array_split([row for row in order if styles[row] != _OTHERS], _LAYERS)
    layers = [grey, *(layer.tolist() for layer in coloured)]
    size = float(np.clip(6000 / len(points), 6, 40))
    for depth, layer in enumerate(layers):
        for marker in MARKERS:
            rows = [row for row in layer if styles[row][1] == marker]
            colours = [styles[row][0] for row in rows]
            axes.scatter(*points[rows].T, c=colours, marker=marker, s=size, alpha=0.85, linewidths=0, zorder=1 + depth)
    axes.set(xticks=[], yticks=[])
    axes.margins(0.04)
    for spine in axes.spines.values():
        spine.set_color(RULE)


def _title(axes: Any, model: str, caption: str) -> None:  # noqa: ANN401
    axes.set_title(short_model(model), fontsize=10, fontweight="bold", pad=20 if caption else 8, parse_math=False)
    if caption:
        axes.text(0.5, 1.02, caption, transform=axes.transAxes, ha="center", va="bottom", fontsize=9, color=DARK_GREY)
