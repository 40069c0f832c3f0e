"""Compare the topics of two sets of dialogues: which are new, grow, shrink, or end worse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ...dialogue import Dialogue, metadata_columns
from ...errors import InputError, nearest
from ..flow.flow_comparison import SIGNIFICANT, ShareDifference, tested_shares

TIME = "month"  # what dialogues are compared by if not by their metadata
_BAD = ("failed", "cancelled", "broken off")
_KINDS = ("new", "growing", "shrinking", "gone", "")
_BESIDE = {"growing": "More", "shrinking": "Less", "gone": "None"}  # of sets of which none is later
_FEWEST = 2  # dialogues of a set
_MOST = 20  # values that are compared
_CONFIDENCE = 0.95

Pair = tuple[int, int]
"""A number of each of the two sets."""


@dataclass(frozen=True)
class Change:
    """How a topic differs between two sets."""

    topic: str  # its id
    name: str
    kind: str  # new, gone, growing, shrinking, or empty where it may be chance
    share: ShareDifference  # of the dialogues of each set
    intervals: tuple[tuple[float, float], tuple[float, float]]  # Wilson's, 95 %, of the two shares
    unfinished: Pair  # the topic's dialogues that do not finish
    worse: tuple[ShareDifference, ...] = ()  # ways to end that are surely more frequent later


@dataclass(frozen=True)
class Comparison:
    """How topics differ between two sets of dialogues."""

    names: tuple[str, str]
    sizes: Pair
    changes: tuple[Change, ...]
    in_time: bool = True  # whether the second set is later than the first

    def lines(self) -> list[str]:
        """Say how large the sets are, and what differs."""
        pairs = zip(self.names, self.sizes, strict=True)
        sizes = "; ".join(f"{name}: {size:,} dialogues" for name, size in pairs)
        return [sizes, *self.findings()]

    def findings(self) -> list[str]:
        """Say what differs beyond chance: new topics, worse ends, and what grows and shrinks."""
        where = "" if self.in_time else f" in {self.names[1]}"
        worse = [
            f"Worse ends{where}: {row.name}, {end.name} {end} of its dialogues"
            for row in self.changes
            for end in row.worse
        ]
        lines = []
        for row in self.changes:
            if row.kind == "new":
                lines.append(f"New topic: {row.name}, {row.share} of dialogues")
            elif row.kind:
                word = row.kind.capitalize() if self.in_time else f"{_BESIDE[row.kind]}{where}"
                lines.append(f"{word}: {row.name}, {row.share} of dialogues")
        new = sum(row.kind == "new" for row in self.changes)
        lines[new:new] = worse
        return lines or ["No topic differs more than chance explains"]

    def record(self) -> dict[str, Any]:
        """Return the content of the page, as JSON has it."""
        rows = [asdict(row) | {"worse": _worse_ends(row)} for row in self.changes]
        facts = {"names": self.names, "sizes": self.sizes}
        return {**facts, "lines": self.findings(), "rows": rows}


def compared_topics(
    names: Mapping[str, str],
    sets: tuple[Sequence[tuple[str, str]], Sequence[tuple[str, str]]],
    titles: tuple[str, str],
    known: Collection[str] | None = None,
    times: int = 1,
) -> Comparison:
    """Compare two sets of dialogues by their topics, and by how each topic's dialogues end.

    Shares of topics are tested together, by Fisher's test with Holm's correction; so are the ways
    to end of all topics.

    Args:
        names: The names of topics by their ids.
        sets: For each dialogue of a set, the id of its topic, and how it ends.
        titles: The names of the sets.
        known: The topics that are not new; by default all.
        times: The number of comparisons that are made together, by which p is multiplied.
    """
    sizes = len(sets[0]), len(sets[1])
    of_topic = [Counter(topic for topic, _ in own) for own in sets]
    of_end = [Counter(own) for own in sets]
    counts = {topic: (of_topic[0][topic], of_topic[1][topic]) for topic in names}
    shares = tested_shares([(topic, pair, sizes) for topic, pair in counts.items()])
    ways = [(topic, kind) for topic, pair in counts.items() if all(pair) for kind in _BAD]
    ends = tested_shares(
        [(way[1], (of_end[0][way], of_end[1][way]), counts[way[0]]) for way in ways]
    )
    worse: dict[str, list[ShareDifference]] = {}
    for (topic, _), end in zip(ways, ends, strict=True):
        if end.p * times <= SIGNIFICANT and _gain(end) > 0:
            worse.setdefault(topic, []).append(end)
    changes = []
    for share in shares:
        topic, pair = share.name, share.counts
        kind = ""
        if known is not None and topic not in known and pair[1] > 0:
            kind = "new"
        elif share.p * times <= SIGNIFICANT:
            kind = _direction(share)
        bad = [sum(own[topic, end] for end in _BAD) for own in of_end]
        change = Change(
            topic=topic,
            name=names[topic],
            kind=kind,
            share=share,
            intervals=(wilson(pair[0], sizes[0]), wilson(pair[1], sizes[1])),
            unfinished=(bad[0], bad[1]),
            worse=tuple(worse.get(topic, ())),
        )
        changes.append(change)
    changes.sort(key=lambda row: (_KINDS.index(row.kind), -abs(_gain(row.share))))
    return Comparison(titles, sizes, tuple(changes))


def _direction(share: ShareDifference) -> str:
    if not share.counts[1]:
        return "gone"
    return "growing" if _gain(share) > 0 else "shrinking"


def _gain(share: ShareDifference) -> float:
    """Return how much larger a share is in the second set."""
    return _rate(share, 1) - _rate(share, 0)


def _rate(share: ShareDifference, place: int) -> float:
    return share.counts[place] / max(1, share.sizes[place])


def _worse_ends(row: Change) -> list[str]:
    return [f"{end.name} {end}" for end in row.worse]


def wilson(count: int, size: int) -> tuple[float, float]:
    """Return Wilson's interval of a share, at 95 %."""
    from scipy.stats import binomtest

    interval = binomtest(count, size).proportion_ci(_CONFIDENCE, "wilson")
    return float(interval.low), float(interval.high)


def rows_of(comparisons: Sequence[Comparison]) -> list[dict[str, Any]]:
    """Return a row for each topic of each comparison, for a table."""
    rows = []
    for comparison in comparisons:
        for change in comparison.changes:
            record: dict[str, Any] = dict(zip(("first", "second"), comparison.names, strict=True))
            record |= {"topic": change.topic, "name": change.name, "change": change.kind}
            for place, word in enumerate(("first", "second")):
                record[f"dialogues in {word}"] = change.share.counts[place]
                record[f"share in {word}"] = _rate(change.share, place)
                record[f"low in {word}"], record[f"high in {word}"] = change.intervals[place]
                record[f"not finished in {word}"] = change.unfinished[place]
            rows.append(record | {"p": change.share.p, "worse ends": _worse_ends(change)})
    return rows


def sets_of(dialogues: Sequence[Dialogue], by: str) -> dict[str, list[int]]:
    """Divide dialogues by their month, or by a name of their metadata.

    Dialogues without a value are left out.

    Returns:
        The places of each part, in the order of values.

    Raises:
        InputError: No dialogue has the value, there are too many values, or only one.
    """
    columns = metadata_columns(dialogues)
    if any(own.time for own in dialogues):
        columns = {TIME: [own.time[:7] for own in dialogues]} | columns
    if by not in columns:
        known = ", ".join(sorted(columns)) or "nothing, as dialogues have no times or metadata"
        hint = nearest(by, columns)
        raise InputError(f"compare: got '{by}', expected one of {known}; choose one.{hint}")
    parts: dict[str, list[int]] = {}
    for row, value in enumerate(columns[by]):
        if value not in (None, ""):
            parts.setdefault(str(value), []).append(row)
    kept = {name: rows for name, rows in sorted(parts.items()) if len(rows) >= _FEWEST}
    if not 2 <= len(kept) <= _MOST:
        expected = f"2 to {_MOST} that at least {_FEWEST} dialogues have"
        raise InputError(
            f"compare: got {len(kept)} values of '{by}', expected {expected}; choose another column"
        )
    return kept
