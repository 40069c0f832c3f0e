"""The contract of a task: it loads a problem from a part of a corpus, and the problem measures an encoder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ... import corpora
from ...corpora import loading
from ...corpora.corpus import ALL
from ...corpora.own.reading import is_own
from ...dialogue import Dialogue
from ...encoders import Encoder
from ...errors import InputError
from ...hashing import json_key
from ..results.rows import Row
from .sampling import fixed_sample, mean_interval

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Problem:
    """What is asked of an encoder on one split of one corpus.

    ``config`` is what the results file says of it: sizes, and every choice that decides a figure. Which part of which
    corpus it is, `hf_dialemb.evaluation.tasks.registry.load_problem` adds. ``measure`` encodes everything in one call,
    so that a baseline that is fitted on what it encodes can serve. A picture shows the dialogues, if any, by their
    labels.
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
    """A part of a corpus: labelled dialogues in memory, a file, or a split of a published corpus.

    Attributes:
        corpus: The dialogues, or the name or path that `load_dialogues` takes.
        limit: The most items; None for all.
        is_cut: Whether the limit left something out.
        loaded: The dialogues of each split that was read, which tasks share.
    """

    corpus: str | Sequence[Dialogue]
    data_dir: str | Path | None = None
    split: str = "test"
    limit: int | None = None
    columns: str | None = None
    roles: str | None = None
    is_cut: bool = False
    loaded: dict[str, list[Dialogue]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.corpus, str):
            self.loaded[ALL] = list(self.corpus)
        if self.is_own:
            self.split = ALL  # neither a file nor a list has splits

    @property
    def is_own(self) -> bool:
        """Whether it is a file, a folder or dialogues in memory."""
        return not isinstance(self.corpus, str) or (self.corpus not in corpora.CORPORA and is_own(self.corpus))

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
        """One of `hf_dialemb.corpora.corpus.KINDS`; own corpora hold dialogues."""
        return corpora.get_corpus(self.place).kind if self.place in corpora.CORPORA else "dialogues"

    def dialogues(self, split: str | None = None) -> list[Dialogue]:
        """Load the dialogues or utterances, or those of another split."""
        chosen = split or self.split
        if chosen not in self.loaded:
            self.loaded[chosen] = corpora.load_dialogues(
                self.place, self.data_dir, chosen, columns=self.columns, roles=self.roles
            )
        return self.loaded[chosen]

    def data_hash(self) -> str | None:
        """Return the digest of the corpus's files or of the dialogues in memory; None where there is no file."""
        if isinstance(self.corpus, str):
            return loading.data_hash(self.corpus, self.data_dir)
        return json_key([repr(dialogue) for dialogue in self.corpus])

    def examples(self) -> list[Any]:
        """Load the items of a corpus of another kind."""
        return corpora.load_examples(self.place, self.data_dir, self.split)

    def sample(self, items: Sequence[Item], otherwise: int | None = None) -> list[Item]:
        """Keep as many items as the limit says, or without one ``otherwise``, always the same ones."""
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
        if self.place not in corpora.CORPORA:
            raise InputError(
                f"corpus {self.place}: got your own file or a dataset of the Hub, expected one of the catalogue "
                f"(dialemb corpus list), whose {names} the task learns from; choose one"
            )
        missing = [name for name in learnt if name not in corpora.get_corpus(self.place).splits]
        if missing or self.split in (*learnt, "all"):
            got = f"no split {missing[0]}" if missing else f"split {self.split}, which the task learns from"
            raise InputError(
                f"corpus {self.place}: got {got}, expected {names} and another to measure on; choose another split or "
                "corpus"
            )


@dataclass(frozen=True)
class Task:
    """A task of the benchmark: the paper and section that defines it, and what it asks, in a line.

    ``loader`` is the function that makes a `Problem` of a `CorpusPart`, as ``"module:function"``; it is
    imported when it is called. One that fine-tunes trains a copy of the model, and takes minutes rather than seconds.
    """

    name: str
    title: str
    loader: str
    source: str
    kinds: tuple[str, ...] = ("dialogues",)
    fine_tunes: bool = False

    def load(self, part: CorpusPart) -> Problem:
        """Load what the task asks of encoders."""
        module, _, function = self.loader.partition(":")
        problem: Problem = getattr(import_module(module), function)(part)
        return problem


def percentage(task: str, metric: str, setting: str, values: ArrayLike, items: ArrayLike | None = None) -> Row:
    """Make a measurement of shares in [0, 1] as a percentage, its interval over repeats or, if given, over items."""
    shares = 100 * np.asarray(values, dtype=np.float64)
    std = float(shares.std(ddof=1)) if len(shares) > 1 else None
    drawn = shares if items is None else 100 * np.asarray(items, dtype=np.float64)
    interval = mean_interval(drawn) if len(drawn) > 1 else None
    mean, n = float(shares.mean()), len(shares)
    return Row(task=task, metric=metric, setting=setting, mean=mean, std=std, n=n, interval=interval)


def item_percentage(task: str, metric: str, setting: str, items: Sequence[float] | NDArray[np.float64]) -> Row:
    """Make a measurement of one repeat, the mean of the items' shares in [0, 1], as a percentage."""
    return percentage(task, metric, setting, [float(np.mean(items))], items)


def ask_encoder(encoder: Encoder, attribute: str, work: Callable[[Any], Result]) -> Result | None:
    """Have an encoder work by an attribute, such as rank by its ``ranker``; return None if it lacks the attribute.

    An encoder that remembers counts the time.
    """
    timed: Callable[[Callable[[], Result]], Result] | None = getattr(encoder, "timed", None)
    results = getattr(encoder, attribute, None)
    if results is None:
        return None
    return work(results) if timed is None else timed(lambda: work(results))
