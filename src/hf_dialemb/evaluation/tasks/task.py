"""The tasks: each loads a problem from a part of a corpus, and the problem measures an encoder."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ... import data
from ...data.corpus import ALL
from ...data.corpus_names import is_own
from ...data.reading_options import ReadingOptions
from ...dialogue import Dialogue
from ...encoders import Encoder
from ...errors import InputError, unknown_name
from ...hashing import json_key
from ...hooks import Registry
from ..results.rows import Row
from .sampling import fixed_sample, mean_interval

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Problem:
    """What is asked of an encoder on one split of one corpus.

    ``config`` is what the results file says of it: sizes, and every choice that decides a figure.
    Which part of which corpus it is, `load_problem` adds. ``measure`` encodes everything in one
    call, so that a baseline that is fitted on what it encodes can serve. A picture shows the
    dialogues, if any, by their labels.
    """

    config: dict[str, Any]
    measure: Callable[[Encoder, Sequence[int]], list[Row]]
    dialogues: Sequence[Dialogue] = ()
    labels: Sequence[str] = ()

    @property
    def is_part(self) -> bool:
        """Whether not all that the split holds is measured."""
        return bool(self.config.get("part"))


@dataclass
class CorpusPart:
    """A part of a corpus.

    Labelled dialogues in memory, a file, or a split of a published corpus.
    """

    # the dialogues, or the name or path that `load_dialogues` takes
    corpus: str | Sequence[Dialogue]
    data_dir: str | Path | None = None
    split: str = "test"
    limit: int | None = None  # the most items; None for all
    # how a file is read: keywords of `ReadingOptions`
    reading: Mapping[str, Any] = field(default_factory=dict)
    is_cut: bool = False  # whether the limit left something out
    # by split; tasks share them
    loaded: dict[str, list[Any]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.corpus, str):
            self.loaded[ALL] = list(self.corpus)
        if self.is_own:
            self.split = ALL  # neither a file nor a list has splits

    @property
    def is_own(self) -> bool:
        """Whether it is a file, a folder or dialogues in memory."""
        return not isinstance(self.corpus, str) or (
            self.corpus not in data.CORPORA and is_own(self.corpus)
        )

    @property
    def place(self) -> str:
        """The name or path of the corpus."""
        return self.corpus if isinstance(self.corpus, str) else "dialogues"

    @property
    def name(self) -> str:
        """The name of the corpus in a results file; that of an own file lacks its folder."""
        return Path(self.place).name if self.is_own else self.place

    @property
    def kind(self) -> str:
        """One of `hf_dialemb.data.corpus.KINDS`; own corpora hold dialogues."""
        return data.get_corpus(self.place).kind if self.place in data.CORPORA else "dialogues"

    def dialogues(self, split: str | None = None) -> list[Dialogue]:
        """Load the dialogues or utterances, or those of another split."""
        chosen = split or self.split
        if chosen not in self.loaded:
            self.loaded[chosen] = data.load_dialogues(
                self.place, self.data_dir, chosen, **{"strict": not self.is_own, **self.reading}
            )
        return self.loaded[chosen]

    def data_hash(self) -> str:
        """Return the digest of the items that were loaded."""
        return json_key(list(map(repr, self.loaded.get(self.split, ()))))

    def sample(self, items: Sequence[Item], otherwise: int | None = None) -> list[Item]:
        """Keep as many items as the limit says, or else ``otherwise``, always the same ones."""
        kept = fixed_sample(items, otherwise if self.limit is None else self.limit)
        self.is_cut |= len(kept) < len(items)
        return kept

    def error(self, sentence: str) -> InputError:
        """Return an error that names the part of the corpus."""
        split = "" if self.is_own else f", split {self.split}"
        return InputError(f"corpus {self.place}{split}: {sentence}")

    def check_splits(self, *learnt: str) -> None:
        """Raise InputError for a split that a task learns from, and for a corpus that lacks one."""
        names = " and ".join(learnt)
        splits = data.get_corpus(self.place).splits if self.place in data.CORPORA else ()
        missing = [name for name in learnt if name not in splits]
        if missing or self.split in (*learnt, ALL):
            got = (
                f"no split {missing[0]}"
                if missing
                else f"split {self.split}, which the task learns from"
            )
            raise InputError(
                f"corpus {self.place}: got {got}, expected {names} and another to measure on, of a "
                "corpus of the "
                "catalogue (dialemb corpus list); choose another"
            )


@dataclass(frozen=True)
class Task:
    """A task of the benchmark: the paper and section that defines it, and what it asks, in a line.

    ``loader`` is the function that makes a `Problem` of a `CorpusPart`, as ``"module:function"``,
    imported when it is called.
    """

    name: str
    title: str
    loader: str
    source: str
    kinds: Sequence[str] = ("dialogues",)

    def load(self, part: CorpusPart) -> Problem:
        """Load what the task asks of encoders."""
        module, _, function = self.loader.partition(":")
        return getattr(import_module(module), function)(part)  # type: ignore[no-any-return]


def percentage(
    task: str, metric: str, setting: str, values: ArrayLike, items: ArrayLike | None = None
) -> Row:
    """Make a row of shares in [0, 1], or correlations in [-1, 1], as a percentage.

    The interval is over repeats or, if given, over items.
    """
    shares = 100 * np.asarray(values, dtype=np.float64)
    interval = mean_interval(shares)
    scores = shares
    if items is not None:
        scores = 100 * np.asarray(items, dtype=np.float64)
        interval = mean_interval(scores, (-100.0 if scores.min() < 0 else 0.0, 100.0))
    return Row(
        task=task,
        metric=metric,
        setting=setting,
        mean=float(shares.mean()),
        std=float(shares.std(ddof=1)) if len(shares) > 1 else None,
        n=len(shares),
        interval=interval,
        scores=tuple(scores.tolist()),
    )


def item_percentage(
    task: str, metric: str, setting: str, items: Sequence[float] | NDArray[np.float64]
) -> Row:
    """Make a row of one repeat, the mean of the items' shares in [0, 1] as a percentage."""
    return percentage(task, metric, setting, [float(np.mean(items))], items)


def ask_encoder(encoder: Encoder, attribute: str, work: Callable[[Any], Result]) -> Result | None:
    """Have an encoder work by an attribute, such as its ``ranker``; None if it lacks it.

    Count the time if it can.
    """
    timed: Callable[[Callable[[], Result]], Result] | None = getattr(encoder, "timed", None)
    results = getattr(encoder, attribute, None)
    if results is None:
        return None
    return work(results) if timed is None else timed(lambda: work(results))


def read_tasks(file: Path) -> dict[str, Task]:
    """Read tasks from a TOML file that names each with its fields."""
    return {
        name: Task(name, **row)
        for name, row in tomllib.loads(file.read_text(encoding="utf-8")).items()
    }


TASKS = Registry("tasks", read_tasks(Path(__file__).with_name("tasks.toml")))
"""The tasks.

A further one is a module with a function that loads it, and an entry in ``tasks.toml``.

The figures of most carry the task's name; "domains" gives all those of the dial2vec benchmark.
"""

_OF_KIND = {
    "dialogues": ("domains",),
    "utterances": ("intent-classification",),
    "retrieval": ("semantic-retrieval",),
    "sentence-pairs": ("dialogue-sts",),
}
_OF_CORPUS = {
    "clinc150": ("intent-classification", "out-of-scope-detection"),
    "dialog2flow_evaluation": ("action-similarity",),
}


def get_task(name: str) -> Task:
    """Look a task of `TASKS` up; raise InputError for an unknown name."""
    if name not in TASKS:
        raise unknown_name("task", name, TASKS)
    return TASKS[name]  # type: ignore[no-any-return]


def default_tasks(corpus: str | CorpusPart) -> tuple[str, ...]:
    """Return the tasks that suit a corpus."""
    part = CorpusPart(corpus) if isinstance(corpus, str) else corpus
    return _OF_CORPUS.get(part.place) or _OF_KIND[part.kind]


def load_problem(name: str, part: CorpusPart) -> Problem:
    """Load what a task asks of encoders on a part of a corpus, which its configuration names."""
    task = get_task(name)
    part = replace(part, is_cut=False)
    if part.kind not in task.kinds:
        raise InputError(
            f"task {name}: got corpus {part.place}, which holds {part.kind}, expected "
            f"{' or '.join(task.kinds)}; "
            f"choose another corpus, or the task {' or '.join(default_tasks(part))}"
        )
    problem = task.load(part)
    chosen = ReadingOptions(**part.reading).chosen | ({"part": True} if part.is_cut else {})
    config = {
        "corpus": part.name,
        "split": part.split,
        "limit": part.limit,
        **chosen,
        **problem.config,
        "data_sha256": part.data_hash(),
    }
    return replace(problem, config=config)
