"""Compare the topics of two sets of dialogues.

Which are new, grow or shrink, and which end worse.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Any

import numpy as np

from ...dialogue import Dialogue, metadata_columns
from ...errors import InputError, nearest
from ..flow.flow_comparison import SIGNIFICANT, ShareDifference, tested_shares

TIME = "month"  # what dialogues are compared by if not by their metadata
_BAD = ("failed", "cancelled", "broken off")
_FEWEST = 2  # dialogues of a set
_MOST = 20  # values that are compared
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Change:
    """How a topic differs between two sets."""

    topic: str  # its id
    name: str
    kind: str  # new, gone, growing, shrinking, or empty where it may be chance
    share: ShareDifference  # of the dialogues of each set
    intervals: tuple[tuple[float, float], tuple[float, float]]  # Wilson's, 95 %, of the two shares
    ends: ShareDifference  # of the topic's dialogues, those that do not finish
    # ways to end that are more frequent in the second set, surely
    worse: tuple[ShareDifference, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """How topics differ between two sets of dialogues."""

    names: tuple[str, str]
    sizes: tuple[int, int]
    changes: tuple[Change, ...]
    steps: tuple[str, ...] = ()  # what flows of topics say of the second set, in sentences
    in_time: bool = True  # whether the second set is later than the first

    def lines(self) -> list[str]:
        """Say what differs.

        New topics and steps, worse ends, then what grows, shrinks and is gone.
        """
        lines = [
            f"{name}: {size:,} dialogues" for name, size in zip(self.names, self.sizes, strict=True)
        ]
        return ["; ".join(lines), *self.findings()]

    def findings(self) -> list[str]:
        """Say what differs beyond chance, with new topics, worse ends and new steps in turn.

        Or that nothing does.
        """
        by_kind = {kind: [row for row in self.changes if row.kind == kind] for kind in _ORDER}
        where = "" if self.in_time else f" in {self.names[1]}"
        new = [f"New topic: {row.name}, {row.share} of dialogues" for row in by_kind["new"]]
        worse = [
            f"Worse ends{where}: {row.name}, {end.name} {end} of its dialogues"
            for row in self.changes
            for end in row.worse
        ]
        lines = [line for lines in zip_longest(new, worse, self.steps) for line in lines if line]
        for kind in ("growing", "shrinking", "gone"):
            word = kind.capitalize() if self.in_time else f"{_BESIDE[kind]}{where}"
            lines += [f"{word}: {row.name}, {row.share} of dialogues" for row in by_kind[kind]]
        return lines or ["No topic differs more than chance explains"]

    def record(self) -> dict[str, Any]:
        """Return the content of the page, as JSON has it."""
        rows = [
            {**asdict(row), "worse": [f"{end.name} {end}" for end in row.worse]}
            for row in self.changes
        ]
        facts = {"names": self.names, "sizes": self.sizes}
        return {**facts, "lines": self.findings(), "rows": rows}


_BESIDE = {"growing": "More", "shrinking": "Less", "gone": "None"}  # of sets of which none is later
_ORDER = ("new", "growing", "shrinking", "gone", "")


def compared_topics(
    names: Mapping[str, str],
    sets: tuple[Sequence[tuple[str, str]], Sequence[tuple[str, str]]],
    titles: tuple[str, str],
    known: Collection[str] | None = None,
    times: int = 1,
) -> Comparison:
    """Compare two sets of dialogues, each a topic's id and an end, by topics and by how each
    topic's dialogues end.

    Shares of topics are tested together, by Fisher's test with Holm's correction; so are the ways
    to end of all topics. ``names`` are those of topics by their ids, ``titles`` those of the sets.
    Topics that are not ``known`` are new; by default none is. ``times`` is the number of such
    comparisons that are made together, by which p is multiplied.
    """
    sizes = len(sets[0]), len(sets[1])
    counts = [Counter(topic for topic, _ in own) for own in sets]
    ends = [Counter(own) for own in sets]
    shares = tested_shares(
        [(topic, (counts[0][topic], counts[1][topic]), sizes) for topic in names]
    )
    both = [topic for topic in names if counts[0][topic] and counts[1][topic]]
    ways = [(topic, kind) for topic in both for kind in _BAD]
    tested = tested_shares(
        [
            (
                kind,
                (ends[0][topic, kind], ends[1][topic, kind]),
                (counts[0][topic], counts[1][topic]),
            )
            for topic, kind in ways
        ]
    )
    changes = []
    for topic, share in zip(names, shares, strict=True):
        rates = [count / size for count, size in zip(share.counts, sizes, strict=True)]
        is_new = known is not None and topic not in known and share.counts[1] > 0
        kind = "gone" if not share.counts[1] else "growing" if rates[1] > rates[0] else "shrinking"
        kind = kind if share.p * times <= SIGNIFICANT else ""
        of_topic = [
            change for (other, _), change in zip(ways, tested, strict=True) if other == topic
        ]
        worse = tuple(
            end
            for end in of_topic
            if end.p * times <= SIGNIFICANT and _rate(end, 1) > _rate(end, 0)
        )
        bad = tuple(sum(own[topic, kind] for kind in _BAD) for own in ends)
        unfinished = ShareDifference(
            "not finished", (bad[0], bad[1]), (counts[0][topic], counts[1][topic]), 1.0
        )
        intervals = wilson(share.counts[0], sizes[0]), wilson(share.counts[1], sizes[1])
        changes.append(
            Change(
                topic, names[topic], "new" if is_new else kind, share, intervals, unfinished, worse
            )
        )
    order = {kind: place for place, kind in enumerate(_ORDER)}
    return Comparison(
        titles, sizes, tuple(sorted(changes, key=lambda row: (order[row.kind], -_gap(row))))
    )


def _gap(row: Change) -> float:
    return abs(_rate(row.share, 1) - _rate(row.share, 0))


def _rate(share: ShareDifference, place: int) -> float:
    return share.counts[place] / max(1, share.sizes[place])


def wilson(count: int, size: int) -> tuple[float, float]:
    """Return Wilson's interval of a share, at 95 %."""
    from scipy.stats import binomtest

    interval = binomtest(count, size).proportion_ci(_CONFIDENCE, "wilson")
    return float(interval.low), float(interval.high)


def rows_of(comparisons: Sequence[Comparison]) -> list[dict[str, Any]]:
    """Return a row for each topic of each comparison, for a table."""
    rows = []
    for own in comparisons:
        for row in own.changes:
            record: dict[str, Any] = {
                "first": own.names[0],
                "second": own.names[1],
                "topic": row.topic,
            }
            record |= {"name": row.name, "change": row.kind}
            for place, word in enumerate(("first", "second")):
                low, high = row.intervals[place]
                record |= {
                    f"dialogues in {word}": row.share.counts[place],
                    f"share in {word}": _rate(row.share, place),
                }
                record |= {f"low in {word}": low, f"high in {word}": high}
                record[f"not finished in {word}"] = row.ends.counts[place]
            rows.append(
                record
                | {"p": row.share.p, "worse ends": [f"{end.name} {end}" for end in row.worse]}
            )
    return rows


def sets_of(dialogues: Sequence[Dialogue], by: str) -> dict[str, list[int]]:
    """Divide dialogues by their month, or by a name of their metadata.

    Return the places of each part, in order.

    Numbers with more than `_MOST` values are divided at their median. Dialogues without a value are
    left out. An InputError says that no dialogue has the value, there are too many values, or only
    one.
    """
    columns = metadata_columns(dialogues)
    values: list[Any] = (
        [own.time[:7] or None for own in dialogues] if by == TIME and TIME not in columns else []
    )
    if not values:
        if by not in columns:
            known = sorted({*columns, *([TIME] if any(own.time for own in dialogues) else [])})
            names = ", ".join(known) or "nothing, as dialogues have neither times nor metadata"
            raise InputError(
                f"compare: got '{by}', expected one of {names}; choose one.{nearest(by, known)}"
            )
        values = columns[by]
    values = _numbers_in_halves(values)
    parts: dict[str, list[int]] = {}
    for row, value in enumerate(values):
        if value is not None and value != "":
            parts.setdefault(str(value), []).append(row)
    kept = {name: rows for name, rows in sorted(parts.items()) if len(rows) >= _FEWEST}
    if not 2 <= len(kept) <= _MOST:
        expected = f"2 to {_MOST} that at least {_FEWEST} dialogues have"
        raise InputError(
            f"compare: got {len(kept)} values of '{by}', expected {expected}; choose another column"
        )
    return kept


def _numbers_in_halves(values: Sequence[Any]) -> list[Any]:
    """Put numbers, if there are many different ones, into those up to their median and those above."""
    numbers: dict[int, float] = {}
    for row, value in enumerate(values):
        try:
            numbers[row] = float(value) if value not in (None, "") else np.nan
        except (TypeError, ValueError):
            return list(values)
    known = [number for number in numbers.values() if np.isfinite(number)]
    if len(set(known)) <= _MOST:
        return list(values)
    middle = float(np.median(known))
    word = {True: f"above {middle:g}", False: f"at most {middle:g}"}
    return [word[number > middle] if np.isfinite(number) else None for number in numbers.values()]
