"""Evaluating models on all that a paper measures on, beside the paper's own figures; goes on where it was stopped."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from ..corpora.source import MissingFilesError
from ..models.errors import InputError, unknown_name
from ..models.files import write_text_atomically
from .encoders import find_encoder, load_encoder
from .quoted import quoted_figures
from .registry import get_task, load_problem
from .remembering import RememberingEncoder
from .results import Results, Row, describe_run, read_results, write_results
from .run import check_request, command_line, measure, seconds_of_encoding
from .tables import paper_table
from .task import Problem

SPLITS = ("test", "dev")
"""What is measured on: the first of these that is at hand."""


class Paper(NamedTuple):
    """What a paper measures on.

    Attributes:
        problems: Pairs of a corpus and a task, those of a corpus one after the other.
        fine_tuning: Further ones, whose tasks fine-tune.
    """

    problems: tuple[tuple[str, str], ...]
    fine_tuning: tuple[tuple[str, str], ...] = ()


_INTENTS = ("clinc150", "banking77", "snips", "hwu64")

PAPERS = {
    "dse": Paper(
        (
            ("clinc150", "intent-classification"),
            ("clinc150", "out-of-scope-detection"),
            *((corpus, "intent-classification") for corpus in _INTENTS[1:]),
            ("amazonqa", "response-selection"),
            ("sgd", "response-selection"),
            ("sgd", "dialogue-response-selection"),
            ("dstc7_ubuntu", "dialogue-response-selection"),
            ("ubuntu_irc", "response-selection"),
            ("ubuntu_irc", "dialogue-response-selection"),
            ("dialogue_nli", "dialogue-nli"),
        ),
        (
            *((corpus, "intent-fine-tuning") for corpus in _INTENTS),
            ("sim_m", "dialogue-action-prediction"),
        ),
    ),
    "dialog2flow": Paper((("dialog2flow_evaluation", "action-similarity"),)),
    "dialogue_cse": Paper(
        (
            ("jddc_sts", "dialogue-sts"),
            ("jddc_retrieval", "semantic-retrieval"),
            ("ecommerce_sts", "dialogue-sts"),
            ("ecommerce_retrieval", "semantic-retrieval"),
            ("sgd", "semantic-retrieval"),
        )
    ),
}
"""The papers, by the names of their methods. Corpora that the papers do not have stand in for some that are scarce."""

_Place = tuple[str, str, str]  # corpus, split, task
_Cell = tuple[str, str, str, str]  # model, corpus, split, task
_ENCODING = "encoding"


def evaluate_paper(
    paper: str,
    models: Sequence[str],
    data_dir: str | Path | None = None,
    *,
    seeds: Sequence[int] = range(10),
    output: Path | None = None,
    limit: int | None = None,
    fine_tune: bool = False,
    command: str | None = None,
) -> Results:
    """Measures models on all that a paper measures on.

    The request is checked, and all corpora are read, before the first model is loaded. The results file and its table
    are written anew after each task. Called again for the same file, it measures only what the file does not hold for
    the same weights, the same items and choices of the task, the same seeds and the same version of this package.

    Args:
        paper: A key of `PAPERS`.
        models: Encoders, in the forms that `load_encoder` takes.
        data_dir: Where the corpora lie; those that do not are left out.
        seeds: Repeats of everything that draws at random.
        output: The results JSON to write and to go on from; a Markdown table goes beside it, with the ending ``.md``.
        limit: At most so many items of each corpus, a fixed random sample; None means all.
        fine_tune: Whether to fine-tune the models too, where the paper does; models without weights are passed over.
        command: What the results file shall call the run; the process's own command line by default.

    Returns:
        The figures of all models, and those that the paper prints for the same tasks. ``run["config"]["left_out"]``
        names what is not at hand, and ``"not_measured"`` why a model has no figures for a task.

    Raises:
        InputError: The paper or a model is not found, no corpus is at hand, or an output cannot be written or is no
            results file.
    """
    started = time.perf_counter()
    if paper not in PAPERS:
        raise unknown_name("paper", paper, PAPERS)
    check_request(models, seeds, output, limit=limit)
    problems, left_out = _load(paper, data_dir, limit, fine_tune)
    config: dict[str, Any] = {
        "paper": paper,
        "models": list(models),
        "weights": {model: _fingerprint(model) for model in models},
        "problems": [{"task": task, **problem.config} for (_, _, task), problem in problems.items()],
        "left_out": left_out,
        "not_measured": {},
    }
    cells = _measured_before(output, config, seeds)
    for _ in _measure_missing(models, problems, cells, config["not_measured"], seeds):
        order = [cell for cell in _order(models, problems) if cell in cells]
        config["cells"] = [list((*cell, len(cells[cell]))) for cell in order]
        rows = _with_quoted(paper, [row for cell in order for row in cells[cell]])
        results = Results(describe_run(command or command_line(), config, seeds, started), rows)
        if output is not None:
            write_results(results, output)
            write_text_atomically(output.with_suffix(".md"), paper_table(results.results))
    return results


def _with_quoted(paper: str, rows: Sequence[Row]) -> tuple[Row, ...]:
    """Adds the paper's figures for the same tasks, model by model."""
    quoted = quoted_figures(paper)
    figures = {(row.corpus, row.split, row.task, row.metric, row.setting) for row in rows}
    beside = [row for row in quoted.rows if (row.corpus, row.split, row.task, row.metric, row.setting) in figures]
    return (*rows, *(row for model in quoted.shown for row in beside if row.model == model))


def _load(
    paper: str, data_dir: str | Path | None, limit: int | None, fine_tune: bool
) -> tuple[dict[_Place, Problem], list[str]]:
    """Loads the problems whose corpora are at hand, and names the others."""
    problems, left_out = {}, []
    for corpus, task in (*PAPERS[paper].problems, *(PAPERS[paper].fine_tuning if fine_tune else ())):
        problem = _load_one(corpus, task, data_dir, limit)
        if problem is None:
            left_out.append(f"{corpus} ({task})")
        else:
            problems[corpus, str(problem.config["split"]), task] = problem
    if not problems:
        raise InputError(
            f"paper {paper}: got none of its corpora ({', '.join(left_out)}); "
            "give the folder that holds them with --data-dir or HF_DIALEMB_DATA"
        )
    return problems, left_out


def _load_one(corpus: str, task: str, data_dir: str | Path | None, limit: int | None) -> Problem | None:
    from ..corpora import get_corpus

    for split in SPLITS:
        if split in get_corpus(corpus).splits:
            try:
                return load_problem(task, corpus, data_dir, split, limit)
            except MissingFilesError:
                continue
    return None


def _measure_missing(
    models: Sequence[str],
    problems: dict[_Place, Problem],
    cells: dict[_Cell, list[Row]],
    failures: dict[str, str],
    seeds: Sequence[int],
) -> Iterator[None]:
    """Fills in the cells that are not there, or tells why it could not; yields after each, and at the end."""
    from tqdm import tqdm

    with tqdm(total=len(models) * len(problems), unit="cell", file=sys.stderr) as progress:
        for model in models:
            encoder: RememberingEncoder | None = None
            last = ""
            for (corpus, split, task), problem in problems.items():
                progress.set_description(f"{Path(model).name}: {corpus}, {task}")
                cell = (model, corpus, split, task)
                if cell not in cells and not (model == "tfidf" and get_task(task).fine_tunes):
                    encoder = encoder or RememberingEncoder(load_encoder(model))
                    if corpus != last:  # the next corpus has other texts; those of the last one are not needed again
                        encoder.forget()
                    last, before = corpus, encoder.seconds
                    try:
                        figures = measure(encoder, problem, seeds)
                    except InputError as error:  # one such cell shall not cost the others
                        failures[", ".join(cell)] = str(error)
                    else:
                        cells[cell] = [Row(model, corpus, split, *figure) for figure in figures]
                        _add_seconds(cells, (model, corpus, split, _ENCODING), encoder.seconds - before)
                    yield
                progress.update()
    yield


def _add_seconds(cells: dict[_Cell, list[Row]], cell: _Cell, seconds: float) -> None:
    model, corpus, split, _ = cell
    total = seconds + sum(row.mean for row in cells.get(cell, []))
    cells[cell] = [Row(model, corpus, split, *figure) for figure in seconds_of_encoding(total)]


def _order(models: Sequence[str], problems: dict[_Place, Problem]) -> list[_Cell]:
    """Every cell in the order of models and problems, that of the time after the others of a corpus."""
    places = list(problems)
    order: list[_Cell] = []
    for model in models:
        for corpus, split in dict.fromkeys(place[:2] for place in places):
            tasks = [task for *place, task in places if place == [corpus, split]]
            order += [(model, corpus, split, task) for task in (*tasks, _ENCODING)]
    return order


def _measured_before(output: Path | None, config: dict[str, Any], seeds: Sequence[int]) -> dict[_Cell, list[Row]]:
    """Reads the cells of a results file that need not be measured again."""
    if output is None or not output.exists():
        return {}
    before = read_results(output)
    now = describe_run("", config, seeds, time.perf_counter())
    if before.run["seeds"] != now["seeds"] or _version(before.run) != _version(now):
        return {}
    old, new = before.run["config"], json.loads(json.dumps(config))
    models = {model for model, weights in new["weights"].items() if old.get("weights", {}).get(model) == weights}
    known = [problem for problem in new["problems"] if problem in old.get("problems", [])]
    places = {(problem["corpus"], problem["split"], problem["task"]) for problem in known}
    places |= {(corpus, split, _ENCODING) for corpus, split, _ in places}
    rows = iter(before.results)
    measured = {(model, *place): list(islice(rows, count)) for model, *place, count in old.get("cells", [])}
    return {cell: found for cell, found in measured.items() if cell[0] in models and cell[1:] in places}


def _version(run: Mapping[str, Any]) -> str | None:
    version: str | None = run["versions"].get("hf-dialemb")
    return version


def _fingerprint(model: str) -> str:
    """Tells a model's weights from others under the same name; empty where they are not in a folder."""
    found = find_encoder(model).path
    folder = Path(found)
    if not found or not folder.is_dir():
        return ""
    digest = hashlib.sha256()
    for pattern in ("*.safetensors", "*.bin", "[0-9]_*/*.safetensors", "[0-9]_*/*.bin"):
        for path in sorted(folder.glob(pattern)):
            with path.open("rb") as stream:
                while block := stream.read(1 << 20):
                    digest.update(block)
    return digest.hexdigest()[:16]
