"""Evaluate encoders on labelled dialogues.

Load, embed once per model, run the tasks, write results and table.
"""

import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from ..data import load_dialogues
from ..data.corpus_names import check_no_split, with_split
from ..display import data_frame
from ..encoders import Encoder, load_encoder
from ..encoders.embedding_cache import RememberingEncoder
from ..encoders.specs import find_encoder
from ..errors import InputError
from ..hooks import entries
from ..ranges import check_range
from ..storage.files import check_writable, write_text_atomically
from ..storage.run_folder import RunFolder
from .results.contamination import marked
from .results.result_tables import column_of, markdown_table, meanings, paper_table
from .results.rows import (
    Results,
    Row,
    describe_run,
    part_named,
    place_of,
    rows_of,
    with_ties,
    write_results,
)
from .tasks.task import CorpusPart, Problem, default_tasks, load_problem

_HEADLINES = ("map", "v_measure", "f1", "accuracy", "mrr")  # the first of these says the most


class Evaluation(Results):
    """The figures of an evaluation; see `Results`."""

    def to_pandas(self) -> Any:
        """Return a DataFrame with a row for each figure.

        Model, task, metric, mean, std, interval and more.
        """
        return data_frame([row.to_json() for row in self.results])

    def save(self, path: str | Path) -> Path:
        """Write the results file, from which tables, cards and reports are made.

        Whole or not at all.
        """
        write_results(self, path)
        return Path(path)

    def __repr__(self) -> str:
        return table_of(self)

    _repr_markdown_ = __repr__


def evaluate(
    models: Any,
    dialogues: Any,
    *,
    tasks: Sequence[str] = (),
    split: str | None = None,
    data_dir: str | Path | None = None,
    limit: int | None = None,
    seeds: int | Sequence[int] = 10,
    output: str | Path | None = None,
    command: str = "hf_dialemb.evaluate",
    **reading: Any,
) -> Evaluation:
    """Compare encoders on labelled dialogues; the figures are a table in a notebook.

    Examples:
        >>> results = hf_dialemb.evaluate([encoder, "all-MiniLM-L6-v2"], dialogues)
        >>> results.to_pandas()

    Args:
        models: One or several models, in the forms of `load_encoder`.
        dialogues: Labelled dialogues, in the forms of `load_dialogues`.
        tasks: Keys of `hf_dialemb.evaluation.TASKS`; by default those that suit the corpus.
        split: A split of a corpus, by default ``test``.
        data_dir: The folder that holds published corpora.
        limit: The most items; of more, a fixed random sample is measured.
        seeds: Repeats of everything else that is drawn, or their number.
        output: The results file, with a Markdown table beside it; written anew after each model.
        command: The name of the run in the results file.
        **reading: How files are read, as in `load_dialogues`.
    """
    started = time.perf_counter()
    encoders = _models_of(models)
    repeats = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    file = None if output is None else Path(output)
    check_request(encoders, repeats, file, limit)
    part = _part_of(dialogues, split, data_dir, limit, reading)
    problems = {
        task: load_problem(task, part) for task in dict.fromkeys(tasks or default_tasks(part))
    }
    return _measured(encoders, part, problems, repeats, command, started, file)


def _models_of(models: Any) -> list[str | Encoder]:
    """Return specs, whose weights a results file tells, as they are, and others as encoders."""
    several = isinstance(models, Sequence) and not isinstance(models, str)
    named = [
        str(Path(model)) if isinstance(model, PathLike) else model
        for model in (models if several else [models])
    ]
    return [model if isinstance(model, str) else load_encoder(model) for model in named]


def _part_of(
    source: Any, split: str | None, data_dir: Any, limit: int | None, reading: dict[str, Any]
) -> CorpusPart:
    """Read objects in memory once.

    A path or a name is read by the tasks, which may need other splits.
    """
    if not isinstance(source, str | PathLike):
        return CorpusPart(load_dialogues(source, split=split, **reading), limit=limit)
    corpus, split = with_split(str(source), split)
    part = CorpusPart(corpus, data_dir, split or "test", limit, reading)
    if part.is_own:
        check_no_split(corpus, split)
    return part


def _measured(
    encoders: Sequence[str | Encoder],
    part: CorpusPart,
    problems: Mapping[str, Problem],
    seeds: Sequence[int],
    command: str,
    started: float,
    output: Path | None,
) -> Evaluation:
    """Measure encoders one after the other; the results file is written after each."""
    names = [encoder if isinstance(encoder, str) else encoder.name for encoder in encoders]
    weights = {}
    for name, model in zip(names, encoders, strict=True):
        source = find_encoder(model) if isinstance(model, str) else model.source
        if source is not None:
            weights[name] = source.fingerprint
    config = {
        "models": names,
        "weights": weights,
        "tasks": list(problems),
        **_shared_config(problems),
    }
    labelled = next((problem.dialogues for problem in problems.values() if problem.labels), ())
    rows: list[Row] = []
    progress = tqdm(names, desc="models", unit="model", file=sys.stderr)
    for name, model in zip(progress, encoders, strict=True):
        encoder = RememberingEncoder(model)
        place = (name, config["corpus"], config["split"])
        figures = list[Row]()
        for problem in problems.values():
            figures += rows_of(*place, measure(encoder, problem, seeds), part=problem.is_part)
        trained = seconds_of("training", training_seconds(name), 1)
        figures += rows_of(*place, [*seconds_of("encoding", encoder.seconds, 3), *trained])
        rows += marked(figures, part.place, dialogues=labelled)
        results = Evaluation(describe_run(command, config, seeds, started), tuple(with_ties(rows)))
        if output is not None:
            write_with_page(results, output)
    return results


def check_request(
    models: Sequence[Any],
    seeds: Sequence[int],
    output: Path | None = None,
    limit: int | None = None,
) -> None:
    """Raise InputError, before any work, for a request that cannot be met."""
    if not models:
        raise InputError(
            "models: got none, expected a list of at least one; name a model or 'tfidf'"
        )
    if not len(seeds):
        raise InputError("seeds: got none, expected at least one; pass for example 0 1 2")
    check_range("limit", limit, 2)
    if output is not None:
        check_writable(output)
    if output is not None and output.suffix == ".md":
        raise InputError(
            f"output '{output}': got the ending of the table, expected a JSON file; name it .json"
        )
    for model in models:
        if isinstance(model, str):
            find_encoder(model)


def measure(encoder: Encoder, problem: Problem, seeds: Sequence[int]) -> list[Row]:
    """Measure an encoder on a problem; raise InputError for vectors that cannot be measured."""
    try:
        return problem.measure(encoder, seeds)
    except ValueError as error:
        raise (
            error if isinstance(error, InputError) else InputError(f"model {encoder.name}: {error}")
        ) from error


def seconds_of(task: str, seconds: float, digits: int) -> list[Row]:
    """Return the figure of a duration, or none for no time at all."""
    return [Row(task=task, metric="seconds", mean=round(seconds, digits))] if seconds else []


def training_seconds(model: str) -> float:
    """Return how long a model was trained, by its folder; 0 where that is unknown."""
    run = RunFolder(Path(model))
    return float(run.report().get("seconds", 0)) if run.complete else 0.0


def command_line() -> str:
    """Return the command that repeats the present process."""
    program = Path(sys.argv[0]).name
    return shlex.join(["dialemb" if program == "__main__.py" else program, *sys.argv[1:]])


def _shared_config(problems: Mapping[str, Problem]) -> dict[str, Any]:
    """Put the settings that all tasks share at the top, and the others below their task."""
    configs = {name: problem.config for name, problem in problems.items()}
    first, *others = configs.values()
    shared = {
        key: value
        for key, value in first.items()
        if all(other.get(key, ...) == value for other in others)
    }
    own = {
        name: {key: config[key] for key in config if key not in shared}
        for name, config in configs.items()
    }
    return {**shared, **own} if others else shared


def write_with_page(results: Results, output: Path) -> None:
    """Write a results file, and its page beside it."""
    write_results(results, output)
    write_text_atomically(output.with_suffix(".md"), page_of(results))


def page_of(results: Results) -> str:
    """Render the page beside a results file: its subject, and where to look first."""
    suite = results.run["config"].get("suite")
    figures = paper_table(results.results) if suite else table_of(results)
    rows = [row for row in results.results if row.quoted_from is None]
    if not rows:
        return figures
    where = f"the tasks of {suite}" if suite else part_named(rows[0].corpus, rows[0].split)
    models = list(dict.fromkeys(row.model for row in rows))
    first = next((row for metric in _HEADLINES for row in rows if row.metric == metric), rows[0])
    return (
        f"# Figures on {where}\n\n"
        "After this page you know how good "
        f"{models[0] if len(models) == 1 else f'each of {len(models)} models'} is on "
        f"{where}. Look at {column_of(first).header} first.\n\n{figures}"
    )


def table_of(results: Results) -> str:
    """Render figures and their meanings, and below them those of papers beside ours."""
    rows = results.results
    table = "\n".join(text for text in (markdown_table(rows), meanings(rows)) if text)
    quoted = [row for entry in entries("quoted").values() for row in entry.load()(rows)]
    if not quoted:
        return table
    places = {place_of(row) for row in quoted}
    beside = paper_table((*(row for row in rows if place_of(row) in places), *quoted))
    return f"{table}\n**Beside what papers print**\n\n{beside}"
