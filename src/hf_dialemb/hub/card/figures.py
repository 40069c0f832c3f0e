"""The figures of a model card: the model's own, those of what it began as, and what lies between them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from huggingface_hub import EvalResult

from ...corpora.corpus import ALL
from ...errors import InputError
from ...evaluation.results import rows as results_files
from ...evaluation.results.learnt import Set, learnt_sets, marked
from ...evaluation.results.rows import Place, Results, Row, part_named, place_of
from ...evaluation.results.tables import Column, as_papers_print, column_of, is_in_short, printed, printed_figure
from ...training.record import without_places
from ..published_folder import PublishedFolder
from .record import matches


class Figure(NamedTuple):
    """One figure of the model, and the same of what it is compared with; None where that has none."""

    row: Row
    reference: Row | None

    @property
    def column(self) -> Column:
        """How it is printed."""
        return as_papers_print(column_of(self.row))

    @property
    def printed(self) -> str:
        """The figure as tables print it."""
        return printed(self.row, self.column)

    @property
    def interval(self) -> str:
        """Its 95 % interval, or a dash."""
        ends = self.row.interval
        return "—" if ends is None else " to ".join(printed_figure(self.column, end) for end in ends)

    @property
    def printed_reference(self) -> str:
        """The reference's figure, or a dash."""
        return "—" if self.reference is None else printed(self.reference, self.column)

    @property
    def difference(self) -> str:
        """What the model has more than the reference, with its sign, or a dash."""
        if self.reference is None:
            return "—"
        difference = f"{self.row.mean - self.reference.mean:+.{self.column.decimals}f}"
        return difference if float(difference) else difference[1:]

    @property
    def verdict(self) -> str:
        """``better``, ``worse`` or ``equal`` as printed; empty without a reference, or where the model learnt."""
        if self.reference is None or self.row.learnt:
            return ""
        difference = float(self.difference) * (-1 if self.column.lower_is_better else 1)
        return "better" if difference > 0 else "worse" if difference < 0 else "equal"


class Measured(NamedTuple):
    """All figures of a model, in the order of the files; one of a later file replaces the same of an earlier one.

    ``others`` are figures of other methods' suites, which are only counted, by suite, but for what the model learnt
    from. ``reference`` is what the files call that which the model is compared with, if anything, without its place on
    a machine. ``runs`` has of each file its name, its ``run`` object and its figures.
    """

    figures: list[Figure]
    others: dict[str, list[Figure]]
    reference: str | None
    runs: list[tuple[str, Mapping[str, Any], list[Figure]]]


def count(figures: Sequence[Figure], verdict: str) -> int:
    """Counts the figures of a verdict."""
    return sum(figure.verdict == verdict for figure in figures)


def measured(record: Mapping[str, Any], files: Sequence[Path], suite: str) -> Measured:
    """Finds a model's figures; without a file it has none."""
    if not files:
        return Measured([], {}, None, [])
    reference: str | None = record["reference"]
    results_files.check_same_data(map(results_files.read_results, files))
    figures: dict[str, dict[Place, Figure]] = {}
    runs, called = [], None
    behind = frozenset().union(*map(_learnt, record["training"]))
    for file in files:
        results = results_files.read_results(file)
        if not results.run["seeds"]:
            raise InputError(f"{file}: run: field seeds: got none, expected at least one; {remedy(record)}")
        known = frozenset(corpus for corpus, digest in results_files.data_hashes(results) if ("", digest) in behind)
        learnt = behind | {(corpus, of) for corpus in known for of in ("", ALL)}
        rows = marked(_rows(results, _own_spec(record, results, file)).values(), sets=learnt)
        compared: dict[Place, Row] = {}
        if reference is not None:
            called = _spec_of(results, [reference, Path(reference).name], str(file))
            if called is None:
                raise InputError(f"{file}: results: got no figures of {reference}, expected them; {remedy(record)}")
            compared = _rows(results, called)
        found = {place_of(row): Figure(row, compared.get(place_of(row))) for row in rows}
        figures.setdefault(results.run["config"].get("suite", ""), {}).update(found)
        runs.append((file.name, results.run, list(found.values())))
    others = {
        name: [figure for figure in found.values() if not figure.row.learnt]
        for name, found in figures.items()
        if suite in figures and name not in ("", suite)
    }
    shown = {place: figure for name in figures if name not in others for place, figure in figures[name].items()}
    return Measured(list(shown.values()), others, None if called is None else without_places(called), runs)


def is_measured_in(record: Mapping[str, Any], file: Path) -> bool:
    """Says whether a results file has figures of a model."""
    names = [each["name"] for each in record["measured_as"]]
    return _spec_of(results_files.read_results(file), names, str(file)) is not None


def evaluation_results(figures: Sequence[Figure]) -> list[EvalResult]:
    """Makes what the Hub reads: the model's own figures, unrounded, of dialogues that it did not learn from."""
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
        for row, _ in figures
        if not row.learnt
    ]


def command_of(run: Mapping[str, Any]) -> str:
    """Returns the command of a run without places on the machine."""
    try:
        words = shlex.split(str(run["command"]))
    except ValueError:
        words = str(run["command"]).split()
    return shlex.join(without_places(words))


def remedy(record: Mapping[str, Any]) -> str:
    """Names the command that measures a model and what it is compared with."""
    names = [record["measured_as"][0]["name"], *([record["reference"]] if record["reference"] else [])]
    return (
        f"measure both with dialemb papers benchmark --suite all --output benchmark --model {' '.join(names)}, or on "
        "labelled dialogues of your own with dialemb evaluate"
    )


def _rows(results: Results, spec: str) -> dict[Place, Row]:
    """Returns a model's measured figures in short; times say more of the machine than of the model."""
    return {
        place_of(row): row
        for row in results.results
        if row.model == spec and row.quoted_from is None and row.metric != "seconds" and is_in_short(row)
    }


def _learnt(training: Mapping[str, Any]) -> frozenset[Set]:
    """Says what a training read: an own file by its hash behind no name, or by its bare name where it is gone."""
    own = training.get("own_files", {})
    read = {(corpus, split) for corpus, split in learnt_sets(training["settings"]) if corpus not in own}
    return frozenset(read | {("", digest) if digest else (Path(name).name, "") for name, digest in own.items()})


def _own_spec(record: Mapping[str, Any], results: Results, file: Path) -> str:
    """Finds what a file calls the model, and makes sure that it measured the same weights."""
    names = [each["name"] for each in record["measured_as"]]
    weights = results.run["config"].get("weights", {})
    for each in record["measured_as"]:
        for spec in _specs(results):
            whitened = "@" in spec and "whitened" in spec.rpartition("@")[2].split(",")  # which no weights tell
            if weights.get(spec) == each["weights"] and _rows(results, spec) and not whitened:
                return spec
    found = _spec_of(results, names, str(file))
    if found is None or not _rows(results, found):
        raise InputError(f"{file}: results: got no figures of {names[0]}, expected them; {remedy(record)}")
    if found in weights:
        expected = " or ".join(each["weights"] for each in record["measured_as"])
        raise InputError(
            f"{file}: run: config: field weights: got {weights[found]} for {found}, expected {expected}: it measured "
            f"other weights; {remedy(record)}"
        )
    return found


def _spec_of(results: Results, names: Sequence[str], file: str) -> str | None:
    for name in names:
        found = [spec for spec in _specs(results) if matches(spec, name)]
        if name in found:
            return name
        if len(found) > 1:
            raise InputError(f"{file}: results: got {' and '.join(found)}, which may both be {name}; leave one out")
        if found:
            return found[0]
    return None


def _specs(results: Results) -> Iterator[str]:
    yield from dict.fromkeys(row.model for row in results.results if row.quoted_from is None)


def write_published_results(measured: Measured, sources: Sequence[Path], name: str, folder: Path) -> list[Path]:
    """Writes what a card was rendered from, so that whoever reads the card can look it up."""
    place = folder / PublishedFolder.RESULTS
    for source in sources:
        if source.resolve().parent == place.resolve():
            raise InputError(
                f"--results {source}: lies where the card's figures are written and would be replaced; move it "
                "elsewhere"
            )
    for old in place.glob("*.json"):
        old.unlink()
    place.mkdir(exist_ok=True)
    written: list[Path] = []
    for file, run, figures in measured.runs:
        own = [replace(figure.row, model=name) for figure in figures]
        others = [figure.reference for figure in figures if figure.reference is not None]
        rows = (*own, *(replace(row, model=without_places(row.model)) for row in others))
        names = (file, *(f"{file.removesuffix('.json')}-{number}.json" for number in range(2, 1000)))
        path = next(place / name for name in names if place / name not in written)
        # Neither where the run lay on a machine, nor what it says of other models.
        config = {key: value for key, value in run["config"].items() if key not in ("models", "weights", "cells")}
        public = {**without_places(dict(run)), "config": without_places(config), "command": command_of(run)}
        results_files.write_results(Results(public, rows), path)
        written.append(path)
    return written
