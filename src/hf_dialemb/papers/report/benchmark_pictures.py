"""Which pictures a benchmark's report shows, and what they are drawn from."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...evaluation.maps import scatter, umap_or_pca
from ...evaluation.results.rows import Results
from ...evaluation.run import cached_encoder, training_report
from ...evaluation.tasks.sampling import fixed_sample
from ...evaluation.tasks.task import Problem
from ...runs.folder import RunFolder
from ..suites import load_suite
from .page import Picture
from .path import PathPoint, alignment_uniformity_path, measured_point

logger = logging.getLogger(__name__)

MAPPED = {"dial2vec": "domains", "dialog2flow": "action-similarity"}  # suites with a map, by the labels of a task
PATH_DIALOGUES = 300  # how many dialogues each saved step of a training is measured on for its path


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
    for entry in results:
        suite = str(entry.run["config"]["suite"])
        if suite in MAPPED:
            problem = _problem(suite, data_dir, limit)
            if problem is not None:
                pictures += _of_items(suite, problem, models, folder, cache)
    return [picture for picture in pictures if picture is not None]


def _of_items(
    suite: str, problem: Problem, models: Sequence[str], folder: Path, cache: Path | None
) -> Iterator[Picture | None]:
    vectors: dict[str, NDArray[np.float32]] = {}
    for model in models:
        try:
            collected = cached_encoder(model, cache).encode(problem.dialogues)
        except InputError as error:
            logger.warning("no picture of %s: %s", model, error)
            continue
        if np.isfinite(collected).all():
            vectors[model] = collected
        else:
            logger.warning("no picture of %s: it gives vectors with NaN or infinity", model)
    corpus, path = str(problem.config["corpus"]), folder / f"{suite}-map.png"
    method = umap_or_pca()
    caption = f"Nearby points are alike ({method}); colours are labels."
    yield _drawn(f"{corpus}: a map", caption, path, scatter, vectors, problem.labels, path, None, method)
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
                    vectors_then = cached_encoder(str(folder), None).encode([problem.dialogues[row] for row in rows])
                    moments.append(measured_point(step, vectors_then, labels))
            points[model] = [*moments, measured_point(last, collected[rows], labels)]
        except (InputError, ValueError) as error:
            logger.warning("no path of %s: %s", model, error)
    caption = f"Adjusted alignment and uniformity of {len(labels)} dialogues while models learn; lower is better."
    return _drawn("Alignment and uniformity", caption, path, alignment_uniformity_path, points, path)


def _problem(suite: str, data_dir: str | Path | None, limit: int | None) -> Problem | None:
    try:
        problems, _ = load_suite(suite, data_dir, limit, fine_tune=False, tasks=(MAPPED[suite],))
    except InputError as error:  # other tasks of the suite may have had their corpora
        logger.warning("no pictures of the suite %s: %s", suite, error)
        return None
    return max(problems.values(), key=lambda problem: len(set(problem.labels)), default=None)


def _drawn(title: str, caption: str, path: Path, draw: Callable[..., None], *arguments: object) -> Picture | None:
    try:
        draw(*arguments)
    except InputError as error:
        logger.warning("no picture '%s': %s", title, error)
        return None
    return Picture(title, caption, path)
