"""What tasks draw.

Fixed samples of a corpus, and the few examples of each label that a repeat is given.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from ...errors import InputError

# how many labelled examples each label gets, as in the papers of DSE and Dialog2Flow
SHOTS = (1, 5)
POOL = 2 * max(SHOTS)  # items of each label from which examples are drawn under a limit

Item = TypeVar("Item")


def fixed_sample(items: Sequence[Item], limit: int | None) -> list[Item]:
    """Draw at most ``limit`` items, always the same ones."""
    if limit is None or limit >= len(items):
        return list(items)
    return [
        items[row]
        for row in np.sort(np.random.default_rng(0).choice(len(items), limit, replace=False))
    ]


def few_of_each(
    items: Sequence[Item], label: Callable[[Item], str], limit: int | None
) -> list[Item]:
    """Keep, under a limit, `POOL` examples of each label, so that few are embedded.

    They are always the same ones.
    """
    if limit is None:
        return list(items)
    rows: dict[str, list[int]] = {}
    for row in np.random.default_rng(0).permutation(len(items)).tolist():
        rows.setdefault(label(items[row]), []).append(row)
    return [
        items[row] for row in sorted(row for results in rows.values() for row in results[:POOL])
    ]


def running_totals(sizes: Mapping[str, int]) -> dict[str, int]:
    """Put names into a random order, always the same one, each with the size of all up to it."""
    order = np.random.default_rng(0).permutation(sorted(sizes)).tolist()
    return dict(zip(order, accumulate(sizes[name] for name in order), strict=True))


def draw_examples(
    labels: NDArray[Any],
    pool: NDArray[np.intp],
    shots: int,
    needed: int,
    generator: np.random.Generator,
) -> NDArray[np.intp]:
    """Draw rows of examples of each label of which the pool of rows holds as many as are needed."""
    counts = Counter(labels[pool].tolist())
    classes = sorted(label for label, count in counts.items() if count >= needed)
    if len(classes) < 2:
        raise InputError(
            f"examples: got {len(classes)} labels with {needed} utterances to draw {shots} "
            "examples from, expected at "
            "least two; choose another corpus or raise the limit"
        )
    drawn = [
        generator.choice(pool[labels[pool] == label], shots, replace=False) for label in classes
    ]
    return np.sort(np.concatenate(drawn))


def mean_interval(
    values: ArrayLike, bounds: tuple[float, float] | None = None
) -> tuple[float, float] | None:
    """Compute the 95 % interval of a mean by Student's t; None of fewer than three values.

    Of items that are scored one by one, most scores may lie at a bound: a value at either bound is
    then counted too (as Agresti and Caffo do for shares, 2000), without which the interval of few
    items, or of rare differences, is far too narrow.
    """
    numbers = np.asarray(values, dtype=np.float64)
    if len(numbers) < 3:
        return None
    low, high = bounds or (-np.inf, np.inf)
    if bounds:
        numbers = np.append(numbers, bounds)
    spread = numbers.std(ddof=1) / np.sqrt(len(numbers))
    reach = float(stdtrit(len(numbers) - 1, 0.975) * spread)
    mean = float(numbers.mean())
    return max(low, mean - reach), min(high, mean + reach)
