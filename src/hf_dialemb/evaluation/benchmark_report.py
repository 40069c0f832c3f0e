"""The whole benchmark: suites one after the other, then pictures and one report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ..corpora.source.files import MissingFilesError
from ..models.errors import InputError
from .benchmark import check_kept, evaluate_suite
from .report.benchmark_pictures import draw_pictures
from .report.page import write_report
from .results.quoted import quoted_figures
from .results.rows import Results
from .results.tables import paper_table
from .run import check_request
from .suites import ALL, SUITES, get_suite

REPORT = "report.html"


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
    """Measures models on suites and writes one report; called again, it goes on where it was stopped.

    It takes and raises what `evaluate_suite` does, and returns the results of the suites that have a corpus at hand.

    Args:
        suites: Keys of `SUITES`, or ``all``.
        models: As in `evaluate_suite`.
        output: The folder. It gets ``SUITE.json`` with the figures, ``SUITE.md`` and ``SUITE.tex`` with the table,
            ``embeddings/`` with the vectors, ``pictures/``, and ``report.html``, which needs no other file.
        data_dir: As in `evaluate_suite`.
        seeds: As in `evaluate_suite`.
        limit: As in `evaluate_suite`.
        fine_tune: As in `evaluate_suite`.
        report: Takes lines that tell how it goes.
    """
    names = list(SUITES) if ALL in suites else list(dict.fromkeys(suites))
    for name in names:
        get_suite(name)
    check_request(models, seeds, output / REPORT, limit=limit)
    for name in names:
        check_kept(output / f"{name}.json", models, fine_tune, seeds)
    cache, found = output / "embeddings", []
    missing: list[MissingFilesError] = []
    for name in names:
        report(f"Suite {name}")
        try:
            results = evaluate_suite(
                name, models, data_dir, seeds=seeds, output=output / f"{name}.json", cache=cache, limit=limit,
                fine_tune=fine_tune,
            )  # fmt: skip
        except MissingFilesError as error:
            missing.append(error)
            report(str(error))
            continue
        found.append(results)
        _tell(name, results, report)
    if not found:
        raise InputError(str(missing[0]))
    report("Drawing")
    pictures = draw_pictures(found, models, output / "pictures", data_dir, cache=cache, limit=limit)
    write_report(found, pictures, output / REPORT)
    report(f"Wrote {output / REPORT} and, of each suite, .json, .md and .tex beside it")
    return found


def _tell(name: str, results: Results, report: Callable[[str], None]) -> None:
    report(paper_table(results.results))
    for note in quoted_figures(name).notes:
        report(note)
    config = results.run["config"]
    for place in config["left_out"]:
        report(f"Left out: {place}")
    for cell, reason in config["not_measured"].items():
        report(f"Not measured: {cell}: {reason}")
