"""The suites of the benchmark: for each paper, the corpora and tasks that it measures on."""

import tomllib
from collections.abc import Sequence
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
    """One measurement: a task on a corpus, with a limit on its items where all would take hours."""

    corpus: str
    task: str
    limit: int | None = None


class Suite(NamedTuple):
    """What a paper measures on, that of a corpus one after the other.

    And further entries, whose tasks fine-tune.
    """

    entries: tuple[Entry, ...]
    fine_tuning: tuple[Entry, ...] = ()


Place = tuple[str, str, str]  # corpus, split and task
_LISTED = tomllib.loads(Path(__file__).with_name("suites.toml").read_text(encoding="utf-8"))
SUITES = {
    name: Suite(*(tuple(Entry(*entry) for entry in parts.get(part, ())) for part in Suite._fields))
    for name, parts in _LISTED.items()
}


def get_suite(name: str) -> Suite:
    """Look a suite up; raise InputError for an unknown name."""
    if name not in SUITES:
        raise unknown_name("suite", name, [*SUITES, ALL])
    return SUITES[name]


def load_suite(
    name: str,
    data_dir: str | Path | None,
    limit: int | None,
    fine_tune: bool,
    tasks: Sequence[str] = (),
) -> tuple[dict[Place, Problem], list[str]]:
    """Load the problems whose corpora are at hand, of some tasks or all.

    Raise MissingFilesError where none is left.

    Also returns the names of those that are not at hand, or with the reason why not, that cannot be
    made of what is.
    """
    suite = get_suite(name)
    problems: dict[Place, Problem] = {}
    left_out = []
    for entry in (*suite.entries, *(suite.fine_tuning if fine_tune else ())):
        if tasks and entry.task not in tasks:
            continue
        named = f"{entry.corpus} ({entry.task})"
        try:
            problem = _load(entry, data_dir, limit)
        except MissingFilesError:
            left_out.append(named)
        except (
            InputError
        ) as error:  # what little is at hand of a corpus may be too little for a task
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
