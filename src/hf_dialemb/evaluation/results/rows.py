"""Results files: one JSON per run, the source of every table, model card and picture."""

import json
import math
import platform
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from importlib import metadata
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from ...data import CORPORA
from ...data.corpus import ALL
from ...errors import InputError
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
_OPTIONAL = {"interval", "learnt", "part", "tied"}  # files of earlier versions lack it
_RUN_FIELDS = ("command", "config", "seeds", "versions", "commit", "hardware", "seconds")


_NAMES = ("model", "corpus", "split", "task", "metric", "setting")
_TYPES: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(_NAMES, (str,)),
    "mean": (float, int),
    "std": (float, int, NoneType),
    "n": (int,),
    "interval": (list, tuple, NoneType),
    "quoted_from": (str, NoneType),
    **dict.fromkeys(("learnt", "part"), (bool,)),
    "tied": (list, tuple),
}
"""What each field of a row may be."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A measured or quoted figure. Tasks leave the model and the corpus empty.

    `rows_of` fills them.

    The interval is the 95 % bootstrap interval of the mean: over the items that are scored one by
    one (queries, contexts), else over the repeats; None where there is but one.
    """

    model: str = ""  # the encoder's name, as it was given
    corpus: str = ""
    split: str = ""
    task: str
    metric: str
    setting: str = ""  # a variant of the metric, such as "per-query"; empty for the usual one
    mean: float  # a percentage where the papers print percentages (purity, nmi, spearman, map, mrr)
    std: float | None = (
        None  # the sample standard deviation over n repeats (seeds); None where there was one
    )
    n: int = 1
    interval: tuple[float, float] | None = None
    quoted_from: str | None = (
        None  # None for a figure of this run, else where it is printed ("paper, table, row")
    )
    learnt: bool = False  # whether the model learnt from the dialogues that it was measured on
    part: bool = False  # whether only a sample of the split was measured
    # models of the run whose figure differs from this one by no more than noise
    tied: tuple[str, ...] = ()
    # of items or repeats; not in files
    scores: tuple[float, ...] = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, types in _TYPES.items():
            value = getattr(self, name)
            truth = isinstance(value, bool) and bool not in types  # Python takes it for a number
            if (
                truth
                or not isinstance(value, types)
                or (isinstance(value, float) and not math.isfinite(value))
            ):
                expected = " or ".join(of.__name__.replace("NoneType", "null") for of in types)
                raise InputError(f"field {name}: got {value!r}, expected {expected}, finite")
        if self.interval is not None:
            low, high = self.interval
            object.__setattr__(self, "interval", (low, high))  # JSON knows lists only
        object.__setattr__(self, "tied", tuple(map(str, self.tied)))

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a results file has them."""
        return {
            name: value
            for name, value in asdict(replace(self, scores=())).items()
            if name != "scores"
        }


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

    Two figures tie if the 95 % bootstrap interval of the mean of their paired differences holds 0.
    The pairs are the items that both models were measured on, or the repeats. Figures without pairs
    tie with none.
    """
    places: dict[object, list[Row]] = {}
    for row in rows:
        if row.quoted_from is None and len(row.scores) > 1:
            places.setdefault((place_of(row), len(row.scores)), []).append(row)
    tied: dict[int, list[str]] = {}
    for compared in places.values():
        for place, row in enumerate(compared):
            for other in compared[:place]:
                low, high = mean_interval(np.subtract(row.scores, other.scores))
                if low <= 0 <= high:
                    tied.setdefault(id(row), []).append(other.model)
                    tied.setdefault(id(other), []).append(row.model)
    return [replace(row, tied=tuple(tied[id(row)])) if id(row) in tied else row for row in rows]


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
    """Read a results file.

    Of a missing or malformed one an `InputError` names the file and the field.
    """
    try:
        record = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror}); give a results file"
        ) from error
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path}: got text that is not JSON ({error}), expected a results file"
        ) from error
    if not isinstance(record, dict) or record.get("schema") != SCHEMA:
        got = record.get("schema") if isinstance(record, dict) else type(record).__name__
        raise InputError(
            f"{path}: field schema: got {got!r}, expected {SCHEMA}; write the file again"
        )
    run, rows = record.get("run"), record.get("results")
    if not (
        isinstance(run, dict)
        and isinstance(rows, list)
        and all(name in run for name in _RUN_FIELDS)
        and all(isinstance(run[name], dict) for name in ("config", "versions"))
    ):
        raise InputError(
            f"{path}: expected a list 'results' and an object 'run' with {', '.join(_RUN_FIELDS)}; "
            "write the file again"
        )
    return Results(
        run, tuple(_row(row, f"{path}: results[{index}]") for index, row in enumerate(rows))
    )


def merge_results(several: Iterable[Results]) -> tuple[Row, ...]:
    """Join rows in the order of their first appearance; of two for one figure the later stays."""
    several = list(several)
    check_same_data(several)
    rows = {
        (row.model, *place_of(row), row.quoted_from): row
        for results in several
        for row in results.results
    }
    return tuple(rows.values())


def check_same_data(several: Iterable[Results]) -> None:
    """Refuse different files of one name, as own files are called without their folder.

    What runs hashed of known corpora may be of another version, and is not compared.
    """
    hashes: dict[str, str] = {}
    for corpus, collected in (item for results in several for item in data_hashes(results)):
        if corpus not in CORPORA and hashes.setdefault(corpus, collected) != collected:
            raise InputError(
                f"{corpus}: got figures of two different files of this name, which nothing tells "
                "apart; give one of "
                "them another name and measure it again, or leave one out"
            )


def data_hashes(results: Results) -> Iterator[tuple[str, str]]:
    """Yield the name of each corpus that a run measured, and its SHA-256."""
    config = results.run.get("config", {})
    of_tasks = (item for item in config.values() if isinstance(item, dict))
    for problem in (config, *config.get("problems", ()), *of_tasks):
        corpus, collected = (
            problem.get("corpus") or config.get("corpus"),
            problem.get("data_sha256"),
        )
        if corpus is not None and collected is not None:
            yield corpus, collected


def describe_run(
    command: str, config: Mapping[str, Any], seeds: Sequence[int], started: float
) -> dict[str, Any]:
    """Describe the present run for its results file, which began when ``time.perf_counter()``
    returned ``started``.

    It adds versions of packages, the commit of this package's sources (None outside a checkout),
    hardware and seconds.
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
        "commit": _commit(),
        "hardware": describe_hardware(torch is not None and bool(torch.cuda.is_available())),
        "seconds": round(time.perf_counter() - started, 2),
    }


def _row(record: Any, place: str) -> Row:
    names = [known.name for known in fields(Row) if known.name != "scores"]
    if not isinstance(record, dict) or set(record) | _OPTIONAL != set(names):
        got = ", ".join(map(str, record)) if isinstance(record, dict) else type(record).__name__
        raise InputError(
            f"{place}: got {got or 'no field'}, expected exactly the fields {', '.join(names)}"
        )
    try:
        return Row(**record)
    except InputError as error:
        raise InputError(f"{place}: {error}") from None


def _commit() -> str | None:
    # An installed package may lie inside someone else's repository: only a tracked source file
    # proves that it is ours.
    file, answer = Path(__file__), ""
    for arguments in (["ls-files", "--error-unmatch", file.name], ["rev-parse", "HEAD"]):
        command = ["git", "-C", str(file.parent), *arguments]
        try:
            answer = subprocess.check_output(
                command, stderr=subprocess.DEVNULL, text=True, timeout=10
            )
        except (OSError, subprocess.SubprocessError):
            return None
    return answer.strip()
