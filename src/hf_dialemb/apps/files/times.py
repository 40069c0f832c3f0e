"""Times as people write them.

A column of raw values becomes moments, in an order that the whole column decides.
"""

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
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
_SENTENCES = _DATA["sentences"]
_ZONES = {name: timezone(timedelta(hours=hours)) for name, hours in _DATA["zones"].items()}


def _pattern(text: str) -> re.Pattern[str]:
    words = _DATA["words"]
    return re.compile(
        re.sub("|".join(words), lambda match: words[match[0]], text.replace("\n", ""))
    )


_DAYS = [_pattern(rf"(?<![\d:.]){day}") for day in _DATA["days"]]
_KOREAN = re.compile(r"(\d+\. ){2}\d+\. ?")
_CLOCK, _NOON, _AMERICAN, _YEAR_LAST, _COMPACT, _ISO, _NUMBER = (
    _pattern(_DATA[name])
    for name in ("clock", "noon", "american", "year_last", "compact", "iso", "number")
)


class Moment(NamedTuple):
    """A moment that was read: ISO 8601, with the offset as it was written, and what sorts."""

    iso: str
    seconds: float  # since 1970; a time without a zone counts as UTC


class _Kind(NamedTuple):
    """What matters to a column about one of its texts."""

    # a "day", "open" days, numbers "since" 1970, "days" of a spreadsheet, "small" ones, "clock",
    # "unread"
    name: str
    day: tuple[str, ...] = ()  # its three numbers
    # "dotted", "korean", "american", "asian"; of a number "whole"; of a day "late": it could be no
    # month
    sign: str = ""
    orders: frozenset[str] = frozenset()  # in which it is a day
    aware: bool = False


# a text without its column: its kind, and its moment in each order
_Reading = tuple[_Kind, Mapping[str, datetime]]


def joined(day: Any, clock: Any) -> str:
    """Join a day and a time of day from two columns.

    What a spreadsheet adds to half a time is left out.
    """
    day, clock = (_HALF.sub("", _text(value)) for value in (day, clock))
    if day.isdecimal() and (part := re.fullmatch(r"0?\.(\d+)", clock)):
        return f"{day}.{part[1]}"
    if ":" in day and ":" in clock and not clock.startswith(day):
        return str(day)
    return str(clock if clock.startswith(day) else f"{day} {clock}".strip())


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


def _fixed(moment: datetime, name: str, sign: str = "") -> _Reading:
    """Return the reading of a day that has one order."""
    sign = sign or ("late" if moment.day > 12 else "")
    kind = _Kind(name, (), sign, frozenset(_PLACES), moment.tzinfo is not None)
    return kind, dict.fromkeys(_PLACES, moment)


def _number(number: Decimal) -> _Reading:
    """Read seconds, milli-, micro- or nanoseconds since 1970, or days of a spreadsheet."""
    if _SERIALS[0] <= number < _SERIALS[1]:
        moment = datetime(1899, 12, 30) + timedelta(milliseconds=round(number * 86_400_000))
        return _fixed(moment, "days", "" if number % 1 else "whole")
    units = (unit for unit in (1, 10**3, 10**6, 10**9) if _SINCE[0] <= number / unit < _SINCE[1])
    if unit := next(units, 0):
        return _fixed(_EPOCH + timedelta(microseconds=int(number * 10**6 / unit)), "since")
    if not number or number >= _SINCE[1]:
        return _Kind("small" if number else "clock"), {}
    # of a recording: as if it had begun in 1970
    return _fixed(_EPOCH + timedelta(microseconds=int(number * 10**6)), "small")


def _written(text: str) -> _Reading:
    """Read a day in numbers or with a month's name, and the clock behind or before it."""
    whole = _YEAR_LAST.sub(r"\1 \3 \2\4", " ".join(text.translate(_BRACKETS).split()))
    for match in filter(None, (pattern.search(whole) for pattern in _DAYS)):
        clock = _CLOCK.fullmatch(f"{whole[: match.start()]} {whole[match.end() :]}".strip())
        at = _clock(clock) if clock else None
        numbers, places = _numbers(match.groupdict())
        days = {order: _day(*(numbers[place] for place in places[order])) for order in _PLACES}
        moments = {order: datetime.combine(day, at) for order, day in days.items() if day and at}
        if not clock or not at or not moments:
            continue
        signs = {
            "late": places is not _PLACES,
            "korean": _KOREAN.fullmatch(match[0]),
            "dotted": match.groupdict().get("mark") == ".",
            "asian": clock["before"],
            "american": _AMERICAN.search(text),
        }
        sign = next((sign for sign, holds in signs.items() if holds), "")
        name = "open" if places is _PLACES else "day"
        return _Kind(name, numbers, sign, frozenset(moments), at.tzinfo is not None), moments
    alone = _CLOCK.fullmatch(whole)
    return _Kind("clock" if alone and alone["minute"] else "unread"), {}


def _numbers(part: Mapping[str, str]) -> tuple[tuple[str, ...], Mapping[str, tuple[int, ...]]]:
    """Return three numbers of a day, and in each order the places of year, month and day."""
    if "a" in part:
        return (part["a"], part["b"], part["c"]), _PLACES
    name = part.get("n", "").casefold()
    month = part.get("m") or _MONTHS.get(name[:4]) or _MONTHS.get(name[:3], "0")
    return (part["y"], month, part["d"]), dict.fromkeys(_PLACES, (0, 1, 2))


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
        self._counts: Counter[_Kind] = Counter()
        self._examples: dict[_Kind, dict[str, None]] = {}
        self._decided: tuple[str, str, frozenset[str]] | None = None

    def see(self, value: Any) -> None:
        """Count a value; a blank counts nothing."""
        if text := _text(value):
            kind, _ = _parsed(text)
            self._counts[kind] += 1
            self._decided = None
            if len(examples := self._examples.setdefault(kind, {})) < _EXAMPLES:
                examples[text] = None

    def read(self, value: Any) -> Moment | None:
        """Return the moment; None for a blank, for what is not read, and for what has no day.

        Numbers that count from the start of a recording have their seconds alone.
        """
        kind, moments = _parsed(_text(value))
        if not self._takes(kind):
            return None
        moment = moments[self._decision[0]]
        seconds = (moment if kind.aware else moment.replace(tzinfo=UTC)).timestamp()
        return Moment("" if kind.name == "small" else moment.isoformat(), seconds)

    @property
    def sorts(self) -> bool:
        """Whether the order of day, month and year is certain, so that turns may be sorted."""
        return not self._decision[1]

    def remarks(self) -> list[tuple[str, str]]:
        """Return what was not read ("note") and what could be read otherwise ("guess")."""
        order, doubt, names = self._decision
        taken = [kind for kind in self._counts if self._takes(kind)]
        rest = [kind for kind in self._counts if kind not in taken]
        naive = [kind for kind in taken if not kind.aware]
        unread = [kind for kind in rest if kind.name in ("open", "unread")]
        kinds = {
            "days": [kind for kind in taken if doubt and kind.name == "open"],
            "serials": [kind for kind in taken if kind.sign == "whole"],
            "naive": naive if len(naive) < len(taken) and "small" not in names else [],
            "dayless": [kind for kind in rest if kind not in unread],
            "unread": unread,
        }
        return [
            (
                "note" if some[0] in rest else "guess",
                _SENTENCES[name].format(self._some(some), order=order, doubt=doubt),
            )
            for name, some in kinds.items()
            if some
        ]

    def _some(self, kinds: Sequence[_Kind]) -> str:
        examples = [repr(text[:40]) for kind in kinds for text in self._examples[kind]][:_EXAMPLES]
        count = counted(sum(self._counts[kind] for kind in kinds), "time")
        return f"{count}, such as {', '.join(examples)}"

    def _takes(self, kind: _Kind) -> bool:
        order, _, names = self._decision
        return order in kind.orders and kind.name in names

    @property
    def _decision(self) -> tuple[str, str, frozenset[str]]:
        """The order of days, what is doubtful about it, and the names of kinds that are times."""
        if self._decided is None:
            count = Counter[str]()
            for kind, number in self._counts.items():
                count[kind.name] += number
            # Of the numbers, nearly all are times, or all count from the start of a recording.
            taken = {
                "day": True,
                "open": True,
                "since": count["since"] >= 4 * (count["small"] + count["days"]),
                "days": not count["small"] + count["since"],
                "small": count["small"] == count.total(),
            }
            names = frozenset(name for name, holds in taken.items() if holds)
            order, doubt = (self._dates, "") if self._dates else _order(self._counts)
            self._decided = (order, doubt, names)
        return self._decided


def _order(counts: Mapping[_Kind, int]) -> tuple[str, str]:
    """Return the order of day, month and year in a column, and what is doubtful about it."""
    days = [kind for kind in counts if kind.name == "open"]
    signs = {kind.sign for kind in days}
    numbers = [len({kind.day[place] for kind in days}) for place in range(3)]
    day_first, month_first, year_first = (
        {kind for kind in days if order in kind.orders} for order in _PLACES
    )
    # Years vary less than days; with dots the day comes first.
    certain = "korean" in signs or len(day_first) < len(days) > len(month_first)
    begins = numbers[0] < numbers[2] + ("asian" in signs) and signs != {"dotted"}
    if len(year_first) == len(days) and (certain or begins):
        return _YEAR_FIRST, "" if certain else "may begin with the year"
    first = sum(counts[kind] for kind in day_first - month_first)
    second = sum(counts[kind] for kind in month_first - day_first)
    order = DAY_FIRST
    if second > first or ("american" in signs and first == second):
        order = MONTH_FIRST
    doubt = ""
    if first and second:
        doubt = f"are {first:,} times {DAY_FIRST} and {second:,} times {MONTH_FIRST}"
    elif not (first or second):
        if signs != {"dotted"} and any(int(kind.day[0]) != int(kind.day[1]) for kind in days):
            doubt = "do not show whether the day or the month comes first"
    elif {kind.sign for kind in counts if kind.name == "day"} == {""} and not (
        day_first & month_first
    ):
        doubt = _SENTENCES["swapped"]
    return order, doubt
