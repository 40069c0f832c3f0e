"""Which pictures a benchmark's report shows, and what they are drawn from."""

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...encoders.remembering import RememberingEncoder
from ...errors import InputError
from ...evaluation.maps import scatter
from ...evaluation.results.rows import Results
from ...evaluation.tasks.task import Problem
from ..suites import load_suite
from .page import Picture

logger = logging.getLogger(__name__)

MAPPED = {"dial2vec": "domains", "dialog2flow": "action-similarity"}  # suites with a map, by the labels of a task


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

    They are a map of the dialogues of the corpus with the most domains, and a map of utterances with actions. A picture
    that cannot be drawn, for example of a model without vectors, is left out with a warning.
    """
    pictures = []
    for suite in (str(entry.run["config"]["suite"]) for entry in results):
        if suite not in MAPPED:
            continue
        try:
            problems, _ = load_suite(suite, data_dir, limit, fine_tune=False, tasks=(MAPPED[suite],))
            problem = max(problems.values(), key=lambda problem: len(set(problem.labels)))
            pictures.append(draw_map(problem, models, folder / f"{suite}-map.png", cache))
        except InputError as error:  # other tasks of the suite may have had their corpora
            logger.warning("no picture of the suite %s: %s", suite, error)
    return pictures


def draw_map(problem: Problem, models: Sequence[str], path: Path, cache: Path | None) -> Picture:
    """Draw where each model places the items of a problem; models without finite vectors are left out."""
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
    scatter(vectors, problem.labels, path)
    return Picture(f"{problem.config['corpus']}: a map", "Nearby points are alike (t-SNE); colours are labels.", path)
