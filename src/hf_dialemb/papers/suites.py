"""The suites of the benchmark: for each paper, the corpora and tasks that it measures on."""

import tomllib
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ..data import get_corpus
from ..data.source import MissingFilesError
from ..errors import InputError, unknown_name
from ..evaluation.tasks.task import CorpusPart, Problem, load_problem

SPLITS = ("test", "dev")  # what is measured on: the first of these that is at hand
ALL = "all"  # the name of all suites together


class Entry(NamedTuple):
    """A task on a corpus, with a limit on its items where all would take hours."""

    corpus: str
    task: str
    limit: int | None = None


Suite = tuple[Entry, ...]
"""The measurements of a paper, those of a corpus in a row."""

Place = tuple[str, str, str]  # corpus, split and task


def _read(file: Path) -> dict[str, Suite]:
    stated = tomllib.loads(file.read_text(encoding="utf-8"))
    return {name: tuple(Entry(*entry) for entry in entries) for name, entries in stated.items()}


SUITES = _read(Path(__file__).with_name("suites.toml"))


def get_suite(name: str) -> Suite:
    """Look a suite up; raise InputError for an unknown name."""
    if name not in SUITES:
        raise unknown_name("suite", name, [*SUITES, ALL])
    return SUITES[name]


def load_suite(
    name: str, data_dir: str | Path | None, limit: int | None
) -> tuple[dict[Place, Problem], list[str]]:
    """Load the problems whose corpora are at hand, and name the others, with the reason if unusual.

    Raise MissingFilesError where no corpus is at hand.
    """
    problems: dict[Place, Problem] = {}
    left_out = []
    for entry in get_suite(name):
        named = f"{entry.corpus} ({entry.task})"
        try:
            problem = _load(entry, data_dir, limit)
        except MissingFilesError:
            left_out.append(named)
        except InputError as error:  # an extract of a corpus may be too little for a task
            left_out.append(f"{named}: {error}")
        else:
            problems[entry.corpus, str(problem.config["split"]), entry.task] = problem
    if not problems:
        raise MissingFilesError(
            f"suite {name}: got none of its corpora ({', '.join(left_out)}); "
            "give the folder that holds them with --data-dir or HF_DIALEMB_DATA"
        )
    return problems, left_out


def _load(entry: Entry, data_dir: str | Path | None, limit: int | None) -> Problem:
    allowed = min([size for size in (limit, entry.limit) if size is not None], default=None)
    *others, last = [split for split in SPLITS if split in get_corpus(entry.corpus).splits]
    for split in others:
        with suppress(MissingFilesError):
            return load_problem(entry.task, CorpusPart(entry.corpus, data_dir, split, allowed))
    return load_problem(entry.task, CorpusPart(entry.corpus, data_dir, last, allowed))
