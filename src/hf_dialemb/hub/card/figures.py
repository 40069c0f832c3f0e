"""The figures of a model card: the model's own, and those of the model that it began as."""

import json
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from huggingface_hub import EvalResult, EvalResultEntry, eval_result_entries_to_yaml

from ...data.corpus import ALL
from ...errors import InputError
from ...evaluation.results import rows as results_files
from ...evaluation.results.contamination import Set, learnt_sets, marked
from ...evaluation.results.result_tables import (
    as_papers_print,
    column_of,
    is_in_short,
    marks_of,
    printed,
)
from ...evaluation.results.rows import Place, Results, Row, part_named, place_of
from ...methods import get_method
from ...storage.files import write_text_atomically
from ...training.training_record import without_places
from ..published_folder import PublishedFolder
from .card_record import escaped, matches

_OF_ALL_MODELS = ("models", "weights", "cells")  # settings of a run that tell of other models too
_SHOWN = 8  # figures in the card; all are beside it


class Figure(NamedTuple):
    """A figure of the model, and the same of the model that it is compared with, if measured."""

    row: Row
    other: Row | None

    @property
    def verdict(self) -> str:
        """``better``, ``worse`` or ``equal``; empty without a comparison, or if it was learnt."""
        if self.other is None or self.row.learnt:
            return ""
        column = as_papers_print(column_of(self.row))
        gain = round(self.row.mean - self.other.mean, column.decimals)
        if self.other.model in self.row.tied or not gain:
            return "equal"
        return "better" if (gain > 0) != column.lower_is_better else "worse"

    @property
    def line(self) -> str:
        """A row of the card's table."""
        column = as_papers_print(column_of(self.row))
        name = escaped(part_named(self.row.corpus, self.row.split))
        metric = f"{self.row.metric} {self.row.setting}".strip()
        own = printed(self.row, column)
        other = printed(self.other, column) if self.other else ""
        return f"| {name} | {escaped(f'{self.row.task} {metric}')} | {own} | {other} |"


class Source(NamedTuple):
    """A results file: its name, its run and its figures of the model."""

    file: str
    run: Mapping[str, Any]
    figures: list[Figure]


class Measured(NamedTuple):
    """All figures of a model, by results file."""

    sources: list[Source]

    @property
    def figures(self) -> list[Figure]:
        """The figures; one of a later file replaces the same of an earlier one."""
        by_place = {
            place_of(figure.row): figure for source in self.sources for figure in source.figures
        }
        return list(by_place.values())

    @property
    def shown(self) -> list[Figure]:
        """The first figure of each task, of the method's own suite where it was measured."""
        first: dict[tuple[str, str, str], Figure] = {}
        for figure in self.figures:
            first.setdefault((figure.row.corpus, figure.row.split, figure.row.task), figure)
        return list(first.values())[:_SHOWN]

    @property
    def marks(self) -> set[str]:
        """The marks of the figures shown."""
        return set("".join(marks_of(figure.row) for figure in self.shown))

    @property
    def verdicts(self) -> Counter[str]:
        """How many figures are better, worse or equal."""
        return Counter(figure.verdict for figure in self.figures)

    def evaluation_results(self) -> list[EvalResult]:
        """Return the figures shown as a model index has them, without what the model learnt."""
        return [
            EvalResult(
                task_type=row.task,
                dataset_type=row.corpus,
                dataset_name=part_named(row.corpus, row.split),
                dataset_split=row.split,
                metric_type=row.metric,
                metric_name=f"{row.metric} ({row.setting})" if row.setting else row.metric,
                metric_value=row.mean,
            )
            for row in (figure.row for figure in self.shown)
            if not row.learnt
        ]


def measured(record: Mapping[str, Any], files: Sequence[Path]) -> Measured:
    """Return a model's figures in results files.

    Those of the method's own suite come first. An InputError refuses a file of other models or
    other weights.
    """
    read = [results_files.read_results(file) for file in files]
    results_files.check_same_data(read)
    suite = get_method(record["model"]["method"]).suite
    sources = [_source(record, file, results) for file, results in zip(files, read, strict=True)]
    sources.sort(key=lambda source: source.run["config"].get("suite") != suite)
    return Measured(sources)


def results_of(names: Sequence[str], folder: Path) -> list[Path]:
    """Return the results files in a folder that have figures of a model, by its names.

    Those in ``benchmark/`` below it hold whole papers; where they have some, they are all.
    """
    for place in (folder / "benchmark", folder):
        measuring = []
        for file in sorted(place.glob("*.json")):
            # other programs' files hold tables
            is_results = "results" in json.loads(file.read_text(encoding="utf-8"))
            if is_results and _model_of(results_files.read_results(file), names) is not None:
                measuring.append(file)
        if measuring:
            return measuring
    return []


def shipped_figures(name: str, files: Sequence[Path]) -> Measured:
    """Return the figures of an encoder that comes with the package."""
    sources = []
    for file in files:
        results = results_files.read_results(file)
        figures = [Figure(row, None) for row in _rows(results, name)]
        sources.append(Source(file.name, results.run, figures))
    return Measured(sources)


def write_published_results(measured: Measured, name: str, folder: Path) -> list[Path]:
    """Write all figures beside a card, and return the files.

    They are results files in ``results/``, and an entry for each in ``.eval_results/``.
    """
    place = folder / PublishedFolder.RESULTS
    for old in place.glob("*.json"):
        old.unlink()
    place.mkdir(exist_ok=True)
    written: list[Path] = []
    for source in measured.sources:
        own = [replace(figure.row, model=name) for figure in source.figures]
        others = [figure.other for figure in source.figures if figure.other]
        rows = (*own, *(replace(row, model=without_places(row.model)) for row in others))
        path = place / source.file
        if path in written:
            path = place / f"{path.stem}-{len(written) + 1}.json"
        results_files.write_results(Results(_public(source.run), rows), path)
        written.append(path)
    entries = [
        EvalResultEntry(
            dataset_id=row.corpus,
            task_id=row.task,
            value=row.mean,
            notes=" ".join(filter(None, (row.split, row.metric, row.setting))),
        )
        for row in (figure.row for figure in measured.figures)
        if not row.learnt
    ]
    file = folder / PublishedFolder.EVALUATIONS
    file.parent.mkdir(exist_ok=True)
    text = yaml.safe_dump(eval_result_entries_to_yaml(entries), sort_keys=False)
    write_text_atomically(file, text)
    return [*written, file]


def _public(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run without places on the machine and without other models."""
    config = {key: value for key, value in run["config"].items() if key not in _OF_ALL_MODELS}
    command = shlex.join(without_places(str(run["command"]).split()))
    return {**without_places({**run, "config": config}), "command": command}


def _source(record: Mapping[str, Any], file: Path, results: Results) -> Source:
    behind = frozenset().union(*map(_learnt, record["training"]))
    known = [
        corpus for corpus, digest in results_files.data_hashes(results) if ("", digest) in behind
    ]
    learnt = behind | {(corpus, split) for corpus in known for split in ("", ALL)}
    own = marked(_rows(results, _own_model(record, results, file)), sets=learnt)
    others: dict[Place, Row] = {}
    if record["reference"] is not None:
        reference = record["reference"]
        name = _model_of(results, [reference, Path(reference).name])
        others = {place_of(row): row for row in _rows(results, name)}
    figures = [Figure(row, others.get(place_of(row))) for row in own]
    return Source(file.name, results.run, figures)


def _rows(results: Results, model: str | None) -> list[Row]:
    """Return a model's measured figures in short, without times, which depend on the machine."""
    return [
        row
        for row in results.results
        if row.model == model
        and row.quoted_from is None
        and row.metric != "seconds"
        and is_in_short(row)
    ]


def _learnt(training: Mapping[str, Any]) -> frozenset[Set]:
    """Return the sets of a training.

    An own file by its hash behind no name, or by its bare name if it is gone.
    """
    own = training.get("own_files", {})
    read = {part for part in learnt_sets(training["settings"]) if part[0] not in own}
    for name, digest in own.items():
        read.add(("", digest) if digest else (Path(name).name, ""))
    return frozenset(read)


def _own_model(record: Mapping[str, Any], results: Results, file: Path) -> str:
    """Return the model's name in a file, which must have measured the same weights."""
    digests = [known["weights"] for known in record["measured_as"]]
    names = [known["name"] for known in record["measured_as"]]
    weights = results.run["config"].get("weights", {})
    named = next((model for model in _models(results) if weights.get(model) in digests), None)
    if named is None:
        named = _model_of(results, names)
    if named is None or weights.get(named, digests[0]) not in digests:
        raise InputError(
            f"{file}: got no figures of {names[0]} as it is, expected them; measure it with "
            "dialemb papers benchmark --suite all, or on dialogues of your own with dialemb "
            "evaluate"
        )
    return named


def _model_of(results: Results, names: Sequence[str]) -> str | None:
    for name in names:
        alike = [model for model in _models(results) if matches(model, name)]
        if alike:
            return name if name in alike else alike[0]
    return None


def _models(results: Results) -> list[str]:
    return list(dict.fromkeys(row.model for row in results.results if row.quoted_from is None))
