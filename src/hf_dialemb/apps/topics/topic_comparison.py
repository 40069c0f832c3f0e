"""Compare the topics of two sets of dialogues: which are new, grow, shrink, or end worse."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...dialogue import Dialogue, metadata_columns
from ...errors import InputError, nearest
from ..flow.flow_comparison import SIGNIFICANT, ShareDifference, tested_shares

TIME = "month"  # what dialogues are compared by if not by their metadata
_BAD = ("failed", "cancelled", "broken off")
_KINDS = {"new": "New topic", "growing": "More", "shrinking": "Less", "gone": "Gone", "": ""}
_FEWEST = 2  # dialogues of a set
_MOST = 20  # values that are compared


@dataclass(frozen=True)
class Change:
    """How a topic differs between two sets."""

    topic: str  # its id
    name: str
    kind: str  # new, gone, growing, shrinking, or empty where it may be chance
    share: ShareDifference  # of the dialogues of each set
    worse: tuple[str, ...]  # ways to end that are surely more frequent in the second set


@dataclass(frozen=True)
class Comparison:
    """How topics differ between two sets of dialogues."""

    names: tuple[str, str]
    sizes: tuple[int, int]
    changes: tuple[Change, ...]

    def lines(self) -> list[str]:
        """Say how large the sets are, and what differs."""
        pairs = zip(self.names, self.sizes, strict=True)
        sizes = "; ".join(f"{name}: {size:,} dialogues" for name, size in pairs)
        return [sizes, *self.findings()]

    def findings(self) -> list[str]:
        """Say what differs beyond chance: topics that are new, more or less frequent, end worse."""
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
                "share in first": _rate(row.share, 0),
                "share in second": _rate(row.share, 1),
                "p": row.share.p,
                "worse ends": row.worse,
            }
            for row in self.changes
        ]


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
    worse: defaultdict[str, list[str]] = defaultdict(list)
    for (topic, _), end in zip(ways, ends, strict=True):
        if end.p * times <= SIGNIFICANT and _gain(end) > 0:
            worse[topic].append(f"{end.name} {end}")
    changes = []
    for share in shares:
        topic = share.name
        kind = ""
        if known is not None and topic not in known and share.counts[1] > 0:
            kind = "new"
        elif share.p * times <= SIGNIFICANT:
            kind = _direction(share)
        changes.append(Change(topic, names[topic], kind, share, tuple(worse[topic])))
    order = list(_KINDS)
    changes.sort(key=lambda row: (order.index(row.kind), -abs(_gain(row.share))))
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
