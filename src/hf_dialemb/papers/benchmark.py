"""Measuring models on the papers' suites, with the papers' own figures beside ours.

A run that was stopped embeds nothing anew.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from ..data.source import MissingFilesError
from ..encoders.embedding_cache import RememberingEncoder
from ..encoders.specs import find_encoder
from ..errors import InputError
from ..evaluation.evaluating import (
    check_request,
    command_line,
    measure,
    seconds_of,
    write_with_page,
)
from ..evaluation.results.contamination import marked
from ..evaluation.results.result_tables import paper_table
from ..evaluation.results.rows import Results, Row, describe_run, rows_of, with_ties
from ..evaluation.tasks.task import Problem
from .quoted import quoted_beside, quoted_figures
from .suites import ALL, SUITES, Place, get_suite, load_suite

Part = tuple[str, str, str]  # a model, and a split of a corpus


def run_benchmark(
    suites: Sequence[str],
    models: Sequence[str],
    output: Path,
    data_dir: str | Path | None = None,
    *,
    seeds: Sequence[int] = range(10),
    limit: int | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> list[Results]:
    """Measure models on suites, or ``all``, and report their tables.

    It takes and raises what `evaluate_suite` does, and returns the results of the suites that have
    a corpus at hand. The folder gets ``SUITE.json`` with the figures, ``SUITE.md`` with the table,
    and ``embeddings/`` with the vectors that later calls read.
    """
    names = list(SUITES) if ALL in suites else list(dict.fromkeys(suites))
    for name in names:
        get_suite(name)
    collected: list[Results] = []
    missing: list[MissingFilesError] = []
    for name in names:
        report(f"Suite {name}")
        try:
            results = evaluate_suite(
                name,
                models,
                data_dir,
                seeds=seeds,
                output=output / f"{name}.json",
                cache=output / "embeddings",
                limit=limit,
            )
        except MissingFilesError as error:
            missing.append(error)
            report(str(error))
            continue
        collected.append(results)
        config = results.run["config"]
        report(paper_table(results.results))
        for note in quoted_figures(name).notes:
            report(note)
        for place in config["left_out"]:
            report(f"Left out: {place}")
        for cell, reason in config["not_measured"].items():
            report(f"Not measured: {cell}: {reason}")
        report(f"Wrote {output / name}.json and .md")
    if not collected:
        raise InputError(str(missing[0]))
    return collected


def evaluate_suite(
    suite: str,
    models: Sequence[str],
    data_dir: str | Path | None = None,
    *,
    seeds: Sequence[int] = range(10),
    output: Path | None = None,
    cache: Path | None = None,
    limit: int | None = None,
) -> Results:
    """Measure models on a suite, and return their figures and those that the paper prints.

    The request is checked, and all corpora are read, before the first model is loaded. The results
    file and its page beside it are written anew after each task. ``run["config"]["left_out"]``
    names the corpora that are not at hand, and ``"not_measured"`` why a model has no figures for a
    task.

    Args:
        suite: A key of `SUITES`.
        models: Names of models, in the forms of `load_encoder`.
        data_dir: The folder that holds published corpora.
        seeds: Repeats of everything that draws at random.
        output: The results file.
        cache: A folder for vectors, so that a model encodes no text twice.
        limit: The most items of a problem; of more, a fixed random sample is measured.

    Raises:
        InputError: The suite or a model is unknown, no corpus is at hand, or an output cannot be
            written.
    """
    started = time.perf_counter()
    check_request(models, seeds, output, limit=limit)
    problems, left_out = load_suite(suite, data_dir, limit)
    config: dict[str, Any] = {
        "suite": suite,
        "models": list(models),
        "weights": {model: find_encoder(model).fingerprint for model in models},
        "problems": [{"task": part[2], **problem.config} for part, problem in problems.items()],
        "left_out": left_out,
        "cells": [],
        "not_measured": {},
    }
    figures: dict[Part, list[Row]] = {}
    seconds: dict[Part, float] = {}
    results = Results({}, ())
    for cell, measured, encoding in _measured(models, problems, seeds, cache):
        place = cell[:3]
        if isinstance(measured, InputError):
            config["not_measured"][", ".join(cell)] = str(measured)
        else:
            config["cells"].append(list(cell))
            figures.setdefault(place, []).extend(measured)
            # Tasks of a corpus share texts, whose encoding counts once.
            seconds[place] = max(encoding, seconds.get(place, 0.0))
        rows = with_ties(marked(_with_seconds(figures, seconds)))
        run = describe_run(command_line(), config, seeds, started)
        results = Results(run, (*rows, *quoted_beside(rows, [suite])))
        if output is not None:
            write_with_page(results, output)
    return results


def _with_seconds(figures: Mapping[Part, list[Row]], seconds: Mapping[Part, float]) -> list[Row]:
    """Join the figures of all parts, each followed by the time that its encoding took."""
    rows: list[Row] = []
    for part, of_part in figures.items():
        rows += [*of_part, *rows_of(*part, seconds_of("encoding", seconds[part], 3))]
    return rows


def _measured(
    models: Sequence[str],
    problems: Mapping[Place, Problem],
    seeds: Sequence[int],
    cache: Path | None,
) -> Iterator[tuple[tuple[str, str, str, str], list[Row] | InputError, float]]:
    """Yield the figures of each cell, or why there are none, and the seconds of its encoding."""
    for model in models:
        encoder = RememberingEncoder(model, cache)
        corpus = ""
        before = 0.0
        for place, problem in tqdm(problems.items(), desc=model, unit="task", file=sys.stderr):
            if place[0] != corpus:  # its texts are others
                encoder.forget()
                corpus = place[0]
                before = encoder.seconds
            try:
                rows = measure(encoder, problem, seeds)
            except InputError as error:  # one such cell shall not cost the others
                yield (model, *place), error, 0.0
                continue
            figures = rows_of(model, *place[:2], rows, part=problem.is_part)
            yield (model, *place), figures, encoder.seconds - before
