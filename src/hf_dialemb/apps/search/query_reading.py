"""Read in a query, in English, who and when it asks about.

A reading is kept beside the hits, so that nothing is understood in silence. General readers of
dates take "12 in May" from "room 12 in May" and "a second" for a time; here, a number counts only
where it can be nothing else.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from dateutil.parser import parserinfo
from dateutil.relativedelta import MO, relativedelta, weekday
from numpy.typing import NDArray

from .word_index import STOP_WORDS

_MONTHS = [names[-1].lower() for names in parserinfo.MONTHS]
_WEEKDAYS = [name.lower() for _, name in parserinfo.WEEKDAYS]
_COUNTED = "one two three four five six seven eight nine ten"
_NUMBERS = {
    **{"this": 0, "last": 1, "past": 1, "previous": 1, "a": 1, "an": 1},
    **{name: count for count, name in enumerate(_COUNTED.split(), 1)},
}
_LONG = {
    "day": relativedelta(days=1),
    "week": relativedelta(weeks=1),
    "month": relativedelta(months=1),
    "year": relativedelta(years=1),
}
_BEGIN = {
    "day": relativedelta(),
    "week": relativedelta(weekday=MO(-1)),
    "month": relativedelta(day=1),
    "year": relativedelta(month=1, day=1),
}
_NEAR = {
    "today": relativedelta(),
    "yesterday": relativedelta(days=-1),
    **{
        name: relativedelta(days=-1, weekday=weekday(place)(-1))
        for place, name in enumerate(_WEEKDAYS)
    },
}
"""How far the days are from today that are called so."""

_WORD = re.compile(r"[^\W_]+")

_BOUND = (
    r"(?:(?P<bound>since|from|after|before|until|till|by|in|on|of|during|around|every) (?:the )?)"
)
_MONTH = rf"(?P<month>{'|'.join(_MONTHS)})\b"
_DAY = r"(?<![\d.:])(?P<day>[0-3]?\d)(?: ?(?:st|nd|rd|th))?\b(?![:.]\d)"
_YEAR = r"(?P<year>(?:19|20)\d\d)\b"
_COUNT = rf"(?P<count>\d{{1,3}}|an?|{_COUNTED.replace(' ', '|')}) (?P<unit>day|week|month|year)"
# "May", "March" and "August" are other words too, so by themselves they follow a preposition.
_FORMS = [
    re.compile(rf"(?<!\w){_BOUND}{needed}{core}(?!\w)", re.IGNORECASE)
    for core, needed in (
        (r"(?P<year>(?:19|20)\d\d)-(?P<month>[01]\d)(?:-(?P<day>[0-3]\d))?", "?"),
        (rf"{_DAY} (?:of )?{_MONTH}(?:,? {_YEAR})?", "?"),
        (rf"{_MONTH} {_DAY}(?:,? {_YEAR})?", "?"),
        (rf"{_MONTH},? (?:of )?{_YEAR}", "?"),
        (_MONTH, ""),
        (rf"(?P<month>(?-i:(?!May|March|August)(?:{'|'.join(map(str.title, _MONTHS))})))\b", "?"),
        (_YEAR, ""),
        (rf"(?P<near>{'|'.join(name for name in _NEAR if name not in _WEEKDAYS)})", "?"),
        (rf"(?P<which>last|this|past|previous) (?P<unit>{'|'.join(_LONG)})", "?"),
        (rf"{_COUNT}s? ago", "?"),
        (rf"(?P<within>last|past) {_COUNT}s", "?"),
        (rf"(?:last|this|past) (?P<near>{'|'.join(_WEEKDAYS)})", "?"),
        (rf"(?P<near>{'|'.join(_WEEKDAYS)})", ""),
    )
]

_UNREAD = re.compile(
    r"\b(?:in |since |before |after |last |this |next |the )*(?:spring|summer|autumn|winter"
    r"|christmas|easter|weekend|latest|newest|most recent|recently|last time|first time"
    rf"|(?:last|next) (?:{'|'.join(_MONTHS)})|next (?:{'|'.join(_WEEKDAYS)}))\b",
    re.IGNORECASE,
)
"""Words about a time that are not read, which a reading says."""

TIME_WORDS = {
    *(name for name in (*_MONTHS, *_WEEKDAYS, *_LONG) if name != "may"),
    *("ago", "last", "next", "recently", "today", "tomorrow", "tonight", "weekend", "yesterday"),
}
"""Words that tell a time, in basic forms."""

_WHEN = re.compile(
    r"(?:since |until |on |in |at )?"
    r"(?:when|how long|(?:what|which) (?:day|date|month|week|year|time))\b",
    re.IGNORECASE,
)

Span = tuple[datetime, datetime, bool]
"""A time from its first moment to before the last, and whether it is of every year."""


@dataclass(frozen=True)
class Reading:
    """How a query was understood.

    Attributes:
        speaker: The speaker whom it names, or empty.
        time: The words that were read as a time, or empty.
        since: The first moment of that time, or None.
        until: The moment before which it ends, or None.
        repeats: Whether the time is of every year, as a month is without a year.
        when: Whether it asks for a time.
        unread: The words about a time that were not read.
    """

    speaker: str = ""
    time: str = ""
    since: datetime | None = None
    until: datetime | None = None
    repeats: bool = False
    when: bool = False
    unread: str = ""

    def __str__(self) -> str:
        ends = [f"{at:%Y-%m-%d}" if at else "…" for at in (self.since, self.until)]
        span = "every year" if self.repeats else " to before ".join(ends)
        parts = {
            "speaker": self.speaker,
            "time": self.time and f"{self.time} ({span})",
            "asked for": "a time" if self.when else "",
            "not read": self.unread,
        }
        return "; ".join(f"{name}: {text}" for name, text in parts.items() if text)

    def includes(self, moments: NDArray[np.datetime64]) -> NDArray[np.bool_]:
        """Return which of N moments (N,) are of the time."""
        since = self.since or datetime.min
        until = self.until or datetime.max
        included: NDArray[np.bool_] = (moments >= np.datetime64(since, "s")) & (
            moments < np.datetime64(until, "s")
        )
        if self.repeats:
            months = moments.astype("datetime64[M]")
            included = (months.astype(int) % 12 == since.month - 1) & ~np.isnat(moments)
            if since + _LONG["day"] == until:
                included &= (moments - months).astype("timedelta64[D]").astype(int) == since.day - 1
        return included


def read_query(query: str, names: Collection[str], now: datetime) -> Reading:
    """Read who and when a query asks about.

    Args:
        query: The query.
        names: The speakers whom it may name.
        now: When it is asked, which "yesterday" counts from.
    """
    speaker = asked_speaker(query, names)
    times = [
        (words, span)
        for words, span in _times(_UNREAD.sub("\0", query), now)
        if words.lower() not in speaker.lower().split()  # June may be a person
    ]
    unread = [match[0] for match in _UNREAD.finditer(query)]
    when = bool(_WHEN.match(query))
    if len(times) != 1:  # of several, none is meant alone
        unread += [words for words, _ in times]
        return Reading(speaker, when=when, unread=", ".join(unread))
    words, (since, until, repeats) = times[0]
    return Reading(speaker, words, since, until, repeats, when, ", ".join(unread))


def asked_speaker(query: str, names: Collection[str]) -> str:
    """Return the speaker whom a query names in full, or else by a first name that only one has.

    Where a query has capitals, names have them too: "the bill" is not Bill.
    """
    asked = _WORD.findall(query)
    small = query[1:].islower()
    words = [
        word.lower()
        for place, word in enumerate(asked)
        if (small or word[0].isupper())
        and not ((small or not place) and word.lower() in STOP_WORDS)
    ]
    text = f" {' '.join(words)} "
    parts = {name: [part.lower() for part in _WORD.findall(name)] for name in names}
    whole = [name for name in names if parts[name] and f" {' '.join(parts[name])} " in text]
    longest = max(whole, key=len, default="")
    if " " in longest:
        return longest
    first = [name for name in names if parts[name] and f" {parts[name][0]} " in text]
    return first[0] if len(first) == 1 else ""


def _times(query: str, now: datetime) -> Iterator[tuple[str, tuple[Any, Any, bool]]]:
    """Yield the times of a query: their words, the first moment, that after the last, ``repeats``.

    A moment is None where the time has no end.
    """
    free = query
    for form in _FORMS:
        for match in form.finditer(free):
            parts = {name: text.lower() for name, text in match.groupdict().items() if text}
            free = free.replace(match[0], "\0" * len(match[0]), 1)
            try:
                bounded = _bounded(parts.pop("bound", ""), _span(parts, now), now)
            except (ValueError, OverflowError):  # such as 31 June
                continue
            yield match[0], bounded


def _bounded(bound: str, span: Span, now: datetime) -> tuple[Any, Any, bool]:
    """Return the time since, after, before or until a span, or in it."""
    first, last, repeats = span
    if repeats and first > now:  # the last one that has begun
        first = first - _LONG["year"]
        last = last - _LONG["year"]
    if bound in ("since", "from", "after"):
        return last if bound == "after" else first, None, False
    if bound in ("before", "until", "till", "by"):
        return None, first if bound == "before" else last, False
    return first, last, repeats


def _span(parts: Mapping[str, str], now: datetime) -> Span:
    """Return the span of what a form parts; raise ValueError where there is no such day."""
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if "near" in parts:
        first = today + _NEAR[parts["near"]]
        return first, first + _LONG["day"], False
    if "unit" in parts:
        return _counted(parts, today, now)
    words = parts.get("month", "1")
    month = int(words) if words.isdigit() else 1 + _MONTHS.index(words)
    unit = next(unit for unit in ("day", "month", "year") if unit in parts)
    first = datetime(int(parts.get("year", now.year)), month, int(parts.get("day", 1)))
    return first, first + _LONG[unit], "year" not in parts


def _counted(parts: Mapping[str, str], today: datetime, now: datetime) -> Span:
    """Return the span some days, weeks, months or years ago, or the one from then until now."""
    unit = parts["unit"]
    words = parts.get("count") or parts["which"]
    count = int(words) if words.isdigit() else _NUMBERS[words]
    first = today - count * _LONG[unit]
    if "within" in parts:
        return first, now + relativedelta(seconds=1), False
    if unit == "week" and "count" in parts:  # a few days more or less
        first -= relativedelta(days=3)
    else:
        first += _BEGIN[unit]
    return first, first + _LONG[unit], False
