"""Evaluation from Python: `evaluate` with encoders and dialogues in memory."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

from ..corpora import CORPORA
from ..corpora.objects import as_dialogues
from ..corpora.own.jsonl import write_jsonl
from ..encoders.loading import load_encoder
from ..models.errors import InputError
from ..runs.frames import data_frame, html_table
from .results.rows import Results, write_results
from .run import evaluate_models, table_of


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
    dialogues: Any,  # noqa: ANN401 - see as_dialogues
    *,
    tasks: Sequence[str] = (),
    split: str = "test",
    data_dir: str | Path | None = None,
    limit: int | None = None,
    seeds: Sequence[int] = range(10),
    output: str | Path | None = None,
) -> Evaluation:
    """Compares encoders on labelled dialogues; the figures are a table in a notebook.

    Example:
        >>> results = hf_dialemb.evaluate([encoder, "all-MiniLM-L6-v2"], dialogues, tasks=["domains"])
        >>> results.to_pandas()

    Args:
        models: One or several of what `load_encoder` takes.
        dialogues: Labelled dialogues in memory, in the forms of `hf_dialemb.corpora.objects.as_dialogues`; or the name
            of a corpus or a path. An InputError says what is not as it should be.
        tasks: Keys of `hf_dialemb.evaluation.TASKS`; none for those that suit the corpus.
        split: Which part of a corpus by name.
        data_dir: Where it lies.
        limit: At most so many items, a fixed random sample; None means all.
        seeds: Repeats of everything that draws at random.
        output: The results file to write while measuring, with a Markdown table beside it.
    """
    single = isinstance(models, str | PathLike) or not isinstance(models, Sequence)
    given = [_named(model) for model in ([models] if single else models)]
    if not given:
        raise InputError("models: got none, expected at least one; give a list of encoders, folders or Hub ids")
    options = {"tasks": tasks, "seeds": seeds, "limit": limit, "output": None if output is None else Path(output)}

    def measured(corpus: str, part: str) -> Evaluation:
        results = evaluate_models(given, corpus, data_dir, part, command="hf_dialemb.evaluate", **options)  # type: ignore[arg-type]
        return Evaluation(results.run, results.results)

    if isinstance(dialogues, str | PathLike):
        name, _, part = str(dialogues).partition("/")
        known = name in CORPORA and not Path(str(dialogues)).exists()
        return measured(name if known else str(dialogues), part or split if known else split)
    with tempfile.TemporaryDirectory() as folder:  # tasks read files, and what is in memory is measured alike
        file = Path(folder) / "dialogues.jsonl"
        write_jsonl(as_dialogues(dialogues), file)
        return measured(str(file), "all")


def _named(model: Any) -> Any:  # noqa: ANN401
    """Leaves names of models as they are, since a results file tells their weights; loads everything else."""
    return str(Path(model)) if isinstance(model, PathLike) else model if isinstance(model, str) else load_encoder(model)
