"""Which pictures a benchmark's report shows, and what they are drawn from."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import drawing
from ...encoders.remembering import RememberingEncoder
from ...errors import InputError
from ...evaluation.maps import scatter
from ...evaluation.results.rows import Results
from ...evaluation.run import training_report
from ...evaluation.tasks.sampling import fixed_sample
from ...evaluation.tasks.task import Problem
from ...runs.folder import RunFolder
from ..suites import load_suite
from .page import Picture

logger = logging.getLogger(__name__)

MAPPED = {"dial2vec": "domains", "dialog2flow": "action-similarity"}  # suites with a map, by the labels of a task
PATH_DIALOGUES = 300  # how many dialogues each saved step of a training is measured on for its path
MAX_MODELS = 2 * len(drawing.COLOURS)  # paths of one picture: each colour with two shapes


class PathPoint(NamedTuple):
    """A step of training, from 0, with adjusted alignment (equation 8) and uniformity (equation 9)."""

    step: int
    alignment: float
    uniformity: float


def draw_pictures(
    results: Sequence[Results],
    models: Sequence[str],
    folder: Path,
    data_dir: str | Path | None = None,
    *,
    cache: Path | None = None,
    limit: int | None = None,
) -> list[Picture]:
    """Draw all pictures of a benchmark, as PNGs in a folder; other arguments are those of `evaluate_suite`.

    They are a map of the dialogues of the first corpus with domains, a map of utterances with actions, and the path of
    alignment and uniformity through the saved steps of models. A picture that cannot be drawn, for example of a model
    without vectors, is left out with a warning.
    """
    pictures: list[Picture | None] = []
    for suite in (str(entry.run["config"]["suite"]) for entry in results):
        problem = _problem(suite, data_dir, limit) if suite in MAPPED else None
        if problem is not None:
            pictures += _of_items(suite, problem, models, folder, cache)
    return [picture for picture in pictures if picture is not None]


def _problem(suite: str, data_dir: str | Path | None, limit: int | None) -> Problem | None:
    try:
        problems, _ = load_suite(suite, data_dir, limit, fine_tune=False, tasks=(MAPPED[suite],))
    except InputError as error:  # other tasks of the suite may have had their corpora
        logger.warning("no pictures of the suite %s: %s", suite, error)
        return None
    return max(problems.values(), key=lambda problem: len(set(problem.labels)), default=None)


def _of_items(
    suite: str, problem: Problem, models: Sequence[str], folder: Path, cache: Path | None
) -> Iterator[Picture | None]:
    vectors: dict[str, NDArray[np.float32]] = {}
    for model in models:
        try:
            collected = RememberingEncoder(model, cache).encode(problem.dialogues)
        except InputError as error:
            logger.warning("no picture of %s: %s", model, error)
            continue
        if np.isfinite(collected).all():
            vectors[model] = collected
        else:
            logger.warning("no picture of %s: it gives vectors with NaN or infinity", model)
    corpus, path = str(problem.config["corpus"]), folder / f"{suite}-map.png"
    caption = "Nearby points are alike (t-SNE); colours are labels."
    yield _drawn(f"{corpus}: a map", caption, path, scatter, vectors, problem.labels, path)
    if suite == "dial2vec":
        yield _path(problem, vectors, folder / f"{suite}-path.png")


def _path(problem: Problem, vectors: Mapping[str, NDArray[np.float32]], path: Path) -> Picture | None:
    rows = fixed_sample(range(len(problem.labels)), PATH_DIALOGUES)
    labels = [problem.labels[row] for row in rows]
    points: dict[str, list[PathPoint]] = {}
    for model, collected in vectors.items():
        try:
            saved = {int(path.name.rpartition("-")[2]): path for path in RunFolder(Path(model)).checkpoints()}
            last = int(training_report(model).get("steps", 0)) or max(saved, default=-1) + 1
            moments = []
            for step, folder in saved.items():
                if step < last:
                    vectors_then = RememberingEncoder(str(folder)).encode([problem.dialogues[row] for row in rows])
                    moments.append(measured_point(step, vectors_then, labels))
            points[model] = [*moments, measured_point(last, collected[rows], labels)]
        except (InputError, ValueError) as error:
            logger.warning("no path of %s: %s", model, error)
    caption = f"Adjusted alignment and uniformity of {len(labels)} dialogues while models learn; lower is better."
    return _drawn("Alignment and uniformity", caption, path, alignment_uniformity_path, points, path)


def _drawn(title: str, caption: str, path: Path, draw: Callable[..., None], *arguments: object) -> Picture | None:
    try:
        draw(*arguments)
    except InputError as error:
        logger.warning("no picture '%s': %s", title, error)
        return None
    return Picture(title, caption, path)


def measured_point(step: int, embeddings: NDArray[Any], labels: Sequence[str]) -> PathPoint:
    """Measure the vectors ``(N, D)`` of a checkpoint."""
    from ...metrics.alignment_uniformity import alignment_uniformity

    scores = alignment_uniformity(embeddings, list(labels))
    return PathPoint(step, scores["adjusted_alignment"], scores["uniformity"])


def alignment_uniformity_path(points_by_model: Mapping[str, Sequence[PathPoint]], path: Path | str) -> None:
    """Write a PNG of where models move while they learn (dial2vec, Figure 3); an untrained model is a point."""
    drawing.check_drawing()
    if not 0 < len(points_by_model) <= MAX_MODELS:
        raise InputError(f"points_by_model: got {len(points_by_model)} models, expected 1 to {MAX_MODELS}")
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
