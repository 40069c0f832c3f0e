"""The figures of a model card: the model's own, and those of the model that it began as."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from huggingface_hub import EvalResult, EvalResultEntry, eval_result_entries_to_yaml

from ...data.corpus_names import is_own
from ...errors import InputError
from ...evaluation.results.contamination import learnt_sets, marked
from ...evaluation.results.result_tables import (
    as_papers_print,
    column_of,
    is_in_short,
    markdown_table,
    printed,
)
from ...evaluation.results.rows import (
    Results,
    Row,
    merge_results,
    part_named,
    place_of,
    read_results,
)
from ...methods import get_method
from ...storage.files import write_text_atomically
from ...training.training_record import without_places
from ..published_folder import PublishedFolder
from .card_record import escaped, matches

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
        metric = escaped(f"{self.row.task} {self.row.metric} {self.row.setting}".strip())
        other = printed(self.other, column) if self.other else ""
        return f"| {name} | {metric} | {printed(self.row, column)} | {other} |"


def measured(record: Mapping[str, Any], files: Sequence[Path]) -> list[Figure]:
    """Return a model's figures in results files, those of the method's own suite first.

    A figure of a later file replaces the same of an earlier one.

    Raises:
        InputError: A file has figures of other models or other weights.
    """
    read = {file: read_results(file) for file in files}
    suite = get_method(record["model"]["method"]).suite
    ordered = sorted(read, key=lambda file: read[file].run["config"].get("suite") != suite)
    own_names = {_own_name(record, read[file], file) for file in ordered}
    rows = merge_results([read[file] for file in ordered])
    learnt = [part for training in record["training"] for part in learnt_sets(training["settings"])]
    # results files name own files without their folder
    sets = frozenset((Path(name).name if is_own(name) else name, split) for name, split in learnt)
    own = marked(_comparable(rows, own_names), sets=sets)
    reference = record["reference"] or ""
    other_names = {row.model for row in rows if matches(row.model, reference)}
    others = {place_of(row): row for row in _comparable(rows, other_names)}
    return list({place_of(row): Figure(row, others.get(place_of(row))) for row in own}.values())


def shipped_figures(name: str, files: Sequence[Path]) -> list[Figure]:
    """Return the figures of an encoder that comes with the package."""
    rows = merge_results([read_results(file) for file in files])
    return [Figure(row, None) for row in _comparable(rows, {name})]


def results_of(names: Sequence[str], folder: Path) -> list[Path]:
    """Return the results files in a folder that have figures of a model, by its names.

    Those in ``benchmark/`` below it hold whole papers; where they have some, they are all.
    """
    for place in (folder / "benchmark", folder):
        measuring = []
        for file in sorted(place.glob("*.json")):
            # other programs' files hold tables
            is_results = "results" in json.loads(file.read_text(encoding="utf-8"))
            if is_results and _name_of(names, read_results(file).results) is not None:
                measuring.append(file)
        if measuring:
            return measuring
    return []


def headline(figures: Iterable[Figure]) -> list[Figure]:
    """Return the first figure of each task on each corpus, a few at most."""
    first: dict[tuple[str, str, str], Figure] = {}
    for figure in figures:
        first.setdefault((figure.row.corpus, figure.row.split, figure.row.task), figure)
    return list(first.values())[:_SHOWN]


def model_index(figures: Iterable[Figure]) -> list[EvalResult]:
    """Return figures as a card's metadata hold them, without what the model learnt from."""
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
        for row, _ in figures
        if not row.learnt
    ]


def write_published_results(figures: Sequence[Figure], name: str, folder: Path) -> list[Path]:
    """Write all figures beside a card, and return the files.

    They are tables in ``results/figures.md``, and an entry for each in ``.eval_results/``.
    """
    rows = [replace(row, model=name) for row, _ in figures]
    others = [other for _, other in figures if other is not None]
    rows += [replace(row, model=without_places(row.model)) for row in others]
    entries = [
        EvalResultEntry(
            dataset_id=row.corpus,
            task_id=row.task,
            value=row.mean,
            notes=" ".join(filter(None, (row.split, row.metric, row.setting))),
        )
        for row, _ in figures
        if not row.learnt
    ]
    texts = {
        PublishedFolder.FIGURES: markdown_table(rows),
        PublishedFolder.EVALUATIONS: yaml.safe_dump(
            eval_result_entries_to_yaml(entries), sort_keys=False
        ),
    }
    for file, text in texts.items():
        (folder / file).parent.mkdir(exist_ok=True)
        write_text_atomically(folder / file, text)
    return [folder / file for file in texts]


def _comparable(rows: Iterable[Row], models: set[str]) -> list[Row]:
    """Return the measured figures of models, without times, which depend on the machine."""
    return [
        row
        for row in rows
        if row.model in models
        and row.quoted_from is None
        and row.metric != "seconds"
        and is_in_short(row)
    ]


def _own_name(record: Mapping[str, Any], results: Results, file: Path) -> str:
    """Return the model's name in a file, which must have measured the same weights."""
    names = [known["name"] for known in record["measured_as"]]
    digests = [known["weights"] for known in record["measured_as"]]
    weights = results.run["config"].get("weights", {})
    name = next((model for model, digest in weights.items() if digest in digests), None)
    name = name or _name_of(names, results.results)
    if name is None or weights.get(name, digests[0]) not in digests:
        raise InputError(
            f"{file}: got no figures of {names[0]} as it is, expected them; measure it with "
            "dialemb papers benchmark --suite all, or on dialogues of your own with dialemb "
            "evaluate"
        )
    return name


def _name_of(names: Sequence[str], rows: Iterable[Row]) -> str | None:
    """Return the measured model that has one of some names, the first of these that fits."""
    models = list(dict.fromkeys(row.model for row in rows if row.quoted_from is None))
    for name in names:
        alike = [model for model in models if matches(model, name)]
        if alike:
            return name if name in alike else alike[0]
    return None
