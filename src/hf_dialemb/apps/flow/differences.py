"""Differences between two sets of dialogues, and which of them are more than chance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import floor
from typing import Any

from ...dialogue import Dialogue
from ...errors import InputError, unknown_name
from ..pages.spreadsheets import metadata_columns

SIGNIFICANT = 0.05  # a difference with a higher corrected p may be chance
OTHERS = "others"  # the name of all dialogues but those of a value
TIME = "month"  # what dialogues are compared by if not by their metadata
_FEWEST = 2  # dialogues of a set
_FEWEST_SCORES = 5  # dialogues of a set
_MOST = 20  # values that are compared

Pair = tuple[int, int]
"""A number of each of the two sets."""


@dataclass(frozen=True)
class Difference:
    """How often two sets have something."""

    what: Any
    counts: Pair
    sizes: Pair  # of which these are counts
    # of Fisher's exact test, two-sided, corrected by Holm's rule for all that were tested together
    p: float = 1.0

    @property
    def shares(self) -> list[float | None]:
        """The share of each set; None where its size is 0."""
        pairs = zip(self.counts, self.sizes, strict=True)
        return [count / size if size else None for count, size in pairs]

    @property
    def gain(self) -> float | None:
        """The second share minus the first; None where a share is."""
        first, second = self.shares
        return None if first is None or second is None else second - first

    @property
    def sure(self) -> bool:
        """Whether it is more than chance explains."""
        return self.p <= SIGNIFICANT

    def __str__(self) -> str:
        before, after = map(percent, self.shares)
        return f"{before} to {after}"


@dataclass(frozen=True)
class ScoreDifference(Difference):
    """How a number that dialogues have differs between two sets; the counts are theirs."""

    means: tuple[float, float] = (0.0, 0.0)
    effect: float = 0.0  # rank-biserial correlation, in [-1, 1]; positive where it is higher later

    @property
    def gain(self) -> float:
        """The effect, which can be compared with differences of shares."""
        return self.effect

    def __str__(self) -> str:
        return "{:.4g} to {:.4g}".format(*self.means)


def percent(share: float | None) -> str:
    """Write a share in percent, halves rounded up as on pages."""
    rate = 100 * (share or 0)
    return f"{rate:.1f}%" if 0 < rate < 1 else f"{floor(rate + 0.5)}%"


def with_p(differences: Sequence[Difference], times: int = 1) -> list[Difference]:
    """Test differences together, and correct p by Holm's rule.

    ``times`` is the number of such comparisons that are made, by which p is multiplied. What a set
    has no part in is not tested.
    """
    both = [own for own in differences if 0 not in own.sizes]
    p = iter(holm([_exact_p(own.counts, own.sizes) for own in both]))
    return [
        own if 0 in own.sizes else replace(own, p=min(1.0, next(p) * times)) for own in differences
    ]


def score_differences(
    scores: Mapping[str, tuple[Sequence[float | None], Sequence[float | None]]], times: int = 1
) -> list[ScoreDifference]:
    """Test the numbers of two sets together, by the test of Mann and Whitney (1947).

    None is passed over, and so are scores that few of a set have. See `with_p`.
    """
    from scipy.stats import mannwhitneyu

    differences = []
    p = []
    for name, (before, after) in scores.items():
        first, second = ([score for score in own if score is not None] for own in (before, after))
        sizes = len(first), len(second)
        if min(sizes) < _FEWEST_SCORES:
            continue
        result = mannwhitneyu(second, first)
        effect = 2 * float(result.statistic) / (sizes[0] * sizes[1]) - 1
        means = mean_of(first) or 0.0, mean_of(second) or 0.0
        differences.append(ScoreDifference(f"mean {name}", sizes, sizes, 1.0, means, effect))
        p.append(float(result.pvalue))
    return [
        replace(own, p=min(1.0, value * times))
        for own, value in zip(differences, holm(p), strict=True)
    ]


def mean_of(scores: Sequence[float | None]) -> float | None:
    """Return the mean of the scores that are there; None where none is."""
    given = [score for score in scores if score is not None]
    return sum(given) / len(given) if given else None


def largest_first(differences: Sequence[Difference]) -> list[Difference]:
    """Sort differences by falling size, those that are more than chance first."""
    return sorted(differences, key=lambda own: (not own.sure, -abs(own.gain or 0.0)))


def holm(p: Sequence[float]) -> list[float]:
    """Correct p values for their number by Holm's rule (1979)."""
    largest = 0.0
    corrected = [1.0] * len(p)
    for place, row in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        largest = max(largest, min(1.0, p[row] * (len(p) - place)))
        corrected[row] = largest
    return corrected


@lru_cache(maxsize=100_000)  # most transitions are rare, so that many have the same counts
def _exact_p(counts: Pair, sizes: Pair) -> float:
    """Return the p value of Fisher's exact test of a table of two by two counts, two-sided."""
    from scipy.stats import fisher_exact

    others = [size - count for count, size in zip(counts, sizes, strict=True)]
    return float(fisher_exact([counts, others]).pvalue)


Part = tuple[str, list[int]]
"""The name of a set of dialogues, and their places."""


def parts_of(dialogues: Sequence[Dialogue], by: str) -> list[tuple[Part, Part]]:
    """Divide dialogues by their month, or by a name of their metadata, in the order of values.

    Dialogues without a value are left out. Two parts are a pair; of more, each makes a pair with
    all the others.

    Raises:
        InputError: No dialogue has the value, there are too many values, or only one.
    """
    columns = metadata_columns(dialogues)
    if any(own.time for own in dialogues):
        columns = {TIME: [own.time[:7] for own in dialogues]} | columns
    if by not in columns:
        raise unknown_name("column or 'month'", by, columns)
    parts: dict[str, list[int]] = {}
    for row, value in enumerate(columns[by]):
        if value not in (None, ""):
            parts.setdefault(str(value), []).append(row)
    kept = {name: rows for name, rows in sorted(parts.items()) if len(rows) >= _FEWEST}
    if not 2 <= len(kept) <= _MOST:
        raise InputError(
            f"got {len(kept)} values of '{by}', expected 2 to {_MOST} that at least {_FEWEST} "
            "dialogues have; choose another column"
        )
    if len(kept) == 2:
        first, second = kept.items()
        return [(first, second)]
    everything = set().union(*kept.values())
    return [
        ((OTHERS, sorted(everything.difference(rows))), (name, rows)) for name, rows in kept.items()
    ]
