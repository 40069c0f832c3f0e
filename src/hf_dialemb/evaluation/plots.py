"""Pictures: two-dimensional maps of embeddings, one panel per model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..corpora.histograms import check_drawing, new_figure
from ..models.errors import InputError
from ..models.files import write_atomically

MAX_POINTS = 2000
"""Dialogues in a panel; of larger sets a fixed random sample is drawn."""

MAX_COLOURED = 20
"""Labels that get a colour of their own; the smaller ones are grey."""

_GREY = "#c8c8c8"


def scatter(
    embeddings_by_model: Mapping[str, NDArray[Any]],
    labels: Sequence[str],
    path: Path | str,
    captions: Mapping[str, str] | None = None,
) -> None:
    """Draws a map of the dialogues for each model and writes it as a PNG, whole or not at all.

    Args:
        embeddings_by_model: From a model's name to its vectors ``(N, D)``; all of the same N dialogues.
        labels: One label per dialogue, N of them; it decides the colour.
        path: The PNG file.
        captions: From a model's name to a line below its title, such as its scores.

    Raises:
        InputError: There is no model, numbers of vectors and labels differ, or matplotlib is not installed.
    """
    check_drawing()
    if not embeddings_by_model:
        raise InputError("embeddings_by_model: got no model, expected at least one; pass its vectors under its name")
    for model, vectors in embeddings_by_model.items():
        if vectors.ndim != 2 or len(vectors) != len(labels):
            raise InputError(f"model {model}: got vectors {vectors.shape}, expected ({len(labels)}, D): one per label")
    chosen = _sample(len(labels))
    kept = [labels[row] for row in chosen]
    palette = _palette(labels)
    columns = 2 if len(embeddings_by_model) == 4 else min(3, len(embeddings_by_model))
    rows = math.ceil(len(embeddings_by_model) / columns)
    figure = new_figure(4.2 * columns + 2.4, 4.5 * rows)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, (model, vectors) in zip(grid, embeddings_by_model.items(), strict=False):
        _draw(axes, project(vectors[chosen]), [palette.get(label, _GREY) for label in kept])
        _title(axes, model, (captions or {}).get(model, ""))
    for axes in grid[len(embeddings_by_model) :]:
        axes.set_visible(False)
    _legend(figure, palette, others=len(set(labels)) - len(palette))
    write_atomically(Path(path), lambda temporary: figure.savefig(temporary, format="png", dpi=150))


def project(embeddings: NDArray[Any]) -> NDArray[np.float64]:
    """Maps embeddings to the plane, nearby ones close together.

    Args:
        embeddings: Vectors ``(N, D)``; they are L2-normalised first, so that distance means cosine.

    Returns:
        Points ``(N, 2)``: t-SNE with PCA initialisation and a fixed random state; PCA below ten points. All points
        are the same where all vectors point the same way.
    """
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    vectors = np.asarray(embeddings, dtype=np.float64)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = vectors / np.where(norms > 0, norms, 1.0)
    count, width = vectors.shape
    if np.ptp(vectors, axis=0).max() < 1e-12:
        return np.zeros((count, 2))
    vectors = np.pad(vectors, ((0, 0), (0, max(0, 2 - width))))
    if count < 10:
        return np.asarray(PCA(2, random_state=0).fit_transform(vectors), dtype=np.float64)
    perplexity = min(30.0, (count - 1) / 3)
    tsne = TSNE(2, perplexity=perplexity, init="pca", random_state=0)
    with threadpool_limits(1):  # on a shared machine, threads that wait for each other cost far more than they give
        return np.asarray(tsne.fit_transform(vectors), dtype=np.float64)


def _sample(count: int) -> NDArray[np.intp]:
    if count <= MAX_POINTS:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).choice(count, MAX_POINTS, replace=False))


def _palette(labels: Sequence[str]) -> dict[str, tuple[float, ...]]:
    """Gives the largest labels a colour each; equally large ones in alphabetical order."""
    from matplotlib import colormaps
    from matplotlib.colors import to_rgba

    counts = Counter(labels)
    largest = sorted(counts, key=lambda label: (-counts[label], label))[:MAX_COLOURED]
    shades = [tuple(colormaps["tab20"](index)) for index in range(MAX_COLOURED)]
    shades[14:16] = [to_rgba("#222222"), to_rgba("#00695c")]  # its two greys, which here mean all other labels
    colours = [*shades[::2], *shades[1::2]]  # strong colours for the ten largest labels, their pale twins after
    return dict(zip(largest, colours, strict=False))


def _draw(axes: Any, points: NDArray[np.float64], colours: Sequence[Any]) -> None:  # noqa: ANN401
    # A fixed shuffle, so that no label lies on top only because it comes last; but grey stays below.
    order = np.random.default_rng(0).permutation(len(points))
    order = np.array(sorted(order, key=lambda row: colours[row] != _GREY))
    size = float(np.clip(6000 / len(points), 6, 40))
    axes.scatter(*points[order].T, c=[colours[row] for row in order], s=size, alpha=0.85, linewidths=0)
    axes.set(xticks=[], yticks=[])
    axes.margins(0.04)
    for spine in axes.spines.values():
        spine.set_color("#d9d9d9")


def _title(axes: Any, model: str, caption: str) -> None:  # noqa: ANN401
    short = model if len(model) <= 40 else model.rstrip("/").rsplit("/", 1)[-1]
    short = short if len(short) <= 40 else f"…{short[-39:]}"
    axes.set_title(short, fontsize=10, fontweight="bold", pad=20 if caption else 8, parse_math=False)
    if caption:
        axes.text(0.5, 1.02, caption, transform=axes.transAxes, ha="center", va="bottom", fontsize=9, color="#555555")


def _legend(figure: Any, palette: Mapping[str, Any], others: int) -> None:  # noqa: ANN401
    from matplotlib.lines import Line2D

    entries = list(palette.items()) + ([(f"{others} more", _GREY)] if others else [])
    handles = [Line2D([], [], marker="o", linestyle="", markersize=6, color=colour) for _, colour in entries]
    names = [name if len(name) <= 28 else f"{name[:27]}…" for name, _ in entries]
    legend = figure.legend(handles, names, loc="outside right upper", frameon=False, fontsize=8, handletextpad=0.3)
    for text in legend.get_texts():
        text.set_parse_math(False)
