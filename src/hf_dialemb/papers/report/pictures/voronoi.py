"""Actions as cells of the sphere, each all that is nearest to the action's centroid (Dialog2Flow, Figure 3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....drawing import COLOURS, DARK_GREY, check_drawing, legend, new_figure, note, save, shortened, style, title
from ....errors import InputError
from ....evaluation.tasks.sampling import fixed_sample
from ....metrics.vectors import unit_vectors
from .projections import METHODS, largest_labels, mean_directions, project_to_sphere, umap_or_pca

MAX_CELLS = 12  # labels that get a cell: the largest; the items of all others are left out
MAX_POINTS = 2000  # items that are drawn; of more, a fixed random sample

_CELL_COLOURS = (*COLOURS, "#882255", "#8c6d46", "#4b2ca3", "#3f9fa0")  # neighbours in one colour would look like one
_PIXELS = 800  # across a hemisphere
_ARC_SHARES = np.linspace(0, 1, 48)
_TINT = 0.72  # how much white is in the colour of a cell
_FEWEST_CELLS = 4  # that divide a sphere

Sphere = NDArray[np.float64]


def spherical_voronoi(
    embeddings: NDArray[Any], labels: Sequence[str], path: Path | str, heading: str = "", method: str | None = None
) -> None:
    """Draws the Voronoi cells of the largest labels on the sphere, from both sides, and writes them as a PNG.

    Vectors ``(N, D)`` come onto the sphere as in `project_to_sphere`, by UMAP where it is installed, else by PCA. The
    centroids of at least four labels must divide it: they are refused if equal, or all in one plane.
    """
    check_drawing()
    counts, largest = Counter(labels), set(largest_labels(labels, MAX_CELLS))
    rows = fixed_sample([row for row, label in enumerate(labels) if label in largest], MAX_POINTS)
    kept = [labels[row] for row in rows]
    names = largest_labels(kept, MAX_CELLS)  # the sample can miss a label that is far smaller than the others
    if len(names) < _FEWEST_CELLS:
        raise InputError(f"labels: got {len(names)} distinct, expected at least 4 to divide a sphere; add labels")
    method = method or umap_or_pca()
    points = project_to_sphere(embeddings[rows], method)
    centroids = mean_directions(points, kept, names)
    edges = _edges(centroids)
    figure = new_figure(12.4, 5.6)
    sides = figure.subplots(1, 2)
    front = _view(points)
    for axes, side, name in zip(sides, (front, front * [[-1], [1], [-1]]), ("one side", "other side"), strict=True):
        _draw_cells(axes, centroids, side)
        for edge in edges:
            across, up, near = (edge @ side.T).T
            axes.plot(np.where(near >= 0, across, np.nan), up, color="white", linewidth=2, zorder=1)
        _draw_points(axes, points, [names.index(label) for label in kept], side)
        _draw_centroids(axes, centroids, side)
        axes.set_title(name, fontsize=10, color=DARK_GREY)
    listed = [f"{number}  {shortened(name, 40)} ({counts[name]:,})" for number, name in enumerate(names, 1)]
    legend(figure, listed, [_style(index) for index in range(len(names))], 7, 9)
    title(figure, heading)
    note(figure, _note(method, len(kept), sum(counts[name] for name in largest), len(names), len(counts)))
    save(figure, path)


def _edges(centroids: Sphere) -> list[Sphere]:
    """Finds the borders of the cells, each as points ``(S, 3)`` along a great circle."""
    from scipy.spatial import QhullError, SphericalVoronoi, geometric_slerp

    try:
        cells = SphericalVoronoi(centroids, radius=1.0, threshold=1e-6)
        cells.sort_vertices_of_regions()
    except (ValueError, QhullError) as error:
        raise InputError(
            "labels: got centroids of which some are equal or all lie in one plane, expected ones that divide the "
            "sphere; leave labels out or choose another model"
        ) from error
    pairs = {tuple(sorted(pair)) for region in cells.regions for pair in pairwise([*region, region[0]])}
    return [geometric_slerp(*unit_vectors(cells.vertices[list(pair)]), _ARC_SHARES) for pair in sorted(pairs)]


def _view(points: Sphere) -> Sphere:
    """Chooses the side that shows most: rows point right, up and to the eye, ``(3, 3)``."""
    towards = points.mean(axis=0)
    length = float(np.linalg.norm(towards))
    towards = towards / length if length > 1e-9 else np.array([1.0, 0.0, 0.0])
    up = np.array([0.0, 0.0, 1.0]) if abs(towards[2]) < 0.9 else np.array([0.0, 1.0, 0.0])
    right = np.cross(up, towards)
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(towards, right), towards])


def _draw_cells(axes: Any, centroids: Sphere, side: Sphere) -> None:  # noqa: ANN401
    from matplotlib.colors import to_rgb

    along = np.linspace(-1, 1, _PIXELS)
    across, up = np.meshgrid(along, along)
    square = across**2 + up**2
    seen = np.stack([across, up, np.sqrt(np.clip(1 - square, 0, None))], axis=-1) @ side  # (P, P, 3)
    nearest = (seen @ centroids.T).argmax(axis=-1)
    tints = np.array([to_rgb(colour) for colour in _CELL_COLOURS[: len(centroids)]])
    colours = _TINT + (1 - _TINT) * tints
    image = np.concatenate([colours[nearest], (square <= 1)[..., None].astype(float)], axis=-1)
    axes.imshow(image, origin="lower", extent=(-1, 1, -1, 1), zorder=0)
    turn = np.linspace(0, 2 * np.pi, 361)
    axes.plot(np.cos(turn), np.sin(turn), color=DARK_GREY, linewidth=1, zorder=3)
    axes.set(xlim=(-1.03, 1.03), ylim=(-1.03, 1.03), aspect="equal")
    axes.axis("off")


def _draw_points(axes: Any, points: Sphere, codes: Sequence[int], side: Sphere) -> None:  # noqa: ANN401
    across, up, near = (points @ side.T).T
    size = float(np.clip(9000 / len(points), 8, 40))
    order = np.random.default_rng(0).permutation(len(points))  # so that no label lies on top only because it comes last
    for code in sorted(set(codes)):
        colour, marker = _style(code)
        chosen = [row for row in order if codes[row] == code and near[row] >= 0]
        looks = {"c": colour, "marker": marker, "edgecolors": "white", "linewidths": 0.3, "zorder": 2}
        axes.scatter(across[chosen], up[chosen], s=size, **looks)


def _draw_centroids(axes: Any, centroids: Sphere, side: Sphere) -> None:  # noqa: ANN401
    for index, (across, up, near) in enumerate(centroids @ side.T):
        if near >= 0:
            box = {"boxstyle": "circle,pad=0.25", "facecolor": "white", "edgecolor": _style(index)[0], "linewidth": 2}
            looks = {"ha": "center", "va": "center", "fontsize": 9, "fontweight": "bold", "bbox": box}
            axes.text(across, up, str(index + 1), zorder=5, **looks)


def _style(index: int) -> tuple[str, str]:
    return _CELL_COLOURS[index], style(index)[1]


def _note(method: str, shown: int, items: int, cells: int, labels: int) -> str:
    text = (
        f"Embeddings on the unit sphere ({METHODS[method]}), seen from both sides. A dot is an utterance in the "
        "colour of its own label; a cell is all that is nearer to that label's centroid (numbered) than to any other."
    )
    if shown < items:
        text += f" Shown: {shown:,} of {items:,} utterances, drawn at random."
    if cells < labels:
        text += f" The {cells} largest of {labels:,} labels."
    return text
