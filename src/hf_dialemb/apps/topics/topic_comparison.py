"""Compare two sets of dialogues: how they end, and which topics are new, grow or shrink."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import isfinite
from typing import Any

from ..flow.differences import (
    OTHERS,
    Difference,
    Pair,
    largest_first,
    mean_of,
    score_differences,
    with_p,
)
from ..flow.paths import KINDS, UNREAD
from ..pages.spreadsheets import Share

RECORD = ("id", "topic", "name", "similarity", "end", "time")
"""The columns of a dialogue's record that are no scores."""

_BAD = ("failed", "cancelled", "broken off")
_BADLY = "end badly"
_KINDS = {"new": "New topic", "growing": "More", "shrinking": "Less", "gone": "Gone", "": ""}

Record = Mapping[str, Any]
"""A dialogue: its topic's id, how it ends, and its metadata; see `RECORD`."""


@dataclass(frozen=True)
class Change:
    """How a topic differs between two sets."""

    topic: str  # its id
    name: str
    kind: str  # new, gone, growing, shrinking, or empty where it may be chance
    share: Difference  # of the dialogues of each set
    worse: tuple[str, ...]  # ways to end that are surely more frequent in the second set


@dataclass(frozen=True)
class Comparison:
    """How two sets of dialogues differ."""

    names: tuple[str, str]
    sizes: Pair
    ends: tuple[Difference, ...]  # ways to end, and scores
    changes: tuple[Change, ...]
    parts: tuple[dict[str, Any], dict[str, Any]]  # a row of a table for each set

    def findings(self) -> list[str]:
        """Say which topics differ beyond chance: new, more or less frequent, or ending worse."""
        lines = [
            f"{_KINDS[row.kind]}: {row.name}, {row.share} of dialogues"
            for row in self.changes
            if row.kind
        ]
        lines += [
            f"Worse ends: {row.name}, {end} of its dialogues"
            for row in self.changes
            for end in row.worse
        ]
        return lines or ["No topic differs more than chance explains"]

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each topic, for a table and the page."""
        return [
            {
                "first": self.names[0],
                "second": self.names[1],
                "topic": row.topic,
                "name": row.name,
                "change": row.kind,
                "dialogues in first": row.share.counts[0],
                "dialogues in second": row.share.counts[1],
                "share in first": Share(row.share.shares[0] or 0),
                "share in second": Share(row.share.shares[1] or 0),
                "p": row.share.p,
                "worse ends": row.worse,
            }
            for row in self.changes
        ]


def ends_of(comparisons: Iterable[Comparison]) -> list[str]:
    """Say how ends and scores of sets differ beyond chance, the largest difference first."""
    sure = [(own, compared) for compared in comparisons for own in compared.ends if own.sure]
    sure.sort(key=lambda pair: -abs(pair[0].gain or 0.0))
    lines = [
        f"{compared.names[1]}, beside {compared.names[0]}: {own.what} {own}"
        for own, compared in sure
    ]
    return lines or ["No end and no score differs more than chance explains"]


def lines_of(comparisons: Iterable[Comparison]) -> list[str]:
    """Say how ends and scores differ, and then, for each two sets, which topics do."""
    lines = ends_of(comparisons)
    for own in comparisons:
        pairs = zip(own.names, own.sizes, strict=True)
        lines.append("; ".join(f"{name}: {size:,} dialogues" for name, size in pairs))
        lines += own.findings()
    return lines


def parts_of_all(comparisons: Iterable[Comparison]) -> list[dict[str, Any]]:
    """Return a row of a table for each set that is compared."""
    rows = [part for own in comparisons for part in own.parts if part["part"] != OTHERS]
    return list({row["part"]: row for row in rows}.values())


def compared_topics(
    names: Mapping[str, str],
    sets: tuple[Sequence[Record], Sequence[Record]],
    titles: tuple[str, str],
    known: Collection[str] | None = None,
    times: int = 1,
) -> Comparison:
    """Compare two sets of dialogues by their ends, their scores and their topics.

    Shares of topics are tested together, by Fisher's test with Holm's correction; so are the ways
    to end of all dialogues, and of those of each topic.

    Args:
        names: The names of topics by their ids.
        sets: The dialogues of each set.
        titles: The names of the sets.
        known: The topics that are not new; by default all.
        times: The number of comparisons that are made together, by which p is multiplied.
    """
    sizes = len(sets[0]), len(sets[1])
    first, second = (Counter(row["topic"] for row in rows) for rows in sets)
    before, after = (Counter((row["topic"], row["end"]) for row in rows) for rows in sets)
    shares = [Difference(topic, (first[topic], second[topic]), sizes) for topic in names]
    ways = [
        Difference(
            (topic, end),
            (before[topic, end], after[topic, end]),
            (first[topic] - before[topic, UNREAD], second[topic] - after[topic, UNREAD]),
        )
        for topic, end in product(names, _BAD)
    ]
    worse: dict[str, list[str]] = {topic: [] for topic in names}
    for end in with_p(ways, times):
        if end.sure and (end.gain or 0) > 0:
            worse[end.what[0]].append(f"{end.what[1]} {end}")
    changes = [
        Change(share.what, names[share.what], _kind(share, known), share, tuple(worse[share.what]))
        for share in largest_first(with_p(shares, times))
    ]
    changes.sort(key=lambda row: list(_KINDS).index(row.kind))
    columns = _numbers([*sets[0], *sets[1]])
    scores = {name: (own[: sizes[0]], own[sizes[0] :]) for name, own in columns.items()}
    ends = [*_ends(sets, times), *score_differences(scores, times)]
    parts = _part(titles[0], sets[0]), _part(titles[1], sets[1])
    return Comparison(titles, sizes, tuple(ends), tuple(changes), parts)


def _kind(share: Difference, known: Collection[str] | None) -> str:
    if known is not None and share.what not in known and share.counts[1]:
        return "new"
    if not share.sure:
        return ""
    if not share.counts[1]:
        return "gone"
    return "growing" if (share.gain or 0) > 0 else "shrinking"


def _ends(sets: tuple[Sequence[Record], Sequence[Record]], times: int) -> list[Difference]:
    counts = [_counted_ends(rows) for rows in sets]
    sizes = len(sets[0]) - counts[0][UNREAD], len(sets[1]) - counts[1][UNREAD]
    return with_p(
        [Difference(kind, (counts[0][kind], counts[1][kind]), sizes) for kind in (_BADLY, *_BAD)],
        times,
    )


def _counted_ends(rows: Sequence[Record]) -> Counter[str]:
    counts = Counter(row["end"] for row in rows)
    counts[_BADLY] = sum(counts[kind] for kind in _BAD)
    return counts


def _numbers(rows: Sequence[Record]) -> dict[str, list[float | None]]:
    """Return the columns of numbers, None where a row has none; ids are no such column."""
    columns = {}
    for name in dict.fromkeys(name for row in rows for name in row if name not in RECORD):
        values = [row.get(name) for row in rows]
        numbers = [_number(value) for value in values]
        given = [value for value in values if value not in (None, "")]
        read = [number for number in numbers if number is not None]
        is_id = len(set(read)) == len(read) and all(map(float.is_integer, read))
        if len(read) == len(given) and not is_id:
            columns[name] = numbers
    return columns


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if isfinite(number) else None


def _part(name: str, rows: Sequence[Record]) -> dict[str, Any]:
    """Return a row of a table for a set: how its dialogues end, and the means of their scores."""
    counts = _counted_ends(rows)
    kinds = [_BADLY, *(kind for kind in KINDS if kind != UNREAD or counts[kind])]
    ends = {kind: Share(counts[kind] / max(1, len(rows))) for kind in kinds}
    means = {f"mean {score}": mean_of(own) for score, own in _numbers(rows).items()}
    return {"part": name, "dialogues": len(rows), **ends, **means}
