"""Evaluating models on a corpus: load, embed once per model, run the tasks, write results, table and picture."""

from __future__ import annotations

import shlex
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from ..corpora import CORPORA, load_dialogues
from ..corpora.loading import check_no_split
from ..corpora.own.jsonl import write_jsonl
from ..corpora.own.reading import is_own
from ..drawing import check_drawing
from ..encoders import Encoder, load_encoder
from ..encoders.remembering import RememberingEncoder
from ..encoders.specs import find_encoder, fingerprint, has_weights
from ..encoders.stored_vectors import stored_vectors
from ..errors import InputError, told
from ..hooks import entries
from ..runs.files import check_writable, write_text_atomically
from ..runs.folder import RunFolder
from ..runs.frames import data_frame, html_table
from .maps import scatter
from .results.learnt import marked
from .results.rows import Results, Row, describe_run, part_named, place_of, rows_of, write_results
from .results.tables import column_of, markdown_table, meanings, paper_table
from .tasks.registry import default_tasks, get_task, load_problem
from .tasks.task import CorpusPart, Measurement, Problem

_LOOKED_AT = ("map", "v_measure", "f1", "accuracy", "mrr")  # the first of these tells the most


def evaluate_models(
    models: Sequence[str | Encoder],
    corpus: str,
    data_dir: str | Path | None,
    split: str,
    *,
    tasks: Sequence[str] = (),
    seeds: Sequence[int] = range(10),
    output: Path | None = None,
    plot: Path | None = None,
    limit: int | None = None,
    command: str | None = None,
    cache: Path | None = None,
    columns: str | None = None,
    roles: str | None = None,
    vectors: Path | None = None,
) -> Results:
    """Measures models on a part of a corpus, by keys of `TASKS`; none stand for those that suit the corpus.

    The request is checked before anything is loaded (`InputError`). The results JSON, with a Markdown table beside it,
    is written anew after each model, and in the end ``plot``, the PNG of the first task whose items have labels. Of
    more items than the limit a fixed random sample is taken; ``seeds`` are repeats of all else that is drawn.
    ``command`` is what the results file calls the run, by default the process's command line. Vectors are kept in
    ``cache`` for later runs. A file of one's own is read as ``columns`` and ``roles`` say. A row more is of ``vectors``
    of the corpus's dialogues, which ``dialemb embed`` wrote.
    """
    started = time.perf_counter()
    if vectors is not None:
        dialogues = load_dialogues(corpus, data_dir, split, columns=columns, roles=roles)
        models = [*models, stored_vectors(vectors).encoder(dialogues, f"corpus {corpus}")]
    specs = models if isinstance(models, str) else [each if isinstance(each, str) else each.name for each in models]
    check_request(specs, seeds, output, plot, limit, [each for each in models if isinstance(each, str)])
    names = list(dict.fromkeys(tasks or default_tasks(corpus)))
    for name in names:
        check_models(models, name)
    problems = {name: load_problem(name, CorpusPart(corpus, data_dir, split, limit, columns, roles)) for name in names}
    drawn = next((problem for problem in problems.values() if problem.labels), None)
    if plot is not None and drawn is None:
        raise InputError(f"plot: got {' and '.join(names)}, whose items have no labels to colour; leave the plot out")
    weights = {model: fingerprint(model) for model in models if isinstance(model, str)}
    weights |= {model.name: model.fingerprint for model in models if isinstance(model, Encoder) and model.spec}
    config = {"models": specs, "weights": weights, "tasks": names, **_shared_config(problems)}
    rows: list[Row] = []
    embeddings: dict[str, NDArray[np.float32]] = {}
    for model, given in zip(tqdm(specs, desc="models", unit="model", file=sys.stderr), models, strict=True):
        encoder = cached_encoder(given, cache)
        place, found = (model, config["corpus"], config["split"]), list[Row]()
        for problem in problems.values():
            found += rows_of(*place, measure(encoder, problem, seeds), part=problem.is_part)
        trained = seconds_of("training", training_report(model).get("seconds", 0), 1)
        found += rows_of(*place, [*seconds_of("encoding", encoder.seconds, 3), *trained])
        rows += marked(found, corpus, dialogues=drawn.dialogues if drawn is not None else ())
        if plot is not None and drawn is not None:
            embeddings[model] = encoder.encode(drawn.dialogues)
        results = Results(describe_run(command or command_line(), config, seeds, started), tuple(rows))
        if output is not None:
            write_with_page(results, output)
    if plot is not None and drawn is not None:
        scatter(embeddings, drawn.labels, plot, {model: _caption(rows, model) for model in specs})
    return results


def cached_encoder(model: str | Encoder, cache: Path | None) -> RememberingEncoder:
    """Loads an encoder that remembers: in a folder where vectors of all models are kept, or in memory alone."""
    return RememberingEncoder(model, cache if isinstance(model, str) else None)


def check_request(
    models: Sequence[str],
    seeds: Sequence[int],
    output: Path | None = None,
    plot: Path | None = None,
    limit: int | None = None,
    to_load: Sequence[str] | None = None,
) -> None:
    """Refuses, before any work, a request that cannot be met; see `evaluate_models`."""
    if isinstance(models, str) or not models:
        raise InputError(f"models: got {models!r}, expected a list of at least one; name a model or 'tfidf'")
    twice = [model for model, count in Counter(models).items() if count > 1]
    if twice:
        raise InputError(f"models: got '{twice[0]}' more than once, expected each once; leave the others out")
    if not len(seeds):
        raise InputError("seeds: got none, expected at least one; pass for example 0 1 2")
    if limit is not None and limit < 2:
        raise InputError(f"limit: got {limit}, expected at least 2; leave it out to take all")
    for path in (output, plot):
        if path is not None:
            check_writable(path)
    if output is not None and output.suffix == ".md":
        raise InputError(f"output '{output}': got the ending of the table, expected a JSON file; name it .json")
    if plot is not None:
        check_drawing()
    for model in models if to_load is None else to_load:
        find_encoder(model)


def check_models(models: Sequence[str | Encoder], task: str) -> None:
    """Refuses models without weights where a task fine-tunes, and a task that there is not."""
    if not get_task(task).fine_tunes:
        return
    for model in models:
        if not isinstance(model, str):
            raise InputError(f"task {task}: got a loaded model, expected one to fine-tune; give its folder or Hub id")
        if not has_weights(model):
            raise InputError(f"task {task}: got the model {model}, which has no weights to fine-tune; leave it out")


def measure(encoder: RememberingEncoder, problem: Problem, seeds: Sequence[int]) -> list[Measurement]:
    """Measures an encoder on a problem; refuses vectors that cannot be measured."""
    try:
        return problem.measure(encoder, seeds)
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"model {encoder.name}: {error}") from error


def seconds_of(task: str, seconds: float, digits: int) -> list[Measurement]:
    """Makes the figure of the time that something took; none where it took none."""
    return [Measurement(task=task, metric="seconds", setting="", mean=round(seconds, digits))] if seconds else []


def training_report(model: str) -> dict[str, float]:
    """Reads the ``seconds`` and ``steps`` that a training took, from its folder; what is not there is left out."""
    run = RunFolder(Path(model))
    if not run.complete:
        return {}
    with told(run.report_file, RunFolder.REMEDY):  # what is no number cannot be added to
        return {name: number + 0 for name, number in run.report().items() if name in ("seconds", "steps")}


def command_line() -> str:
    """Returns the command that repeats the present process."""
    program = Path(sys.argv[0]).name
    return shlex.join(["dialemb" if program == "__main__.py" else program, *sys.argv[1:]])


def _shared_config(problems: Mapping[str, Problem]) -> dict[str, Any]:
    """Puts what all tasks share at the top, and what differs below each task's name."""
    configs = {name: problem.config for name, problem in problems.items()}
    first, *others = configs.values()
    shared = {name: value for name, value in first.items() if all(each.get(name, ...) == value for each in others)}
    own = {name: {each: config[each] for each in config if each not in shared} for name, config in configs.items()}
    return {**shared, **own} if others else shared


def write_with_page(results: Results, output: Path) -> None:
    """Writes a results file, and its page beside it."""
    write_results(results, output)
    write_text_atomically(output.with_suffix(".md"), page_of(results))


def page_of(results: Results) -> str:
    """Renders the page that stands beside a results file; it begins with what it says and where to look first."""
    suite = results.run["config"].get("suite")
    figures = paper_table(results.results) if suite else table_of(results)
    rows = [row for row in results.results if row.quoted_from is None]
    if not rows:
        return figures
    where = f"the tasks of {suite}" if suite else part_named(rows[0].corpus, rows[0].split)
    models = list(dict.fromkeys(row.model for row in rows))
    first = next((row for metric in _LOOKED_AT for row in rows if row.metric == metric), rows[0])
    return (
        f"# Figures on {where}\n\n"
        f"After this page you know how good {models[0] if len(models) == 1 else f'each of {len(models)} models'} is on "
        f"{where}. Look at {column_of(first).header} first.\n\n{figures}"
    )


def table_of(results: Results) -> str:
    """Renders figures, what they mean, and below them those that papers print too, beside the papers'."""
    rows = results.results
    table = "\n".join(part for part in (markdown_table(rows), meanings(rows)) if part)
    quoted = [row for entry in entries("quoted").values() for row in entry.load()(rows)]
    if not quoted:
        return table
    places = {place_of(row) for row in quoted}
    beside = paper_table((*(row for row in rows if place_of(row) in places), *quoted))
    return f"{table}\n**Beside what papers print**\n\n{beside}"


def _caption(rows: Sequence[Row], model: str) -> str:
    of_model = [row for row in rows if row.model == model and not row.setting]
    means = {(row.task, row.metric): row.mean for row in of_model}
    purity, precision = means.get(("domain-categorization", "purity")), means.get(("dialogue-retrieval", "map"))
    if purity is not None and precision is not None:
        return f"purity {purity:.1f}, MAP {precision:.1f}"
    found = [row for row in rows if row.model == model and row.n > 1 and row.metric in ("f1", "accuracy")]
    return ", ".join(f"{row.metric} {row.setting} {row.mean:.1f}" for row in found if "mean" not in row.setting)


class Evaluation(Results):
    """What was measured; see `Results`."""

    def to_pandas(self) -> Any:  # noqa: ANN401 - a pandas.DataFrame
        """Returns a DataFrame with a row for each figure: model, task, metric, mean, std, interval and more."""
        return data_frame([asdict(row) for row in self.results])

    def save(self, path: str | Path) -> Path:
        """Writes the results file, from which tables, cards and reports are made; whole or not at all."""
        write_results(self, path)
        return Path(path)

    def __repr__(self) -> str:
        return table_of(self)

    def _repr_html_(self) -> str:
        return html_table(table_of(self))


def evaluate(
    models: Any,  # noqa: ANN401 - see load_encoder
    dialogues: Any,  # noqa: ANN401 - see load_dialogues
    *,
    tasks: Sequence[str] = (),
    split: str | None = None,
    data_dir: str | Path | None = None,
    limit: int | None = None,
    seeds: int | Sequence[int] = 10,
    output: str | Path | None = None,
) -> Evaluation:
    """Compares encoders on labelled dialogues; the figures are a table in a notebook.

    Examples:
        >>> results = hf_dialemb.evaluate([encoder, "all-MiniLM-L6-v2"], dialogues, tasks=["domains"])
        >>> results.to_pandas()

    ``models`` are one or several of what `load_encoder` takes, ``dialogues`` what is in memory, in the forms of
    `hf_dialemb.corpora.load_dialogues`, or a path or the name of a corpus, with a split, that lies in
    ``data_dir``; by default that is ``test``. ``tasks`` are keys of `hf_dialemb.evaluation.TASKS`; none for those that
    suit the corpus. Of more items than the limit a fixed random sample is taken; ``seeds`` are repeats of all else that
    is drawn, or so many. The results file, ``output``, is written while measuring, with a Markdown table beside it. An
    InputError says what is not as it should be.
    """
    if isinstance(models, str | PathLike) or not isinstance(models, Sequence):
        models = [models]
    if not models:
        raise InputError("models: got none, expected at least one; give a list of encoders, folders or Hub ids")
    # Names stay as they are, since a results file tells their weights.
    named = [str(Path(model)) if isinstance(model, PathLike) else model for model in models]
    given = [model if isinstance(model, str) else load_encoder(model) for model in named]
    repeats = range(seeds) if isinstance(seeds, int) else seeds
    options = {"tasks": tasks, "seeds": repeats, "limit": limit, "output": None if output is None else Path(output)}

    def measured(corpus: str, part: str) -> Evaluation:
        results = evaluate_models(given, corpus, data_dir, part, command="hf_dialemb.evaluate", **options)  # type: ignore[arg-type]
        return Evaluation(results.run, results.results)

    if isinstance(dialogues, str | PathLike):
        name, _, part = str(dialogues).partition("/")
        known = name in CORPORA and not Path(str(dialogues)).exists()
        if not known and is_own(str(dialogues)):
            check_no_split(str(dialogues), split)
        return measured(name if known else str(dialogues), (part if known else "") or split or "test")
    with tempfile.TemporaryDirectory() as folder:  # tasks read files, and what is in memory is measured alike
        file = Path(folder) / "dialogues.jsonl"
        write_jsonl(load_dialogues(dialogues, split=split), file)
        return measured(str(file), "all")
