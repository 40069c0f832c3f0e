"""Measuring models on suites, beside the papers' own figures, with one report.

What was stopped goes on.
"""

import json
import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from ..data.source import MissingFilesError
from ..encoders.embedding_cache import RememberingEncoder
from ..encoders.specs import find_encoder, has_weights
from ..errors import InputError
from ..evaluation.evaluating import (
    check_request,
    command_line,
    measure,
    seconds_of,
    write_with_page,
)
from ..evaluation.maps import scatter
from ..evaluation.results.contamination import marked
from ..evaluation.results.result_tables import paper_table
from ..evaluation.results.rows import Results, Row, describe_run, rows_of, with_ties
from ..evaluation.tasks.task import Problem, get_task
from ..hashing import json_key
from ..storage.files import write_json_atomically
from .benchmark_report import Picture, write_report
from .quoted import quoted_beside, quoted_figures
from .suites import ALL, SUITES, Place, get_suite, load_suite

logger = logging.getLogger(__name__)

REPORT = "report.md"
# suites with a map, by the labels of a task
MAPPED = {"dial2vec": "domains", "dialog2flow": "action-similarity"}


def evaluate_suite(
    suite: str,
    models: Sequence[str],
    data_dir: str | Path | None = None,
    *,
    seeds: Sequence[int] = range(10),
    output: Path | None = None,
    cache: Path | None = None,
    limit: int | None = None,
    fine_tune: bool = False,
    so_far: Callable[[Results], None] = lambda results: None,
) -> Results:
    """Measure models on a suite, a key of `SUITES`.

    Returns their figures, and those that the paper prints.

    The request is checked, and all corpora are read, before the first model is loaded. The results
    JSON and its table beside it, ``.md``, are written anew after each task.
    ``run["config"]["left_out"]`` names what is not at hand, and ``"not_measured"`` why a model has
    no figures for a task.

    ``seeds`` are repeats of everything that draws at random. In ``cache`` vectors are kept, so that
    no text is encoded twice by a model whatever the suite; and the figures of each task, which are
    read again for the same weights, data, choices and version of this package. Of more items of a
    problem than the limit (by default what the suite says) a fixed random sample is taken. With
    ``fine_tune`` models that have weights are fine-tuned too, where the paper does. ``so_far`` is
    called after each task with what is measured.

    An InputError says that the suite or a model is not found, no corpus is at hand, or an output
    cannot be written.
    """
    started = time.perf_counter()
    check_request(models, seeds, output, limit=limit)
    problems, left_out = load_suite(suite, data_dir, limit, fine_tune)
    config: dict[str, Any] = {
        "suite": suite,
        "models": list(models),
        "weights": {model: find_encoder(model).fingerprint for model in models},
        "problems": [
            {"task": task, **problem.config} for (_, _, task), problem in problems.items()
        ],
        "left_out": left_out,
        "cells": [],
        "not_measured": {},
    }
    figures: dict[tuple[str, str, str], list[Row]] = {}  # of a model on a split of a corpus
    seconds: dict[tuple[str, str, str], float] = {}
    results = Results({}, ())
    for (*part, task), measured in _measured(models, problems, config["weights"], seeds, cache):
        place = (part[0], part[1], part[2])
        if isinstance(measured, InputError):
            config["not_measured"][", ".join((*place, task))] = str(measured)
        else:
            config["cells"].append([*place, task])
            figures.setdefault(place, []).extend(Row(**values) for values in measured["figures"])
            # Tasks of a corpus share texts, whose encoding counts once.
            seconds[place] = max(measured["encoding"], seconds.get(place, 0.0))
            started -= measured.get("seconds", 0.0)
        timed = {
            place: rows_of(*place, seconds_of("encoding", spent, 3))
            for place, spent in seconds.items()
        }
        rows = with_ties(
            marked(row for place, of_place in figures.items() for row in (*of_place, *timed[place]))
        )
        run = describe_run(command_line(), config, seeds, started)
        results = Results(run, (*rows, *quoted_beside(rows, [suite])))
        if output is not None:
            write_with_page(results, output)
        so_far(results)
    return results


def _measured(
    models: Sequence[str],
    problems: Mapping[Place, Problem],
    weights: Mapping[str, str],
    seeds: Sequence[int],
    cache: Path | None,
) -> Iterator[tuple[tuple[str, str, str, str], dict[str, Any] | InputError]]:
    """Yield the figures of each model and problem, measured now or before, or the reason why there
    is none.
    """
    chosen = [(model, *place, problem) for model in models for place, problem in problems.items()]
    encoder: RememberingEncoder | None = None
    last, before = ("", ""), 0.0
    with tqdm(chosen, unit="cell", file=sys.stderr) as progress:
        for model, corpus, split, task, problem in progress:
            progress.set_description(f"{Path(model).name}: {corpus}, {task}")
            if get_task(task).fine_tunes and not has_weights(model):
                continue
            cell, started = (model, corpus, split, task), time.perf_counter()
            made_of = [
                model,
                weights[model],
                task,
                problem.config,
                list(seeds),
                version("hf-dialemb"),
            ]
            file = None if cache is None else cache / "figures" / f"{json_key(made_of)[:24]}.json"
            if file is not None and file.is_file():
                yield cell, json.loads(file.read_text(encoding="utf-8"))
                continue
            if encoder is None or last[0] != model:
                encoder = RememberingEncoder(model, cache)
            if last != (
                model,
                corpus,
            ):  # the next corpus has other texts; those of the last one are not needed again
                encoder.forget()
                last, before = (model, corpus), encoder.seconds
            try:
                rows = rows_of(
                    model, corpus, split, measure(encoder, problem, seeds), part=problem.is_part
                )
            except InputError as error:  # one such cell shall not cost the others
                yield cell, error
                continue
            record = {"figures": list(map(asdict, rows)), "encoding": encoder.seconds - before}
            if file is not None:
                write_json_atomically(file, {**record, "seconds": time.perf_counter() - started})
            yield cell, record


def run_benchmark(
    suites: Sequence[str],
    models: Sequence[str],
    output: Path,
    data_dir: str | Path | None = None,
    *,
    seeds: Sequence[int] = range(10),
    limit: int | None = None,
    fine_tune: bool = False,
    report: Callable[[str], None] = lambda line: None,
) -> list[Results]:
    """Measure models on suites, or ``all``, and write one report.

    Called again, it goes on where it was stopped.

    It takes and raises what `evaluate_suite` does, and returns the results of the suites that have
    a corpus at hand. The folder gets ``SUITE.json`` with the figures, ``SUITE.md`` with the table,
    ``embeddings/`` with the vectors and the figures that later calls read, ``pictures/``, and
    ``report.md``, which is there from the first figure on. ``report`` takes lines that tell how it
    goes.
    """
    names = list(SUITES) if ALL in suites else list(dict.fromkeys(suites))
    for name in names:
        get_suite(name)
    check_request(models, seeds, output / f"{names[0]}.json", limit=limit)
    cache = output / "embeddings"
    collected: list[Results] = []
    missing: list[MissingFilesError] = []

    def so_far(results: Results) -> None:
        config = results.run["config"]
        done = len(config["cells"]) + len(config["not_measured"])
        goes = (
            f"Suite {names.index(config['suite']) + 1} of {len(names)}, {config['suite']}: "
            f"{done} of "
        )
        goes += f"{len(models) * len(config['problems'])} measurements are done."
        if any(row.metric != "seconds" for entry in (*collected, results) for row in entry.results):
            write_report([*collected, results], [], output / REPORT, goes)

    more: dict[str, Any] = {
        "seeds": seeds,
        "cache": cache,
        "limit": limit,
        "fine_tune": fine_tune,
        "so_far": so_far,
    }
    for name in names:
        report(f"Suite {name}")
        try:
            collected.append(
                evaluate_suite(name, models, data_dir, output=output / f"{name}.json", **more)
            )
        except MissingFilesError as error:
            missing.append(error)
            report(str(error))
            continue
        config = collected[-1].run["config"]
        report(paper_table(collected[-1].results))
        not_measured = [
            f"Not measured: {cell}: {reason}" for cell, reason in config["not_measured"].items()
        ]
        left_out = [f"Left out: {place}" for place in config["left_out"]]
        for line in (*quoted_figures(name).notes, *left_out, *not_measured):
            report(line)
    if not collected:
        raise InputError(str(missing[0]))
    report("Drawing")
    pictures = draw_pictures(
        collected, models, output / "pictures", data_dir, cache=cache, limit=limit
    )
    write_report(collected, pictures, output / REPORT)
    report(f"Wrote {output / REPORT} and, of each suite, .json and .md beside it")
    return collected


def draw_pictures(
    results: Sequence[Results],
    models: Sequence[str],
    folder: Path,
    data_dir: str | Path | None = None,
    *,
    cache: Path | None = None,
    limit: int | None = None,
) -> list[Picture]:
    """Draw the pictures of a benchmark, as PNGs in a folder.

    Other arguments are those of `evaluate_suite`.

    They are a map of the dialogues of the corpus with the most domains, and a map of utterances
    with actions. A picture that cannot be drawn, for example of a model without vectors, is left
    out with a warning.
    """
    pictures = []
    for suite in (str(entry.run["config"]["suite"]) for entry in results):
        if suite not in MAPPED:
            continue
        try:
            problems, _ = load_suite(
                suite, data_dir, limit, fine_tune=False, tasks=(MAPPED[suite],)
            )
            problem = max(problems.values(), key=lambda problem: len(set(problem.labels)))
            pictures.append(draw_map(problem, models, folder / f"{suite}-map.png", cache))
        except InputError as error:  # other tasks of the suite may have had their corpora
            logger.warning("no picture of the suite %s: %s", suite, error)
    return pictures


def draw_map(problem: Problem, models: Sequence[str], path: Path, cache: Path | None) -> Picture:
    """Draw where each model places the items of a problem.

    Models without finite vectors are left out.
    """
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
    return Picture(
        f"{problem.config['corpus']}: a map",
        "Nearby points are alike (t-SNE); colours are labels.",
        path,
    )
