"""Times as people write them.

A column of raw values becomes moments, in an order that the whole column decides.
"""

import re
import tomllib
import unicodedata
from collections import Counter
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ...data.reading_options import DATE_ORDERS
from ...display import counted

_ORDERS = (*DATE_ORDERS, "year-first")
_PLACES = (2, 1, 0), (2, 0, 1), (0, 1, 2)  # of year, month and day, in each order
_YEARS = range(1901, 2101)  # others are what systems write for "never", or of another calendar
_BLANK = frozenset(("", "nan", "nat", "<na>", "none", "null", "n/a", "-"))
_MARKS = str.maketrans("[]()−،", "    -,")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Numbers that are times: when they begin, their microseconds, digits that these are rounded to (a
# spreadsheet's are exact to milliseconds), and their range.
_NUMBERS: list[tuple[str, datetime, Decimal, int, Decimal | int, int]] = [
    ("days", datetime(1899, 12, 30), Decimal(86_400_000_000), -3, 32_874, 58_000),
    *(
        ("since", _EPOCH, Decimal(10**6) / unit, 0, 10**8 * unit, 4_102_444_800 * unit)
        for unit in (1, 10**3, 10**6, 10**9)
    ),
    ("small", _EPOCH, Decimal(10**6), 0, Decimal("1e-6"), 10**8),  # of a recording
]
_DATA = tomllib.loads(Path(__file__).with_name("times.toml").read_text(encoding="utf-8"))
_MONTHS = {start: n for n, starts in enumerate(_DATA["months"], 1) for start in starts.split()}
_MONTHS |= {f"{month:0{digits}}": month for month in range(1, 13) for digits in (1, 2)}


def _pattern(text: str) -> re.Pattern[str]:
    words = _DATA["words"]
    return re.compile(re.sub("|".join(words), lambda word: words[word[0]], text.replace("\n", "")))


_DAYS = [_pattern(rf"(?<![\d:.]){day}") for day in _DATA["days"]]
_PATTERNS = {name: _pattern(text) for name, text in _DATA["patterns"].items()}


class Moment(NamedTuple):
    """A moment that was read: ISO 8601, with the offset as it was written, and what sorts."""

    iso: str
    seconds: float  # since 1970; a time without a zone counts as UTC


class _Day(NamedTuple):
    """What a text is, without its column and its clock."""

    form: str  # a mark, "american", "days" of a spreadsheet, "since", "small", "iso", "none"
    orders: tuple[date | None, ...] = (None, None, None)  # the day in each order


_Reading = tuple[_Day, time]
_REMEDY = "say --dates day-first or --dates month-first"


def joined(day: Any, clock: Any) -> str:
    """Join a day and a time of day from two columns.

    What a spreadsheet adds to half a time is left out.
    """
    day, clock = (_PATTERNS["half"].sub("", _text(value)) for value in (day, clock))
    if day in clock:
        return str(clock)
    return str(day) if clock in day else f"{day} {clock}"


def _text(value: Any) -> str:
    """Return a value as text; empty for what says that nothing is there."""
    text = " ".join(str(value).split()).lstrip("'")
    return "" if text.casefold() in _BLANK else text


def _plain(text: str) -> str:
    """Return a text without accents, marks of direction, brackets and unusual digits and blanks."""
    plain = text.translate(_MARKS)
    if not plain.isascii():
        letters = unicodedata.normalize("NFKD", plain)
        kept = (c for c in letters if unicodedata.category(c) not in ("Mn", "Cf"))
        digits = (str(unicodedata.decimal(c)) if c.isdecimal() else c for c in kept)
        plain = unicodedata.normalize("NFC", "".join(digits))
    return " ".join(plain.split())


@lru_cache(maxsize=1 << 16)
def _parsed(text: str) -> _Reading:
    """Read a text as far as it goes without its column."""
    number = _PATTERNS["number"].fullmatch(text)
    digits = number[1] if number else ""
    with suppress(ValueError):
        iso = f"{digits[:8]}T{digits[8:] or '0000'}" if len(digits) in (8, 12, 14) else text
        moment = datetime.fromisoformat(iso)
        if moment.year in _YEARS and text[13:14] != ".":  # of an hour, which 15.05 has not
            return _fixed("since" if number else "iso", moment)
    if number is None:
        return _written(_plain(text))
    value = Decimal(digits.replace(",", "."))
    for form, begin, unit, exact, least, end in _NUMBERS:
        if least <= value < end:
            return _fixed(form, begin + timedelta(microseconds=int(round(value * unit, exact))))
    return _Day("small"), time()


def _fixed(form: str, moment: datetime) -> _Reading:
    """Return the reading of a day that has one order."""
    return _Day(form, (moment.date(),) * len(_ORDERS)), moment.timetz()


def _written(text: str) -> _Reading:
    """Read a day in numbers or with a month's name, and the clock behind or before it."""
    whole = _PATTERNS["year_last"].sub(r"\1 \3 \2\4", text)
    for match in filter(None, (pattern.search(whole) for pattern in _DAYS)):
        clock = _clock(f"{whole[: match.start()]} {whole[match.end() :]}".strip())
        numbers = match["y"], match["m"], match["d"]
        mark = match.groupdict().get("mark", "")
        places = _PLACES if mark else _PLACES[-1:] * len(_ORDERS)
        days = tuple(_day(*(numbers[place] for place in order)) for order in places)
        if clock and any(days):
            return _Day("american" if _PATTERNS["american"].search(text) else mark, days), clock
    return _Day("none"), time()


@lru_cache(maxsize=1 << 12)
def _day(year: str, month: str, day: str) -> date | None:
    """Return a day, None if there is none; two digits are a year from 1970 to 2069."""
    name = month.casefold()
    century = {2: 2000 if year < "70" else 1900}.get(len(year), 0)
    with suppress(ValueError):
        if len(day) <= 2 and century + int(year) in _YEARS:
            return date(
                century + int(year), _MONTHS.get(name[:4]) or _MONTHS.get(name[:3], 0), int(day)
            )
    return None


@lru_cache(maxsize=1 << 14)
def _clock(text: str) -> time | None:
    """Return the time of day; None if there is none, or no zone of its name."""
    match = _PATTERNS["clock"].fullmatch(text)
    if match is None:
        return None
    part = match.groupdict("")
    half = part["after"] or part["before"]
    hour = int(part["hour"] or 0)
    if half and hour <= 12:
        hour = hour % 12 + 12 * (_PATTERNS["noon"].fullmatch(half) is not None)
    with suppress(KeyError, ValueError):
        offset = f"{part['sign']}{part['hours']:0>2}{part['minutes'] or '00'}"
        zone = offset if part["hours"] else _DATA["zones"][part["zone"]]
        second = f"{part['second'] or '00'}.{part['part'] or '0'}"
        return time.fromisoformat(f"{hour:02}:{part['minute'] or '00'}:{second}{zone}")
    return None


class Times:
    """A column of times: all of it is seen before the first is read, as the whole column decides.

    ``dates`` is "day-first" or "month-first" for days such as 05/04/2024; if it is None, the column
    decides.
    """

    def __init__(self, dates: str | None = None) -> None:
        self._dates = dates
        self._counts: Counter[_Day] = Counter()
        self._examples: dict[_Day, str] = {}

    def see(self, value: Any) -> None:
        """Count a value; a blank counts nothing."""
        if text := _text(value):
            day, _ = _parsed(text)
            self._counts[day] += 1
            self._examples.setdefault(day, text)

    def read(self, value: Any) -> Moment | None:
        """Return the moment; None for a blank, for what is not read, and for what has no day.

        Numbers that count from the start of a recording have their seconds alone.
        """
        written, clock = _parsed(_text(value))
        if (day := self._date(written)) is None:
            return None
        moment = datetime.combine(day, clock)
        iso = "" if written.form == "small" else moment.isoformat()
        return Moment(iso, moment.replace(tzinfo=clock.tzinfo or UTC).timestamp())

    @property
    def sorts(self) -> bool:
        """Whether the order of day, month and year is certain, so that turns may be sorted."""
        return not self._decided[1]

    def remarks(self) -> list[tuple[str, str]]:
        """Return what was not read ("note") and what could be read otherwise ("guess")."""
        order, doubt = self._decided
        days = [day for day in self._open if self._date(day)]
        left = [day for day in self._counts if not self._date(day)]
        how = f"{_ORDERS[order]} and in the order of the file, as they {doubt}; {_REMEDY}"
        guess = [("guess", f"read {self._some(days)}, {how}")] if doubt else []
        why = "in which no day was read; turns with them keep their places"
        return guess + ([("note", f"left out {self._some(left)}, {why}")] if left else [])

    def _some(self, days: list[_Day]) -> str:
        examples = ", ".join(repr(self._examples[day][:40]) for day in days[:3])
        return f"{counted(sum(self._counts[day] for day in days), 'time')}, such as {examples}"

    def _date(self, day: _Day) -> date | None:
        return None if day.form in self._rare else day.orders[self._decided[0]]

    @cached_property
    def _rare(self) -> set[str]:
        """The kinds of numbers that are no times, as other numbers are not of the kind."""
        kinds = Counter(day.form for day in self._counts.elements())
        numbers = kinds["since"] + kinds["days"] + kinds["small"]
        rare = {kind for kind in ("since", "days") if 5 * kinds[kind] < 4 * numbers}
        return rare if kinds["small"] == kinds.total() else {*rare, "small"}

    @cached_property
    def _open(self) -> list[_Day]:
        """The days that other orders read otherwise."""
        return [day for day in self._counts if len(set(day.orders)) > 1]

    @cached_property
    def _decided(self) -> tuple[int, str]:
        """The order of days, by its place among the orders, and what is doubtful about it."""
        if self._dates:
            return _ORDERS.index(self._dates), ""
        orders = range(len(_ORDERS))
        days = [[day.orders[order] for day in self._open] for order in orders]
        fitting = [sum(self._counts[day] for day in self._open if day.orders[o]) for o in orders]
        years = [len({day.year for day in several if day}) for several in days]
        is_american = any(day.form == "american" for day in self._open)
        # With dots the day comes first; else years vary less than days.
        is_dotted = all(day.form == "." for day in self._open)
        hints = [(is_american and o == 1, -years[o]) if not is_dotted else () for o in orders]
        order = max(orders, key=lambda o: (fitting[o], hints[o]))
        if fitting[order] < sum(self._counts[day] for day in self._open):
            return order, f"are not all {_ORDERS[order]}"
        rivals = [o for o in (0, 1) if fitting[o] == fitting[order] and days[o] != days[order]]
        doubt = rivals and not is_dotted
        return order, f"may also be {_ORDERS[rivals[0]]}" if doubt else ""
