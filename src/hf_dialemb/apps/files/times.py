"""Times as people write them.

A column of raw values becomes moments, in an order that the whole column decides.
"""

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
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
    day: tuple[str, ...] = ()  # of open days, the three numbers
    # "dotted", "korean", "american", "asian"; of a number "whole"; of a day "late": it could be no
    # month
    sign: str = ""
    orders: frozenset[str] = frozenset()  # in which it is a day
    aware: bool = False
    several: str = ""  # the name of several zones


# a text without its column: its kind, and its moment in each order
_Reading = tuple[_Kind, Mapping[str, datetime]]


def joined(day: Any, clock: Any) -> str:
    """Join a day and a time of day from two columns.

    What a spreadsheet adds to half a time is left out.
    """
    day, clock = (
        re.sub(r"(?<=\d)[T ]00:00(:00(\.0+)?)?$", "", _text(value)) for value in (day, clock)
    )
    clock = re.sub(r"^(1899-12-3[01]|1900-01-0[01])[T ]", "", clock)
    if day.isdecimal() and (part := re.fullmatch(r"0?\.(\d+)", clock)):
        return f"{day}.{part[1]}"
    return (
        clock
        if clock.startswith(day)
        else day
        if ":" in day and ":" in clock
        else f"{day} {clock}".strip()
    )


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
    kept = [
        c
        for c in unicodedata.normalize("NFKD", text)
        if unicodedata.category(c) not in ("Mn", "Cf")
    ]
    plain = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in kept)
    return " ".join(unicodedata.normalize("NFC", plain).replace("−", "-").replace("،", ",").split())


@lru_cache(maxsize=1 << 12)
def _day(year: str, month: str, day: str) -> date | None:
    """Return a day, None if there is none; two digits are a year from 1970 to 2069."""
    full = int(year) + (0 if len(year) == 4 else 2000 if int(year) < 70 else 1900)
    fits = len(year) in (2, 4) and len(day) <= 2 and full in _YEARS
    try:
        return date(full, int(month), int(day)) if fits else None
    except ValueError:
        return None


def _fixed(moment: datetime, kind: str, sign: str = "") -> _Reading:
    """Return the reading of a day that has one order."""
    sign = sign or ("late" if moment.day > 12 else "")
    return _Kind(kind, (), sign, frozenset(_PLACES), moment.tzinfo is not None), dict.fromkeys(
        _PLACES, moment
    )


@lru_cache(maxsize=1 << 16)
def _parsed(text: str) -> _Reading:
    """Read a text as far as it goes without its column."""
    text = text if text.isascii() else _plain(text)
    compact, number = _COMPACT.fullmatch(text), _NUMBER.fullmatch(text)
    if compact or _ISO.fullmatch(text):
        try:
            moment = datetime.fromisoformat(
                f"{compact[1]}T{compact[2] or '0000'}" if compact else text
            )
            if moment.year in _YEARS:
                return _fixed(moment, "since" if number else "day")
        except ValueError:
            pass
    return _number(_decimal(number)) if number else _written(text)


def _decimal(number: re.Match[str]) -> Decimal:
    return Decimal(number[1].replace(",", "."))


def _seconds(text: str) -> float:
    """Return the seconds of a text that is a small number, as `_parsed` took it."""
    number = _NUMBER.fullmatch(text if text.isascii() else _plain(text))
    assert number is not None, "a small number"
    return float(_decimal(number))


def _number(number: Decimal) -> _Reading:
    """Read seconds, milli-, micro- or nanoseconds since 1970, or days of a spreadsheet."""
    if _SERIALS[0] <= number < _SERIALS[1]:
        moment = datetime(1899, 12, 30) + timedelta(milliseconds=round(number * 86_400_000))
        return _fixed(moment, "days", "" if number % 1 else "whole")
    for unit in (1, 10**3, 10**6, 10**9):
        if _SINCE[0] <= number / unit < _SINCE[1]:
            passed = timedelta(microseconds=int(number * 10**6 / unit))
            return _fixed(datetime(1970, 1, 1, tzinfo=UTC) + passed, "since")
    return _Kind("small" if number else "clock"), {}


def _written(text: str) -> _Reading:
    """Read a day in numbers or with a month's name, and the clock behind or before it."""
    whole = _YEAR_LAST.sub(r"\1 \3 \2\4", " ".join(text.translate(_BRACKETS).split()))
    for match in filter(None, (pattern.search(whole) for pattern in _DAYS)):
        clock = _CLOCK.fullmatch(f"{whole[: match.start()]} {whole[match.end() :]}".strip())
        try:
            at = _clock(clock) if clock else None
        except (KeyError, ValueError, OSError):
            continue
        part = {"a": "", "y": "", "m": "", "n": "", "mark": ""} | match.groupdict("")
        month = (
            part["m"]
            or _MONTHS.get(part["n"][:4].casefold())
            or _MONTHS.get(part["n"][:3].casefold(), "0")
        )
        numbers = (part["a"], part["b"], part["c"]) if part["a"] else (part["y"], month, part["d"])
        places = _PLACES if part["a"] else dict.fromkeys(_PLACES, (0, 1, 2))
        days = (
            {order: _day(*(numbers[place] for place in places[order])) for order in places}
            if at
            else {}
        )
        moments = {order: datetime.combine(day, at) for order, day in days.items() if day and at}
        if clock and at and moments:
            sign = (
                "korean" if _KOREAN.fullmatch(match[0]) else "dotted" if part["mark"] == "." else ""
            )
            sign = sign or (
                "asian" if clock["before"] else "american" if _AMERICAN.search(text) else ""
            )
            several, aware = (
                clock["zone"] if clock["zone"] in _DATA["several"] else "",
                at.tzinfo is not None,
            )
            kind = _Kind("open", numbers, sign) if part["a"] else _Kind("day", sign="late")
            return kind._replace(orders=frozenset(moments), aware=aware, several=several), moments
    alone = _CLOCK.fullmatch(whole)
    return _Kind("clock" if alone and alone["minute"] else "unread"), {}


def _clock(match: re.Match[str]) -> time:
    """Return the time of day.

    Raise ValueError or KeyError if there is none, or no zone of its name.
    """
    half, hour, name = match["after"] or match["before"], int(match["hour"] or 0), match["zone"]
    zone: tzinfo | None = None
    if match["hour"] and not (match["minute"] or half):
        raise ValueError
    if half and hour <= 12:
        hour = hour % 12 + 12 * (_NOON.fullmatch(half) is not None)
    if name and (offset := re.search(r"([+-]\d\d?):?(\d\d)?$", name)):
        minutes = int(offset[1]) * 60 + int(f"{offset[1][0]}{offset[2] or 0}")
        zone = timezone(timedelta(minutes=minutes))
    elif name and name not in _DATA["several"]:
        zone = ZoneInfo(name) if "/" in name else _ZONES[name]
    part = int((match["part"] or "").ljust(6, "0")[:6])
    return time(hour, int(match["minute"] or 0), int(match["second"] or 0), part, zone)


class Times:
    """A column of times: all of it is seen before the first is read, as the whole column decides.

    ``dates`` is "day-first" or "month-first" for days such as 05/04/2024; if it is None, the column
    decides.
    """

    def __init__(self, dates: str | None = None) -> None:
        self._dates = dates
        self._counts: Counter[_Kind] = Counter()
        self._examples: dict[_Kind, list[str]] = {}
        self._decided: tuple[str, str, frozenset[str]] | None = None

    def see(self, value: Any) -> None:
        """Count a value; a blank counts nothing."""
        if text := _text(value):
            kind, _ = _parsed(text)
            self._counts[kind] += 1
            if (
                len(examples := self._examples.setdefault(kind, [])) < _EXAMPLES
                and text not in examples
            ):
                examples.append(text)
            self._decided = None

    def read(self, value: Any) -> Moment | None:
        """Return the moment; None for a blank, for what is not read, and for what has no day.

        Numbers that count from the start of a recording have their seconds alone.
        """
        kind, moments = _parsed(text := _text(value))
        if self._count_from_a_start and kind.name == "small":
            return Moment("", _seconds(text))
        if not self._takes(kind):
            return None
        moment = moments[self._decision[0]]
        return Moment(
            moment.isoformat(), (moment if kind.aware else moment.replace(tzinfo=UTC)).timestamp()
        )

    @property
    def _count_from_a_start(self) -> bool:
        return all(kind.name == "small" for kind in self._counts)

    @property
    def sorts(self) -> bool:
        """Whether the order of day, month and year is certain, so that turns may be sorted."""
        return not self._decision[1]

    def remarks(self) -> list[tuple[str, str]]:
        """Return what was not read ("note") and what could be read otherwise ("guess")."""
        order, doubt, _ = self._decision
        taken = [kind for kind in self._counts if self._takes(kind)]
        naive = [kind for kind in taken if not kind.aware and not kind.several]
        rest = [kind for kind in self._counts if kind not in taken]
        known = ("open", "unread", *["small"] * self._count_from_a_start)
        dayless = [kind for kind in rest if kind.name not in known]
        unread = [kind for kind in rest if kind.name in ("open", "unread")]
        options = f"--dates {DAY_FIRST} or --dates {MONTH_FIRST}"
        days = f"read {{}}, {order} and in the order of the file, as they {doubt}; say {options}"
        whole, several = (
            [kind for kind in taken if kind.sign == "whole"],
            [kind for kind in taken if kind.several],
        )
        sentences = (
            ("guess", days, [kind for kind in taken if doubt and kind.name == "open"]),
            (
                "guess",
                "read {}, as a spreadsheet's days; if they are none, leave them out of --columns",
                whole,
            ),
            (
                "guess",
                "read {}, without the zone, as several have its name; write the offset from UTC",
                several,
            ),
            (
                "guess",
                "read {}, as UTC, as others have a zone; write it",
                naive if len(naive) < len(taken) else [],
            ),
            ("note", "left out {}, which have no day; turns with them keep their places", dayless),
            ("note", "left out {}, which no form fits; turns with them keep their places", unread),
        )
        return [
            (severity, text.format(self._some(kinds)))
            for severity, text, kinds in sentences
            if kinds
        ]

    def _some(self, kinds: Sequence[_Kind]) -> str:
        examples = [repr(text[:40]) for kind in kinds for text in self._examples[kind]][:_EXAMPLES]
        return (
            f"{counted(sum(self._counts[kind] for kind in kinds), 'time')}, such as "
            f"{', '.join(examples)}"
        )

    def _takes(self, kind: _Kind) -> bool:
        order, _, numbers = self._decision
        return order in kind.orders and kind.name in ("day", "open", *numbers)

    @property
    def _decision(self) -> tuple[str, str, frozenset[str]]:
        """The order of days, what is doubtful about it, and which numbers are times."""
        if self._decided is None:
            names = Counter[str]()
            for kind, count in self._counts.items():
                names[kind.name] += count
            small, since, serials = names["small"], names["since"], names["days"]
            # Of the numbers, nearly all are times, or all count from the start of a recording.
            numbers = {"since": since >= 4 * (small + serials), "days": not small + since}
            order, doubt = (self._dates, "") if self._dates else _order(self._counts)
            self._decided = (
                order,
                doubt,
                frozenset(name for name, taken in numbers.items() if taken),
            )
        return self._decided


def _order(counts: Mapping[_Kind, int]) -> tuple[str, str]:
    """Return the order of day, month and year in a column, and what is doubtful about it."""
    days, fixed = ({kind for kind in counts if kind.name == name} for name in ("open", "day"))
    fits = [{kind for kind in days if order in kind.orders} for order in _PLACES]
    signs, numbers = (
        {kind.sign for kind in days},
        [len({kind.day[place] for kind in days}) for place in range(3)],
    )
    # Years vary less than days; with dots the day comes first.
    certain = "korean" in signs or len(fits[0]) < len(days) > len(fits[1])
    if len(fits[2]) == len(days) and (
        certain or (numbers[0] < numbers[2] + ("asian" in signs) and signs != {"dotted"})
    ):
        return _YEAR_FIRST, "" if certain else "may begin with the year"
    first, second = (
        sum(counts[kind] for kind in kinds) for kinds in (fits[0] - fits[1], fits[1] - fits[0])
    )
    doubt = ""
    if first and second:
        doubt = f"are {first:,} times {DAY_FIRST} and {second:,} times {MONTH_FIRST}"
    elif not (first or second):
        ambiguous = signs != {"dotted"} and any(
            int(kind.day[0]) != int(kind.day[1]) for kind in days
        )
        doubt = "do not show whether the day or the month comes first" if ambiguous else ""
    elif {kind.sign for kind in fixed} == {""} and not fits[0] & fits[1]:
        doubt = (
            "are all after the 12th and other dates before it, as where a spreadsheet swapped "
            "day and month"
        )
    return MONTH_FIRST if second > first or (
        "american" in signs and first == second
    ) else DAY_FIRST, doubt
