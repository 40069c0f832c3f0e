"""The figures of a model card: the model's own, and those of the model that it began as."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from huggingface_hub import EvalResult

from ...data.corpus import ALL
from ...errors import InputError
from ...evaluation.results import rows as results_files
from ...evaluation.results.contamination import Set, learnt_sets, marked
from ...evaluation.results.result_tables import (
    as_papers_print,
    column_of,
    is_in_short,
    printed,
    printed_figure,
)
from ...evaluation.results.rows import Place, Results, Row, part_named, place_of
from ...methods import get_method
from ...training.training_record import without_places
from ..published_folder import PublishedFolder
from .card_record import matches

_OF_ALL_MODELS = ("models", "weights", "cells")  # settings of a run that tell of other models too


class Figure(NamedTuple):
    """A figure of the model, and the same of the model that it is compared with, if that was
    measured too.
    """

    row: Row
    other: Row | None

    @property
    def lower_is_better(self) -> bool:
        """Whether the least is the best."""
        return column_of(self.row).lower_is_better

    @property
    def difference(self) -> str:
        """The difference as printed, or nothing."""
        if self.other is None:
            return ""
        difference = (
            f"{self.row.mean - self.other.mean:+.{as_papers_print(column_of(self.row)).decimals}f}"
        )
        return difference if float(difference) else difference[1:]

    @property
    def verdict(self) -> str:
        """``better``, ``worse`` or ``equal`` (tied, or printed alike).

        Empty without a reference, or if it learnt.
        """
        if self.other is None or self.row.learnt:
            return ""
        if self.other.model in self.row.tied:
            return "equal"
        gain = float(self.difference) * (-1 if self.lower_is_better else 1)
        return "better" if gain > 0 else "worse" if gain < 0 else "equal"

    def cells(self, beside: bool) -> list[str]:
        """Return the figure and its 95 % interval.

        ``beside`` a reference also its figure, difference and verdict.
        """
        column = as_papers_print(column_of(self.row))
        ends = [printed_figure(column, end) for end in self.row.interval or ()]
        own = [printed(self.row, column), " to ".join(ends) or "—"]
        other = "—" if self.other is None else printed(self.other, column)
        return [*own, other, self.difference or "—", self.verdict] if beside else own


class Source(NamedTuple):
    """A results file: its name, its run and its figures of the model."""

    file: str
    run: Mapping[str, Any]
    figures: dict[Place, Figure]


class Measured(NamedTuple):
    """All figures of a model; a figure of a later file replaces the same of an earlier one."""

    sources: list[Source]  # the results files
    figures: list[Figure]  # those that the card shows
    # of other methods' suites, but for what the model learnt from; only counted
    others: dict[str, list[Figure]]
    reference: str | None  # the name of the model that this one is compared with, if any

    @property
    def rows(self) -> list[Row]:
        """The model's own rows of the figures that the card shows."""
        return [figure.row for figure in self.figures]


def measured(record: Mapping[str, Any], files: Sequence[Path]) -> Measured:
    """Return a model's figures in results files.

    An InputError refuses a file of other models or other weights.
    """
    read = [results_files.read_results(file) for file in files]
    results_files.check_same_data(read)
    sources = [_source(record, file, results) for file, results in zip(files, read, strict=True)]
    suite, suites = (
        get_method(record["model"]["method"]).suite or "",
        dict[str, dict[Place, Figure]](),
    )
    for source in sources:
        suites.setdefault(source.run["config"].get("suite", ""), {}).update(source.figures)
    others = {
        name: [figure for figure in figures.values() if not figure.row.learnt]
        for name, figures in suites.items()
        if suite in suites and name not in ("", suite)
    }
    shown = {
        place: figure
        for name in suites
        if name not in others
        for place, figure in suites[name].items()
    }
    names = [
        figure.other.model
        for source in sources
        for figure in source.figures.values()
        if figure.other
    ]
    return Measured(
        sources, list(shown.values()), others, without_places(names[-1]) if names else None
    )


def is_measured_in(record: Mapping[str, Any], file: Path) -> bool:
    """Return whether a results file has figures of a model."""
    names = [known["name"] for known in record["measured_as"]]
    return _spec_of(results_files.read_results(file), names, file) is not None


def evaluation_results(rows: Iterable[Row]) -> list[EvalResult]:
    """Return figures as the Hub reads them, unrounded, without those that the model learnt from."""
    return [
        EvalResult(
            task_type=row.task,
            task_name=row.task.replace("-", " "),
            dataset_type=row.corpus,
            dataset_name=part_named(row.corpus, row.split),
            dataset_split=row.split,
            metric_type=row.metric,
            metric_name=f"{row.metric} ({row.setting})" if row.setting else row.metric,
            metric_value=row.mean,
        )
        for row in rows
        if not row.learnt
    ]


def command_of(run: Mapping[str, Any]) -> str:
    """Return the command of a run without places on the machine."""
    try:
        words = shlex.split(str(run["command"]))
    except ValueError:
        words = str(run["command"]).split()
    return shlex.join(without_places(words))


def write_published_results(
    measured: Measured, files: Sequence[Path], name: str, folder: Path
) -> list[Path]:
    """Write the figures of a card into ``results/`` of a published folder, and return the files."""
    place = folder / PublishedFolder.RESULTS
    for file in files:
        if file.resolve().parent == place.resolve():
            raise InputError(
                f"--results {file}: lies where the card's figures are written and would be "
                "replaced; move it elsewhere"
            )
    for old in place.glob("*.json"):
        old.unlink()
    place.mkdir(exist_ok=True)
    written: list[Path] = []
    for source in measured.sources:
        own = [replace(figure.row, model=name) for figure in source.figures.values()]
        others = [figure.other for figure in source.figures.values() if figure.other]
        rows = (*own, *(replace(row, model=without_places(row.model)) for row in others))
        stem = source.file.removesuffix(".json")
        names = (source.file, *(f"{stem}-{number}.json" for number in range(2, 1000)))
        path = next(place / name for name in names if place / name not in written)
        # Neither places on the machine nor other models.
        config = {
            key: value for key, value in source.run["config"].items() if key not in _OF_ALL_MODELS
        }
        public = {
            **without_places({**source.run, "config": config}),
            "command": command_of(source.run),
        }
        results_files.write_results(Results(public, rows), path)
        written.append(path)
    return written


def _source(record: Mapping[str, Any], file: Path, results: Results) -> Source:
    if not results.run["seeds"]:
        raise InputError(
            f"{file}: run: field seeds: got none, expected at least one; {_remedy(record)}"
        )
    behind = frozenset().union(*map(_learnt, record["training"]))
    known = frozenset(
        corpus for corpus, digest in results_files.data_hashes(results) if ("", digest) in behind
    )
    learnt = behind | {(corpus, split) for corpus in known for split in ("", ALL)}
    own = {
        place_of(row): row
        for row in marked(_rows(results, _own_spec(record, results, file)), sets=learnt)
    }
    others: dict[Place, Row] = {}
    if (reference := record["reference"]) is not None:
        spec = _spec_of(results, [reference, Path(reference).name], file)
        if spec is None:
            raise InputError(
                f"{file}: results: got no figures of {reference}, expected them; {_remedy(record)}"
            )
        others = {place_of(row): row for row in _rows(results, spec)}
    figures = {place: Figure(row, others.get(place)) for place, row in own.items()}
    return Source(file.name, results.run, figures)


def _remedy(record: Mapping[str, Any]) -> str:
    names = " ".join(filter(None, (record["measured_as"][0]["name"], record["reference"])))
    return (
        "measure both with dialemb papers benchmark --suite all --output benchmark --model "
        f"{names}, or on labelled "
        "dialogues of your own with dialemb evaluate"
    )


def _rows(results: Results, spec: str) -> list[Row]:
    """Return a model's measured figures in short, without times, which depend on the machine."""
    rows = (row for row in results.results if row.model == spec and row.quoted_from is None)
    return list(
        {
            place_of(row): row for row in rows if row.metric != "seconds" and is_in_short(row)
        }.values()
    )


def _learnt(training: Mapping[str, Any]) -> frozenset[Set]:
    """Return the sets of a training.

    An own file by its hash behind no name, or by its bare name if it is gone.
    """
    own = training.get("own_files", {})
    read = {
        (corpus, split) for corpus, split in learnt_sets(training["settings"]) if corpus not in own
    }
    return frozenset(
        read | {("", digest) if digest else (Path(name).name, "") for name, digest in own.items()}
    )


def _own_spec(record: Mapping[str, Any], results: Results, file: Path) -> str:
    """Return the model's name in a file, which must have measured the same weights."""
    names, digests = (
        [known[field] for known in record["measured_as"]] for field in ("name", "weights")
    )
    weights = results.run["config"].get("weights", {})
    for spec in _specs(results):
        if weights.get(spec) in digests and _rows(results, spec):
            return spec
    named = _spec_of(results, names, file)
    if named is None or not _rows(results, named):
        raise InputError(
            f"{file}: results: got no figures of {names[0]}, expected them; {_remedy(record)}"
        )
    if named in weights:
        raise InputError(
            f"{file}: run: config: field weights: got {weights[named]} for {named}, expected "
            f"{' or '.join(digests)}: "
            f"it measured other weights; {_remedy(record)}"
        )
    return named


def _spec_of(results: Results, names: Sequence[str], file: Path) -> str | None:
    for name in names:
        specs = [spec for spec in _specs(results) if matches(spec, name)]
        if name in specs:
            return name
        if len(specs) > 1:
            raise InputError(
                f"{file}: results: got {' and '.join(specs)}, which may both be {name}; leave one "
                "out"
            )
        if specs:
            return specs[0]
    return None


def _specs(results: Results) -> list[str]:
    return list(dict.fromkeys(row.model for row in results.results if row.quoted_from is None))
