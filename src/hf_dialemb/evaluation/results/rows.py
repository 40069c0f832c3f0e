"""Results files: one JSON per run, the source of every table, model card and picture."""

import json
import platform
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from importlib import metadata
from itertools import combinations
from pathlib import Path
from typing import Any, Self

import numpy as np

from ...data import CORPORA
from ...data.corpus import ALL
from ...errors import explained
from ...storage.files import write_text_atomically
from ...storage.hardware import describe_hardware
from ..tasks.sampling import mean_interval

SCHEMA = 1  # the version of the file format

_PACKAGES = (
    "hf-dialemb",
    "torch",
    "transformers",
    "sentence-transformers",
    "scikit-learn",
    "scipy",
    "numpy",
)
_RUN_FIELDS = ("command", "config", "seeds", "versions", "hardware", "seconds")


@dataclass(frozen=True, kw_only=True)
class Row:
    """A measured or quoted figure.

    Tasks leave the model and the corpus empty; `rows_of` fills them.

    Attributes:
        model: The encoder's name, as it was given.
        setting: A variant of the metric, such as "per-query"; empty for the usual one.
        mean: A percentage where the papers print percentages (purity, nmi, spearman, map, mrr).
        std: The sample standard deviation over ``n`` repeats (seeds); None where there was one.
        interval: The 95 % interval of the mean, over the items that are scored one by one (queries,
            contexts), else over the repeats; None of fewer than three. See `mean_interval`.
        quoted_from: Where a figure is printed ("paper, table, row"); None for one of this run.
        learnt: Whether the model learnt from the dialogues that it was measured on.
        part: Whether only a sample of the split was measured.
        tied: Models of the run whose figure differs from this one by no more than noise.
        scores: Those of items or repeats, which no file has.
    """

    model: str = ""
    corpus: str = ""
    split: str = ""
    task: str
    metric: str
    setting: str = ""
    mean: float
    std: float | None = None
    n: int = 1
    interval: tuple[float, float] | None = None
    quoted_from: str | None = None
    learnt: bool = False
    part: bool = False
    tied: tuple[str, ...] = ()
    scores: tuple[float, ...] = field(default=(), repr=False, compare=False)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """Make a row of the fields of a results file, whose lists become tuples."""
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in record.items()
        }
        return cls(**values)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a results file has them."""
        record = asdict(replace(self, scores=()))
        del record["scores"]
        return record


@dataclass(frozen=True)
class Results:
    """What a run measured: how (see `describe_run`), and the figures."""

    run: Mapping[str, Any]
    results: tuple[Row, ...]


def rows_of(
    model: str,
    corpus: str,
    split: str,
    rows: Iterable[Row],
    quoted_from: str | None = None,
    part: bool = False,
) -> list[Row]:
    """Return the figures of a task with the model and the part of a corpus that they are of."""
    return [
        replace(row, model=model, corpus=corpus, split=split, quoted_from=quoted_from, part=part)
        for row in rows
    ]


# what a figure is of: corpus, split, task, metric and setting
Place = tuple[str, str, str, str, str]


def part_named(corpus: str, split: str) -> str:
    """Return which part of which corpus figures are of.

    All of an own file is called by its name alone.
    """
    return corpus if split == ALL and corpus not in CORPORA else f"{corpus}, {split}"


def place_of(row: Row) -> Place:
    """Return the place of a figure: corpus, split, task, metric and setting."""
    return row.corpus, row.split, row.task, row.metric, row.setting


def with_ties(rows: Sequence[Row]) -> list[Row]:
    """Name in every row the models of the same run that it ties with.

    Two figures tie if the 95 % interval of the mean of their paired differences holds 0, or there
    are two pairs alone. The pairs are the items that both models were measured on, or the repeats.
    Figures without pairs tie with none.
    """
    places: dict[object, list[int]] = {}
    for index, row in enumerate(rows):
        if row.quoted_from is None and len(row.scores) > 1:
            places.setdefault((place_of(row), len(row.scores)), []).append(index)
    tied: dict[int, list[str]] = {}
    for indices in places.values():
        for first, second in combinations(indices, 2):
            differences = np.subtract(rows[first].scores, rows[second].scores)
            repeated = rows[first].n == len(differences)
            interval = mean_interval(differences, None if repeated else (-100.0, 100.0))
            if interval is None or interval[0] <= 0 <= interval[1]:
                tied.setdefault(first, []).append(rows[second].model)
                tied.setdefault(second, []).append(rows[first].model)
    return [replace(row, tied=tuple(tied.get(index, row.tied))) for index, row in enumerate(rows)]


def write_results(results: Results, path: Path | str) -> None:
    """Write a results file, whole or not at all."""
    record = {
        "schema": SCHEMA,
        "run": dict(results.run),
        "results": [row.to_json() for row in results.results],
    }
    text = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_text_atomically(Path(path), text)


def read_results(path: Path | str) -> Results:
    """Read a results file; an InputError names a missing or malformed one."""
    with explained(path, "write the file again"):
        record = json.loads(Path(path).read_text(encoding="utf-8"))
        if record["schema"] != SCHEMA:
            raise ValueError(f"schema {record['schema']}, expected {SCHEMA}")
        run = {name: record["run"][name] for name in _RUN_FIELDS} | record["run"]
        return Results(run, tuple(map(Row.from_json, record["results"])))


def merge_results(several: Sequence[Results]) -> list[Row]:
    """Join rows in the order of their first appearance; of two for one figure the later stays."""
    rows = {
        (row.model, *place_of(row), row.quoted_from): row
        for results in several
        for row in results.results
    }
    return list(rows.values())


def describe_run(
    command: str, config: Mapping[str, Any], seeds: Sequence[int], started: float
) -> dict[str, Any]:
    """Describe the present run for its results file.

    It began when ``time.perf_counter()`` returned ``started``.

    It adds versions of packages, hardware and seconds.
    """
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    torch = sys.modules.get("torch")  # a run that never loaded torch did not use a GPU
    return {
        "command": command,
        "config": dict(config),
        "seeds": list(seeds),
        "versions": versions,
        "hardware": describe_hardware(torch is not None and bool(torch.cuda.is_available())),
        "seconds": round(time.perf_counter() - started, 2),
    }
