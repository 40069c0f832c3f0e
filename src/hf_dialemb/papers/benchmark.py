"""Measuring models on suites, beside the papers' own figures, with one report; what was stopped goes on."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

from tqdm.auto import tqdm

from ..corpora.source import MissingFilesError
from ..encoders.remembering import RememberingEncoder
from ..encoders.specs import fingerprint, has_weights
from ..errors import InputError
from ..evaluation.results.learnt import marked
from ..evaluation.results.rows import Results, Row, describe_run, read_results, rows_of
from ..evaluation.results.tables import paper_table
from ..evaluation.run import check_request, command_line, measure, seconds_of, write_with_page
from ..evaluation.tasks.task import Problem, get_task
from .quoted import quoted_beside, quoted_figures
from .report.page import write_report
from .report.pictures import draw_pictures
from .suites import ALL, SUITES, Place, get_suite, load_suite

REPORT = "report.html"

_Cell = tuple[str, str, str, str]  # model, corpus, split, task
_ENCODING = "encoding"


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
    """Measure models on a suite, a key of `SUITES`; returns their figures, and those that the paper prints.

    The request is checked, and all corpora are read, before the first model is loaded. The results JSON and its table
    beside it, ``.md``, are written anew after each task. Called again for the same file, it measures only
    what the file does not hold for the same weights, the same data and choices of the task and the same version of this
    package. ``run["config"]["left_out"]`` names what is not at hand, and ``"not_measured"`` why a model has no figures
    for a task.

    ``seeds`` are repeats of everything that draws at random. In ``cache`` vectors are kept, so that no text is encoded
    twice by a model whatever the suite. Of more items of a problem than the limit (by default what the suite says) a
    fixed random sample is taken. With ``fine_tune`` models that have weights are fine-tuned too, where the paper does.
    ``so_far`` is called after each task with what is measured.

    An InputError says that the suite or a model is not found, no corpus is at hand, or an output cannot be written, is
    no results file, or holds figures of other models or seeds, or of another limit.
    """
    started = time.perf_counter()
    check_request(models, seeds, output, limit=limit)
    problems, left_out = load_suite(suite, data_dir, limit, fine_tune)
    config: dict[str, Any] = {
        "suite": suite,
        "models": list(models),
        "weights": {model: fingerprint(model) for model in models},
        "problems": [{"task": task, **problem.config} for (_, _, task), problem in problems.items()],
        "left_out": left_out,
        "not_measured": {},
    }
    check_kept(output, models, fine_tune, seeds)
    cells, spent = _measured_before(output, config)
    for _ in _measure_missing(models, problems, cells, config["not_measured"], seeds, cache):
        order = [cell for cell in _order(models, problems) if cell in cells]
        config["cells"] = [list((*cell, len(cells[cell]))) for cell in order]
        rows = marked(row for cell in order for row in cells[cell])
        run = describe_run(command_line(), config, seeds, started - spent)
        results = Results(run, (*rows, *quoted_beside(rows, [suite])))
        if output is not None:
            write_with_page(results, output)
        so_far(results)
    return results


def _measure_missing(
    models: Sequence[str],
    problems: dict[Place, Problem],
    cells: dict[_Cell, list[Row]],
    failures: dict[str, str],
    seeds: Sequence[int],
    cache: Path | None,
) -> Iterator[None]:
    """Fill in the missing cells, or the reason why not; yield after each cell, and at the end."""
    with tqdm(total=len(models) * len(problems), unit="cell", file=sys.stderr) as progress:
        for model in models:
            encoder: RememberingEncoder | None = None
            last, before = "", 0.0
            for (corpus, split, task), problem in problems.items():
                progress.set_description(f"{Path(model).name}: {corpus}, {task}")
                cell = (model, corpus, split, task)
                if cell not in cells and not (get_task(task).fine_tunes and not has_weights(model)):
                    encoder = encoder or RememberingEncoder(model, cache)
                    if corpus != last:  # the next corpus has other texts; those of the last one are not needed again
                        encoder.forget()
                        last, before = corpus, encoder.seconds
                    try:
                        figures = measure(encoder, problem, seeds)
                    except InputError as error:  # one such cell shall not cost the others
                        failures[", ".join(cell)] = str(error)
                    else:
                        cells[cell] = rows_of(model, corpus, split, figures, part=problem.is_part)
                        # An earlier run may have encoded more of the corpus than this one; what both did counts once.
                        time_of = (model, corpus, split, _ENCODING)
                        seconds = [encoder.seconds - before, *(row.mean for row in cells.get(time_of, []))]
                        cells[time_of] = rows_of(model, corpus, split, seconds_of(_ENCODING, max(seconds), 3))
                    yield
                progress.update()
    yield


def _order(models: Sequence[str], problems: dict[Place, Problem]) -> list[_Cell]:
    """Every cell in the order of models and problems, that of the time after the others of a corpus."""
    tasks: dict[tuple[str, str], list[str]] = {}
    for corpus, split, task in problems:
        tasks.setdefault((corpus, split), []).append(task)
    parts = [(*part, task) for part, of_part in tasks.items() for task in (*of_part, _ENCODING)]
    return [(model, *part) for model in models for part in parts]


def check_kept(output: Path | None, models: Sequence[str], fine_tune: bool, seeds: Sequence[int]) -> None:
    """Refuse a results file with figures that a request does not name, and that would be lost."""
    before, cells = _held(output)
    others = sorted({model for model, *_ in cells} - set(models))
    if others:
        _lose(output, ", ".join(others), "name these models as well (what is measured is not measured again)")
    if not fine_tune and any(get_task(task).fine_tunes for *_, task, _ in cells if task != _ENCODING):
        _lose(output, "fine-tuning", "ask for it again (what is measured is not measured again)")
    if before is not None and cells:
        _check_choice(output, "seeds", before.run["seeds"], list(seeds))


def _check_choice(output: Path | None, name: str, before: object, now: object) -> None:
    if before != now:
        _lose(output, f"another choice of {name} ({before}; asked for: {now})", f"give the same --{name}")


def _lose(output: Path | None, what: str, remedy: str) -> NoReturn:
    raise InputError(
        f"output '{output}': holds figures of {what}, which would be lost; {remedy}, or choose another output"
    )


def _held(output: Path | None) -> tuple[Results | None, list[Any]]:
    if output is None or not output.exists():
        return None, []
    before = read_results(output)
    return before, before.run["config"].get("cells", [])


def _measured_before(output: Path | None, config: dict[str, Any]) -> tuple[dict[_Cell, list[Row]], float]:
    """Read the cells of a results file that need not be measured again, and how long that file took so far.

    It refuses one whose corpora or limits are others, which loaded problems alone can tell.
    """
    before, listed = _held(output)
    if before is None or not listed:
        return {}, 0.0
    old, new = before.run["config"], json.loads(json.dumps(config))
    problems = {_place(problem): problem for problem in new["problems"]}
    at_hand = {place[:2] for place in problems}
    lost = sorted({f"{corpus}/{split}" for _, corpus, split, *_ in listed if (corpus, split) not in at_hand})
    if lost:
        _lose(output, f"{', '.join(lost)} (not at hand now)", "give the folder that holds it (--data-dir)")
    for held in old["problems"]:
        if _place(held) in problems:
            _check_choice(output, "limit", held.get("limit"), problems[_place(held)].get("limit"))
    versions = describe_run("", {}, (), 0.0)["versions"]
    if before.run["versions"].get("hf-dialemb") != versions.get("hf-dialemb"):
        return {}, 0.0
    models = {model for model, weights in new["weights"].items() if old.get("weights", {}).get(model) == weights}
    places = {place for place, problem in problems.items() if problem in old["problems"]}
    places |= {(corpus, split, _ENCODING) for corpus, split, _ in places}
    rows = iter(before.results)
    measured = {(model, *place): list(islice(rows, count)) for model, *place, count in listed}
    kept = {cell: collected for cell, collected in measured.items() if cell[0] in models and cell[1:] in places}
    return kept, float(before.run["seconds"]) if kept else 0.0


def _place(problem: Mapping[str, Any]) -> Place:
    return problem["corpus"], problem["split"], problem["task"]


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
    """Measure models on suites, or ``all``, and write one report; called again, it goes on where it was stopped.

    It takes and raises what `evaluate_suite` does, and returns the results of the suites that have a corpus at hand.
    The folder gets ``SUITE.json`` with the figures, ``SUITE.md`` with the table, ``embeddings/`` with
    the vectors, ``pictures/``, and ``report.html``, which needs no other file and is there from the first figure on.
    ``report`` takes lines that tell how it goes.
    """
    names = list(SUITES) if ALL in suites else list(dict.fromkeys(suites))
    for name in names:
        get_suite(name)
    check_request(models, seeds, output / REPORT, limit=limit)
    for name in names:
        check_kept(output / f"{name}.json", models, fine_tune, seeds)
    cache = output / "embeddings"
    collected: list[Results] = []
    missing: list[MissingFilesError] = []

    def so_far(results: Results) -> None:
        config = results.run["config"]
        done = sum(cell[3] != _ENCODING for cell in config["cells"]) + len(config["not_measured"])
        goes = f"Suite {names.index(config['suite']) + 1} of {len(names)}, {config['suite']}: {done} of "
        goes += f"{len(models) * len(config['problems'])} measurements are done."
        if any(row.metric != "seconds" for entry in (*collected, results) for row in entry.results):
            write_report([*collected, results], [], output / REPORT, goes)

    more: dict[str, Any] = {"seeds": seeds, "cache": cache, "limit": limit, "fine_tune": fine_tune, "so_far": so_far}
    for name in names:
        report(f"Suite {name}")
        try:
            collected.append(evaluate_suite(name, models, data_dir, output=output / f"{name}.json", **more))
        except MissingFilesError as error:
            missing.append(error)
            report(str(error))
            continue
        config = collected[-1].run["config"]
        report(paper_table(collected[-1].results))
        not_measured = [f"Not measured: {cell}: {reason}" for cell, reason in config["not_measured"].items()]
        left_out = [f"Left out: {place}" for place in config["left_out"]]
        for line in (*quoted_figures(name).notes, *left_out, *not_measured):
            report(line)
    if not collected:
        raise InputError(str(missing[0]))
    report("Drawing")
    pictures = draw_pictures(collected, models, output / "pictures", data_dir, cache=cache, limit=limit)
    write_report(collected, pictures, output / REPORT)
    report(f"Wrote {output / REPORT} and, of each suite, .json and .md beside it")
    return collected
