"""The contract of a task: it loads a problem from a corpus, and the problem measures an encoder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...encoders.specs import Encoder
from ...models.dialogue import Dialogue

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class Measurement(NamedTuple):
    """One figure of one task.

    Attributes:
        task: The task's name.
        metric: The metric's name.
        setting: The variant of the metric; empty for the usual one.
        mean: The figure; a percentage for shares, F1, purity, nmi, spearman, map and mrr.
        std: The sample standard deviation over ``n`` repeats, None where there was one.
        n: The number of repeats.
        interval: Of ``mean``, at 95 %; see `hf_dialemb.evaluation.results.rows.Row`.
    """

    task: str
    metric: str
    setting: str
    mean: float
    std: float | None
    n: int
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Problem:
    """What is asked of an encoder on one split of one corpus.

    Attributes:
        config: What the results file says of it: corpus, split, limit, sizes, and every choice that decides a figure.
        measure: Encoder and seeds in, figures out. It encodes everything in one call of ``encode``, so that a baseline
            that is fitted on what it encodes can serve.
        dialogues: What a picture shows, in order; empty for none.
        labels: The label of each of them.
    """

    config: dict[str, Any]
    measure: Callable[[Encoder, Sequence[int]], list[Measurement]]
    dialogues: Sequence[Dialogue] = ()
    labels: Sequence[str] = ()


@dataclass(frozen=True)
class Task:
    """A task of the benchmark.

    Attributes:
        name: What result tables and the command line call it.
        load: Makes the problem: ``load(corpus, data_dir, split, limit)``; ``limit`` is the most items to measure on, a
            fixed random sample of them, None for all.
        source: The paper and section that defines it.
        kinds: The kinds of corpora that it takes (see `hf_dialemb.corpora.corpus.KINDS`).
        fine_tunes: Whether it trains a copy of the model, and so takes minutes rather than seconds.
    """

    name: str
    load: Callable[[str, str | Path | None, str, int | None], Problem]
    source: str
    kinds: tuple[str, ...] = field(default=("dialogues",))
    fine_tunes: bool = False


def percentage(
    task: str, metric: str, setting: str, values: Sequence[float], items: ArrayLike | None = None
) -> Measurement:
    """Makes a measurement of shares in [0, 1] as a percentage."""
    import numpy as np

    from .significance import mean_interval

    shares = 100 * np.asarray(values, dtype=np.float64)
    std = float(shares.std(ddof=1)) if len(shares) > 1 else None
    drawn = shares if items is None else 100 * np.asarray(items, dtype=np.float64)
    interval = mean_interval(drawn) if len(drawn) > 1 else None
    return Measurement(task, metric, setting, float(shares.mean()), std, len(shares), interval)
