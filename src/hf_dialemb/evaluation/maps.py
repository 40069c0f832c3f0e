"""Maps of vectors in the plane, one panel per model, by t-SNE."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import drawing
from ..errors import InputError
from ..metrics.vectors import unit_vectors
from .tasks.sampling import fixed_sample

FEWEST = 10  # vectors that t-SNE needs; fewer are projected by PCA
MAX_POINTS = 2000  # items of a panel; a larger set is sampled
MAX_COLOURED = 20  # labels with a colour of their own; smaller ones are grey

_OTHERS = (drawing.GREY, drawing.MARKERS[0])
_LAYERS = 8


def scatter(
    embeddings_by_model: Mapping[str, NDArray[Any]], labels: Sequence[str], path: Path | str
) -> None:
    """Write a PNG with a map of the same N items for each model; see `project`."""
    drawing.check_drawing()
    if not embeddings_by_model:
        raise InputError(
            "embeddings_by_model: got no model, expected at least one; pass its vectors under its "
            "name"
        )
    rows = fixed_sample(range(len(labels)), MAX_POINTS)
    counts = Counter(labels)
    largest = sorted(counts, key=lambda label: (-counts[label], label))[:MAX_COLOURED]
    styles = {label: drawing.style(index) for index, label in enumerate(largest)}
    columns = 2 if len(embeddings_by_model) == 4 else min(3, len(embeddings_by_model))
    height = math.ceil(len(embeddings_by_model) / columns)
    figure = drawing.new_figure(4.2 * columns + 2.4, 4.5 * height)
    panels = figure.subplots(height, columns, squeeze=False).ravel()
    for axes, (model, vectors) in zip(panels, embeddings_by_model.items(), strict=False):
        _draw(axes, project(vectors[rows]), [styles.get(labels[row], _OTHERS) for row in rows])
        axes.set_title(
            drawing.short_model(model), pad=8, fontsize=10, fontweight="bold", parse_math=False
        )
    for axes in panels[len(embeddings_by_model) :]:
        axes.set_visible(False)
    others = len(counts) - len(styles)
    names = [
        *(drawing.shortened(name, 28) for name in styles),
        *([f"{others} more"] if others else []),
    ]
    drawing.legend(figure, names, [*styles.values(), _OTHERS][: len(names)], 6, 8)
    text = (
        "Each point is an item in the colour of its label; items that a model finds alike lie "
        "close together "
        f"({method_of(len(rows))})."
    )
    cut = (
        f" Shown: {len(rows):,} of {len(labels):,}, drawn at random."
        if len(rows) < len(labels)
        else ""
    )
    drawing.note(figure, text + cut)
    drawing.save(figure, path)


def method_of(count: int) -> str:
    """Name the method that projects ``count`` vectors."""
    return "PCA" if count < FEWEST else "t-SNE"


def project(embeddings: NDArray[Any]) -> NDArray[np.float64]:
    """Map vectors ``(N, D)`` to the plane, ``(N, 2)``.

    Vectors are L2-normalised first, so that distance means cosine. Equal vectors give equal points.
    """
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    vectors = unit_vectors(embeddings)
    if np.ptp(vectors, axis=0).max() < 1e-12:
        return np.zeros((len(vectors), 2))
    vectors = np.pad(vectors, ((0, 0), (0, max(0, 2 - vectors.shape[1]))))
    tsne = TSNE(2, perplexity=min(30.0, (len(vectors) - 1) / 3), init="pca", random_state=0)
    method = PCA(2, svd_solver="full") if method_of(len(vectors)) == "PCA" else tsne
    with threadpool_limits(
        1
    ):  # threads that wait for each other on a shared machine cost more than they give
        return np.asarray(method.fit_transform(vectors), dtype=np.float64)


def _draw(axes: Any, points: NDArray[np.float64], styles: Sequence[tuple[str, str]]) -> None:
    # A fixed shuffle in layers, so that no label lies on top only because it comes last; grey stays
    # below.
    order = np.random.default_rng(0).permutation(len(points))
    grey = [row for row in order if styles[row] == _OTHERS]
    coloured = np.array_split([row for row in order if styles[row] != _OTHERS], _LAYERS)
    size = float(np.clip(6000 / len(points), 6, 40))
    for depth, layer in enumerate([grey, *(layer.tolist() for layer in coloured)]):
        for marker in drawing.MARKERS:
            rows = [row for row in layer if styles[row][1] == marker]
            colours = [styles[row][0] for row in rows]
            axes.scatter(
                *points[rows].T,
                c=colours,
                marker=marker,
                s=size,
                alpha=0.85,
                linewidths=0,
                zorder=1 + depth,
            )
    axes.set(xticks=[], yticks=[])
    axes.margins(0.04)
    for spine in axes.spines.values():
        spine.set_color(drawing.RULE)
