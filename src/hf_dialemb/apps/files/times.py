"""Times as people write them.

A column of raw values becomes moments, in an order that the whole column decides.
"""

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from ...display import counted

DAY_FIRST, MONTH_FIRST, _YEAR_FIRST = "day-first", "month-first", "year-first"
# of year, month and day
_PLACES = {DAY_FIRST: (2, 1, 0), MONTH_FIRST: (2, 0, 1), _YEAR_FIRST: (0, 1, 2)}
_YEARS = range(1901, 2101)  # others are what systems write for "never", or of another calendar
# seconds of 1973 to 2099; a smaller number counts from the start of a recording
_SINCE = (10**8, 4_102_444_800)
_SERIALS = 32_874, 58_000  # days of a spreadsheet, of 1990 to 2058
_EXAMPLES = 3  # times that a remark quotes
_BLANK = frozenset(("", "nan", "nat", "<na>", "none", "null", "n/a", "-"))
_MARKS = ("Mn", "Cf")  # categories of accents and of marks of direction
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
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
_CLOCK, _NOON, _AMERICAN, _YEAR_LAST, _COMPACT, _ISO, _NUMBER = (
    _pattern(_DATA[name])
    for name in ("clock", "noon", "american", "year_last", "compact", "iso", "number")
)


class Moment(NamedTuple):
    """A moment that was read: ISO 8601, with the offset as it was written, and what sorts."""

    iso: str
    seconds: float  # since 1970; a time without a zone counts as UTC


class _Reading(NamedTuple):
    """A text without its column: what it is, and its moment in each order."""

    # a "day", an "open" one, numbers "since" 1970, "days" of a spreadsheet, "small" ones, "none"
    kind: str
    moments: Mapping[str, datetime] = {}
    orders: frozenset[str] = frozenset()
    numbers: tuple[str, ...] = ()  # of an open day
    is_dotted: bool = False
    is_american: bool = False


_NONE = _Reading("none")
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
    compact = _COMPACT.fullmatch(text)
    number = _NUMBER.fullmatch(text)
    if compact or _ISO.fullmatch(text):
        iso = f"{compact[1]}T{compact[2] or '0000'}" if compact else text
        with suppress(ValueError):
            moment = datetime.fromisoformat(iso)
            if moment.year in _YEARS:
                return _fixed(moment, "since" if number else "day")
    return _number(Decimal(number[1].replace(",", "."))) if number else _written(text)


def _fixed(moment: datetime, kind: str) -> _Reading:
    """Return the reading of a day that has one order."""
    return _Reading(kind, dict.fromkeys(_PLACES, moment), frozenset(_PLACES))


def _number(number: Decimal) -> _Reading:
    """Read seconds, milli-, micro- or nanoseconds since 1970, or days of a spreadsheet."""
    if _SERIALS[0] <= number < _SERIALS[1]:
        moment = datetime(1899, 12, 30) + timedelta(milliseconds=round(number * 86_400_000))
        return _fixed(moment, "days")
    units = (unit for unit in (1, 10**3, 10**6, 10**9) if _SINCE[0] <= number / unit < _SINCE[1])
    if unit := next(units, 0):
        return _fixed(_EPOCH + timedelta(microseconds=int(number * 10**6 / unit)), "since")
    if not number or number >= _SINCE[1]:
        return _Reading("small")
    # of a recording: as if it had begun in 1970
    return _fixed(_EPOCH + timedelta(microseconds=int(number * 10**6)), "small")


def _written(text: str) -> _Reading:
    """Read a day in numbers or with a month's name, and the clock behind or before it."""
    whole = _YEAR_LAST.sub(r"\1 \3 \2\4", " ".join(text.translate(_BRACKETS).split()))
    for match in filter(None, (pattern.search(whole) for pattern in _DAYS)):
        clock = _CLOCK.fullmatch(f"{whole[: match.start()]} {whole[match.end() :]}".strip())
        at = _clock(clock) if clock else None
        part = match.groupdict()
        numbers: tuple[str, ...] = ()
        if "a" in part:
            numbers = (part["a"], part["b"], part["c"])
            days = {order: _day(*(numbers[at] for at in _PLACES[order])) for order in _PLACES}
        else:
            name = part.get("n", "").casefold()
            month = part.get("m") or _MONTHS.get(name[:4]) or _MONTHS.get(name[:3], "0")
            days = dict.fromkeys(_PLACES, _day(part["y"], month, part["d"]))
        moments = {order: datetime.combine(day, at) for order, day in days.items() if day and at}
        if moments:
            is_american = _AMERICAN.search(text) is not None
            kind = "open" if numbers else "day"
            is_dotted = part.get("mark") == "." and ". " not in match[0]
            return _Reading(kind, moments, frozenset(moments), numbers, is_dotted, is_american)
    return _NONE


def _clock(match: re.Match[str]) -> time | None:
    """Return the time of day; None if there is none, or no zone of its name."""
    half = match["after"] or match["before"]
    hour = int(match["hour"] or 0)
    name = match["zone"]
    zone: tzinfo | None = None
    if match["hour"] and not (match["minute"] or half):
        return None
    if half and hour <= 12:
        hour = hour % 12 + 12 * (_NOON.fullmatch(half) is not None)
    with suppress(KeyError, ValueError, OSError):
        if name and (offset := re.search(r"([+-])(\d\d?):?(\d\d)?$", name)):
            passed = timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
            zone = timezone(-passed if offset[1] == "-" else passed)
        elif name:
            zone = ZoneInfo(name) if "/" in name else _ZONES[name]
        part = int((match["part"] or "").ljust(6, "0")[:6])
        return time(hour, int(match["minute"] or 0), int(match["second"] or 0), part, zone)
    return None


class Times:
    """A column of times: all of it is seen before the first is read, as the whole column decides.

    ``dates`` is "day-first" or "month-first" for days such as 05/04/2024; if it is None, the column
    decides.
    """

    def __init__(self, dates: str | None = None) -> None:
        self._dates = dates
        # by what a text is, and the orders in which it is a day
        self._counts: Counter[tuple[str, frozenset[str]]] = Counter()
        self._examples: dict[tuple[str, frozenset[str]], dict[str, None]] = {}
        self._open: dict[tuple[str, ...], _Reading] = {}
        self._decided: tuple[str, str, set[str]] | None = None

    def see(self, value: Any) -> None:
        """Count a value; a blank counts nothing."""
        if text := _text(value):
            reading = _parsed(text)
            key = (reading.kind, reading.orders)
            self._counts[key] += 1
            self._decided = None
            if reading.kind == "open":
                self._open[reading.numbers] = reading
            if len(examples := self._examples.setdefault(key, {})) < _EXAMPLES:
                examples[text] = None

    def read(self, value: Any) -> Moment | None:
        """Return the moment; None for a blank, for what is not read, and for what has no day.

        Numbers that count from the start of a recording have their seconds alone.
        """
        reading = _parsed(_text(value))
        order, _, kinds = self._decision
        moment = reading.moments.get(order)
        if moment is None or reading.kind not in kinds:
            return None
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        return Moment("" if reading.kind == "small" else moment.isoformat(), seconds)

    @property
    def sorts(self) -> bool:
        """Whether the order of day, month and year is certain, so that turns may be sorted."""
        return not self._decision[1]

    def remarks(self) -> list[tuple[str, str]]:
        """Return what was not read ("note") and what could be read otherwise ("guess")."""
        order, doubt, kinds = self._decision
        taken = [key for key in self._counts if key[0] in kinds and order in key[1]]
        left = [key for key in self._counts if key not in taken]
        remarks = []
        if doubt:
            days = self._some([key for key in taken if key[0] == "open"])
            how = f"{order} and in the order of the file, as they {doubt}"
            remarks.append(("guess", f"read {days}, {how}; {_REMEDY}"))
        if left:
            why = "in which no day was read; turns with them keep their places"
            remarks.append(("note", f"left out {self._some(left)}, {why}"))
        return remarks

    def _some(self, keys: list[tuple[str, frozenset[str]]]) -> str:
        examples = [repr(text[:40]) for key in keys for text in self._examples[key]][:_EXAMPLES]
        count = counted(sum(self._counts[key] for key in keys), "time")
        return f"{count}, such as {', '.join(examples)}"

    @property
    def _decision(self) -> tuple[str, str, set[str]]:
        """The order of days, what is doubtful about it, and the kinds that are times."""
        if self._decided is None:
            count = Counter[str]()
            for (kind, _), number in self._counts.items():
                count[kind] += number
            # Of the numbers, nearly all are times, or all count from the start of a recording.
            taken = {
                "day": True,
                "open": True,
                "since": count["since"] >= 4 * (count["small"] + count["days"]),
                "days": not count["small"] + count["since"],
                "small": count["small"] == count.total(),
            }
            order, doubt = (self._dates, "") if self._dates else self._order()
            self._decided = (order, doubt, {kind for kind, holds in taken.items() if holds})
        return self._decided

    def _order(self) -> tuple[str, str]:
        """Return the order of day, month and year, and what is doubtful about it."""
        days = list(self._open.values())
        fitting = {order: sum(order in day.orders for day in days) for order in _PLACES}
        is_dotted = all(day.is_dotted for day in days)
        firsts, lasts = ({day.numbers[place] for day in days} for place in (0, 2))
        # Years vary less than days; with dots the day comes first.
        certain = fitting[DAY_FIRST] < len(days) > fitting[MONTH_FIRST]
        begins = len(firsts) < len(lasts) and not is_dotted
        if fitting[_YEAR_FIRST] == len(days) and (certain or begins):
            return _YEAR_FIRST, "" if certain else "may begin with the year"
        first, second = (
            sum(self._counts["open", orders] for orders in self._orders_with(order, other))
            for order, other in ((DAY_FIRST, MONTH_FIRST), (MONTH_FIRST, DAY_FIRST))
        )
        is_american = any(day.is_american for day in days) and not is_dotted
        is_second = second > first or (is_american and first == second)
        doubt = ""
        if first and second:
            doubt = f"are {first:,} times {DAY_FIRST} and {second:,} times {MONTH_FIRST}"
        elif not (first or second or is_dotted) and _differ(days):
            doubt = "do not show whether the day or the month comes first"
        return MONTH_FIRST if is_second else DAY_FIRST, doubt

    def _orders_with(self, order: str, other: str) -> list[frozenset[str]]:
        kinds = (orders for kind, orders in self._counts if kind == "open")
        return [orders for orders in kinds if order in orders and other not in orders]


def _differ(days: Iterable[_Reading]) -> bool:
    return any(int(day.numbers[0]) != int(day.numbers[1]) for day in days)
