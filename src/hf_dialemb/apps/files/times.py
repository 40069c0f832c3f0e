"""Times as people write them.

A column of raw values becomes moments, in an order that the whole column decides.
"""

import re
import tomllib
import unicodedata
from collections import Counter
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from ...data.reading_options import DATE_ORDERS
from ...display import counted

_ORDERS = (*DATE_ORDERS, "year-first")
_PLACES = (2, 1, 0), (2, 0, 1), (0, 1, 2)  # of year, month and day, in each order
_YEARS = range(1901, 2101)  # others are what systems write for "never", or of another calendar
_EXAMPLES = 3  # times that a remark quotes
_BLANK = frozenset(("", "nan", "nat", "<na>", "none", "null", "n/a", "-"))
_MARKS = ("Mn", "Cf")  # categories of accents and of marks of direction
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BEGIN, _END = 10**8, 4_102_444_800  # seconds since 1970, of 1973 and of 2100
# Numbers by what they are: when they begin, their microseconds, digits that these are rounded to,
# and their range. Small ones are seconds of a recording, as if it had begun in 1970.
_NUMBERS = (
    # of a spreadsheet, whose fractions are exact to milliseconds
    ("days", datetime(1899, 12, 30), Decimal(86_400_000_000), -3, Decimal(32_874), 58_000),
    *(
        ("since", _EPOCH, Decimal(10**6) / unit, 0, Decimal(_BEGIN * unit), _END * unit)
        for unit in (1, 10**3, 10**6, 10**9)
    ),
    ("small", _EPOCH, Decimal(10**6), 0, Decimal("1e-6"), _END),
)
# of a spreadsheet: midnight behind a day, or the first day before a time
_HALF = re.compile(r"(?<=\d)[T ]00:00(:00(\.0+)?)?$|^(1899-12-3[01]|1900-01-0[01])[T ](?=\d)")
_BRACKETS = str.maketrans("[]()", "    ")
_DATA = tomllib.loads(Path(__file__).with_name("times.toml").read_text(encoding="utf-8"))
_MONTHS = {
    start: str(month) for month, starts in enumerate(_DATA["months"], 1) for start in starts.split()
}
_ZONES = {name: timezone(timedelta(hours=hours)) for name, hours in _DATA["zones"].items()}


def _pattern(text: str) -> re.Pattern[str]:
    words = _DATA["words"]
    return re.compile(
        re.sub("|".join(words), lambda match: words[match[0]], text.replace("\n", ""))
    )


_DAYS = [_pattern(rf"(?<![\d:.]){day}") for day in _DATA["days"]]
_CLOCK, _NOON, _AMERICAN, _YEAR_LAST, _COMPACT, _NUMBER = (
    _pattern(_DATA[name])
    for name in ("clock", "noon", "american", "year_last", "compact", "number")
)


class Moment(NamedTuple):
    """A moment that was read: ISO 8601, with the offset as it was written, and what sorts."""

    iso: str
    seconds: float  # since 1970; a time without a zone counts as UTC


class _Day(NamedTuple):
    """What a text is, without its column and its clock."""

    kind: str  # a "day", "days" of a spreadsheet, numbers "since" 1970, "small" ones, "none"
    orders: tuple[date | None, ...] = (None, None, None)  # the day in each order
    is_dotted: bool = False
    is_american: bool = False


_Reading = tuple[_Day, time]
_NONE = _Day("none"), time()
_REMEDY = "say --dates day-first or --dates month-first"


def joined(day: Any, clock: Any) -> str:
    """Join a day and a time of day from two columns.

    What a spreadsheet adds to half a time is left out.
    """
    day, clock = (_HALF.sub("", _text(value)) for value in (day, clock))
    if day.isdecimal() and (part := re.fullmatch(r"0?\.(\d+)", clock)):
        return f"{day}.{part[1]}"
    if day in clock:
        return str(clock)
    return str(day) if clock in day else f"{day} {clock}"


def _text(value: Any) -> str:
    """Return a value as text; empty for what says that nothing is there."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    # NaT is not itself
    text = value.isoformat() if isinstance(value, date) and value == value else str(value)
    text = " ".join(text.split()).lstrip("'")
    return "" if text.casefold() in _BLANK else text


def _plain(text: str) -> str:
    """Return a text without accents, marks of direction and unusual digits and blanks."""
    kept = [c for c in unicodedata.normalize("NFKD", text) if unicodedata.category(c) not in _MARKS]
    plain = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in kept)
    return " ".join(unicodedata.normalize("NFC", plain).replace("−", "-").replace("،", ",").split())


@lru_cache(maxsize=1 << 12)
def _day(year: str, month: str, day: str) -> date | None:
    """Return a day, None if there is none; two digits are a year from 1970 to 2069."""
    if len(year) == 2:
        year = f"20{year}" if year < "70" else f"19{year}"
    with suppress(ValueError):
        if len(day) <= 2 and int(year) in _YEARS:
            return date(int(year), int(month), int(day))
    return None


@lru_cache(maxsize=1 << 16)
def _parsed(text: str) -> _Reading:
    """Read a text as far as it goes without its column."""
    text = text if text.isascii() else _plain(text)
    number = _NUMBER.fullmatch(text)
    if compact := _COMPACT.fullmatch(text):
        with suppress(ValueError):
            moment = datetime.fromisoformat(f"{compact[1]}T{compact[2] or '0000'}")
            if moment.year in _YEARS:
                return _fixed("since" if number else "day", moment)
    return _number(Decimal(number[1].replace(",", "."))) if number else _written(text)


def _fixed(kind: str, moment: datetime) -> _Reading:
    """Return the reading of a day that has one order."""
    return _Day(kind, (moment.date(),) * len(_ORDERS)), moment.timetz()


def _number(number: Decimal) -> _Reading:
    for kind, begin, unit, digits, least, end in _NUMBERS:
        if least <= number < end:
            passed = timedelta(microseconds=int(round(number * unit, digits)))
            return _fixed(kind, begin + passed)
    return _Day("small"), time()


def _written(text: str) -> _Reading:
    """Read a day in numbers or with a month's name, and the clock behind or before it."""
    whole = _YEAR_LAST.sub(r"\1 \3 \2\4", " ".join(text.translate(_BRACKETS).split()))
    for match in filter(None, (pattern.search(whole) for pattern in _DAYS)):
        clock = _CLOCK.fullmatch(f"{whole[: match.start()]} {whole[match.end() :]}".strip())
        at = _clock(clock) if clock else None
        part = match.groupdict()
        name = part.get("n", "").casefold()
        month = part.get("m") or _MONTHS.get(name[:4]) or _MONTHS.get(name[:3], "0")
        numbers = (part["y"], month, part["d"])
        places = _PLACES if "mark" in part else [_PLACES[-1]] * len(_ORDERS)
        days = tuple(_day(*(numbers[place] for place in order)) for order in places)
        if at and any(days):
            is_dotted = part.get("mark") == "." and ". " not in match[0]
            return _Day("day", days, is_dotted, _AMERICAN.search(text) is not None), at
    return _NONE


def _clock(match: re.Match[str]) -> time | None:
    """Return the time of day; None if there is none, or no zone of its name."""
    half = match["after"] or match["before"]
    hour = int(match["hour"] or 0)
    if half and hour <= 12:
        hour = hour % 12 + 12 * (_NOON.fullmatch(half) is not None)
    with suppress(KeyError, ValueError, OSError):
        part = int((match["part"] or "").ljust(6, "0")[:6])
        return time(hour, int(match["minute"] or 0), int(match["second"] or 0), part, _zone(match))
    return None


def _zone(match: re.Match[str]) -> tzinfo | None:
    name, hours = match["zone"], match["hours"]
    if hours:
        minutes = hours[0] + (match["minutes"] or "0")
        return timezone(timedelta(hours=int(hours), minutes=int(minutes)))
    if name:
        return ZoneInfo(name) if "/" in name else _ZONES[name]
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
        day = written.orders[self._order[0]]
        if day is None or written.kind not in self._kinds:
            return None
        moment = datetime.combine(day, clock)
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        return Moment("" if written.kind == "small" else moment.isoformat(), seconds)

    @property
    def sorts(self) -> bool:
        """Whether the order of day, month and year is certain, so that turns may be sorted."""
        return not self._order[1]

    def remarks(self) -> list[tuple[str, str]]:
        """Return what was not read ("note") and what could be read otherwise ("guess")."""
        order, doubt = self._order
        left = [day for day in self._counts if not day.orders[order] or day.kind not in self._kinds]
        remarks = []
        if doubt:
            days = self._some([day for day in self._open if day not in left])
            how = f"{_ORDERS[order]} and in the order of the file, as they {doubt}"
            remarks.append(("guess", f"read {days}, {how}; {_REMEDY}"))
        if left:
            why = "in which no day was read; turns with them keep their places"
            remarks.append(("note", f"left out {self._some(left)}, {why}"))
        return remarks

    def _some(self, days: list[_Day]) -> str:
        examples = ", ".join(repr(self._examples[day][:40]) for day in days[:_EXAMPLES])
        return f"{counted(sum(self._counts[day] for day in days), 'time')}, such as {examples}"

    @cached_property
    def _kinds(self) -> set[str]:
        """The kinds that are times: of the numbers, one that nearly all are."""
        count = Counter(day.kind for day in self._counts.elements())
        numbers = count["since"] + count["days"] + count["small"]
        kinds = {"day", *(kind for kind in ("since", "days") if 5 * count[kind] >= 4 * numbers)}
        if count["small"] == count.total():
            kinds.add("small")
        return kinds

    @cached_property
    def _open(self) -> list[_Day]:
        """The days that other orders read otherwise."""
        return [day for day in self._counts if len(set(day.orders)) > 1]

    @cached_property
    def _order(self) -> tuple[int, str]:
        """The order of days, by its place among the orders, and what is doubtful about it."""
        if self._dates:
            return _ORDERS.index(self._dates), ""
        orders = range(len(_ORDERS))
        fitting = [sum(self._counts[day] for day in self._open if day.orders[o]) for o in orders]
        years, last = (
            {day.year for open_day in self._open if (day := open_day.orders[o])} for o in (2, 0)
        )
        # Years vary less than days; with dots the day comes first.
        is_dotted = all(day.is_dotted for day in self._open)
        hints = (False, any(day.is_american for day in self._open), len(years) < len(last))
        order = max(orders, key=lambda o: (fitting[o], hints[o] and not is_dotted))
        if fitting[order] < sum(self._counts[day] for day in self._open):
            return order, f"are not all {_ORDERS[order]}"
        for rival in (0, 1):
            differ = any(day.orders[rival] != day.orders[order] for day in self._open)
            if differ and fitting[rival] == fitting[order] and not is_dotted:
                return order, f"may also be {_ORDERS[rival]}"
        return order, ""
