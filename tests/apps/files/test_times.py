"""Facts about times.

Every form reads back, the whole column decides, and what is not certain is told.
"""

import datetime
import re
from datetime import UTC, timedelta, timezone

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_dialemb.apps.files.times import Moment, Times, joined

NIGHT = "2024-03-04T15:05:00"


def column(*values, dates=None):
    """Return the times of a column, and whether it sorts."""
    times = Times(dates)
    for value in values:
        times.see(value)
    return [moment and moment.iso for moment in map(times.read, values)], times.sorts


def remarks(*values, dates=None):
    times = Times(dates)
    for value in values:
        times.see(value)
    return times.remarks()


# Forms with one reading, whatever stands beside them.
ALONE = {
    NIGHT: """2024-03-04T15:05|2024-03-04 15:05|2024-3-4 15:05|2024/03/04 15:05|2024/3/4, 15:05
2024.03.04 15:05
15:05 2024-03-04|3:05 PM 2024-03-04|2024-03-04 3:05 p. m.|2024-03-04 15.05|202403041505
20240304150500|20240304T1505
20240304_150500|20240304 15:05|4-Mar-24 15:05|04MAR2024 15:05|March 4, 2024 3:05 PM
Mar 4th, 2024 at 3:05pm
4 March 2024, 15:05|15:05, 4 March 2024|Monday, March 4, 2024 15:05|Mon Mar  4 15:05:00 2024
2024-Mar-04 15:05
4 de marzo de 2024, 15:05|4 de março de 2024 às 15:05|4 mars 2024 à 15:05|lundi 4 mars 2024 15h05
4 mars 2024 15 h 05
4 marzo 2024 alle ore 15:05|4. März 2024 um 15:05 Uhr|Mo., 4. Mrz 2024, 15:05
4 maart 2024 om 15:05|4 mrt 2024 15:05
4 марта 2024 г. в 15:05|4 мар. 2024 г., 15:05|2024年3月4日 15:05|2024年3月4日(月) 15時05分
2024/3/4 午後3:05
2024年3月4日 星期一 下午3:05|2024년 3월 4일 오후 3:05|2024. 3. 4. 오후 3:05
２０２４/３/４ １５：０５
\u200f٢٠٢٤-٠٣-٠٤ ١٥:٠٥
2024-03-04 3:05\u202fPM|[2024-03-04, 15:05]|'2024-03-04 15:05|2024-03-04 3:05 م
2024-03-04 3:05 nachm.""",
    "2024-03-04T15:05:00+00:00": "2024-03-04T15:05Z|2024-03-04 15:05 UTC|2024-03-04 15:05:00 "
    "GMT|1709564700"
    "|1709564700000|1709564700000000|1709564700000000000|1709564700.0|/Date(1709564700000)/|/Date(1709564700000+0200)/"
    "|15:05, 4 March 2024 (UTC)",
    "2024-03-04T15:05:00+02:00": "2024-03-04T15:05+02:00|2024-03-04 15:05:00 "
    "+0200|2024-03-04T15:05+02"
    "|20240304T150500+0200|Mon Mar 04 2024 15:05:00 GMT+0200 (CEST)|Mon, 04 Mar 2024 15:05:00 +0200"
    "|Mon Mar 04 15:05:00 +0200 2024"
    "|2024-03-04 15:05 UTC+2|04/Mar/2024:15:05:00 +0200"
    "|Mon Mar 04 2024 15:05:00 GMT+0200 (Eastern European Standard Time)"
    "|2024-03-04 15:05 CEST|2024-03-04T15:05+02:00[Europe/Kyiv]",
    "2024-03-04T15:05:00-05:00": "2024-03-04 15:05 EST|March 4, 2024 3:05 PM EST"
    "|2024-03-04 15:05 GMT-05:00",
    "2024-03-04T15:05:00-03:30": "2024-03-04T15:05-03:30|2024-03-04 15:05 -0330",
    "2024-03-04T15:05:07.123456": "2024-03-04T15:05:07.1234567|2024-03-04 15:05:07,123456789"
    "|4 Mar 2024 15:05:07.123456",
    "2024-03-04T00:00:00": "2024-03-04|20240304|2024/03/04|4-Mar-24|March 4, 2024|4. März "
    "2024|2024年3月4日"
    "|2024-03-04 12 AM",
    "2024-01-02T15:21:36": "45293.64|45293,64",
}


@pytest.mark.parametrize(
    ("iso", "text"),
    [(iso, text) for iso, texts in ALONE.items() for text in texts.replace("\n", "|").split("|")],
)
def test_a_form_with_one_reading_is_read_and_nothing_is_remarked(iso, text):
    assert column(text) == ([iso], True)
    assert remarks(text) == []


@pytest.mark.parametrize(
    "value",
    [
        *(
            "23:59",
            "00:05",
            "61:31",
            "1:02:03.5",
            "3:05 PM",
            "today",
            "now",
            "May",
            "May 4",
            "March 2024",
            "yesterday",
        ),
        *(
            "5 minutes ago",
            "Tuesday",
            "Monday 10:30",
            "2024-03",
            "4 March",
            "Mar 4 15:05:00",
            "4 Mar 10:30",
        ),
        *("-1", -5, True, "1.70956E+09", "2024-13-40", "30/02/2024", "32.01.2024", 0),
        *(
            "2024-03-04 25:05",
            "2024-03-04 10:61",
            "2024-03-04 10:00 XYZ",
            "2024-03-04 15:05 CST",
            "0001-01-01T00:00:00",
        ),
        *("2567-03-04", "1445/08/23", "9999-12-31", "1900-01-01", "in 2 days", "PT5S", "?", ":"),
        *(
            datetime.time(10, 30),
            timedelta(hours=3),
            "2024-03-04 10:00 America/New_York",
            float("inf"),
            [],
            {"a": 1},
        ),
    ],
    ids=repr,
)
def test_what_has_no_day_or_no_known_form_is_not_read_and_counted(value):
    assert column(value, value) == ([None, None], True)
    ((severity, sentence),) = remarks(value, value)
    assert severity == "note"
    assert sentence.startswith(f"left out 2 times, such as {str(value)[:3]!r}"[:-1])


def test_seconds_of_a_recording_sort_and_are_no_times():
    read = Times()
    for value in (3600, "12.5", "2024"):
        read.see(value)
    assert [read.read(value) for value in (3600, "12.5")] == [("", 3600.0), ("", 12.5)]
    assert read.remarks() == []
    moments, _ = column(3600, "12.5", "2024", "2024-03-04 10:00")
    assert moments == [None, None, None, "2024-03-04T10:00:00"]  # beside times they are none


@pytest.mark.parametrize(
    "value",
    ["", " ", None, float("nan"), pd.NaT, pd.NA, "nan", "NaT", "None", "NULL", "N/A", "-"],
    ids=repr,
)
def test_a_blank_is_no_time_and_not_counted(value):
    assert column(value, "2024-03-04") == ([None, "2024-03-04T00:00:00"], True)
    assert remarks(value) == []


@pytest.mark.parametrize(
    ("value", "iso"),
    [
        (datetime.datetime(2024, 3, 4, 15, 5), NIGHT),
        (datetime.datetime(2024, 3, 4, 15, 5, tzinfo=UTC), f"{NIGHT}+00:00"),
        (datetime.date(2024, 3, 4), "2024-03-04T00:00:00"),
        (pd.Timestamp("2024-03-04 15:05"), NIGHT),
        (pd.Timestamp("2024-03-04 15:05:00.123456789"), f"{NIGHT}.123456"),
        (np.datetime64("2024-03-04T15:05"), NIGHT),
        (np.int64(1709564700), f"{NIGHT}+00:00"),
        (1709564700.5, f"{NIGHT}.500000+00:00"),
    ],
)
def test_objects_are_read_as_what_they_are(value, iso):
    assert column(value) == ([iso], True)


def test_seconds_are_those_since_1970_and_a_time_without_a_zone_counts_as_utc():
    times = Times()
    assert times.read("2024-03-04T15:05+02:00") == Moment("2024-03-04T15:05:00+02:00", 1709557500.0)
    assert times.read("2024-03-04T15:05") == Moment(NIGHT, 1709564700.0)


DECIDED = [  # a column, and its days
    (
        ["12/04/2024 23:58", "13/04/2024 00:02", "05/04/2024"],
        ["2024-04-12", "2024-04-13", "2024-04-05"],
    ),
    (["04/12/2024", "04/13/2024", "12/31/2024"], ["2024-04-12", "2024-04-13", "2024-12-31"]),
    (["4/5/24, 3:05 PM", "4/15/24, 3:06 PM"], ["2024-04-05", "2024-04-15"]),
    (["01-02-2024", "01-29-2024"], ["2024-01-02", "2024-01-29"]),
    (["20/6/2017 8:28 p. m.", "5/6/2017 8:28 a. m."], ["2017-06-20", "2017-06-05"]),
    (["01.02.2024 10:00", "03.02.2024 10:00"], ["2024-02-01", "2024-02-03"]),
    (["01.02.24", "13.02.24"], ["2024-02-01", "2024-02-13"]),
    (["04.13.2024", "04.05.2024"], ["2024-04-13", "2024-04-05"]),
    (["٤/٣/٢٠٢٤ ٣:٠٥ م", "١٤/٣/٢٠٢٤، ٣:٠٥ م"], ["2024-03-04", "2024-03-14"]),
    (["24/3/4 下午3:05", "24/3/14 下午3:05"], ["2024-03-04", "2024-03-14"]),
    (["24. 3. 4. 오후 3:05", "24. 11. 12. 오후 3:05"], ["2024-03-04", "2024-11-12"]),
    (["25/03/24 下午3:05", "26/03/24 下午3:05"], ["2024-03-25", "2024-03-26"]),
    (["01.02.23", "01.03.24"], ["2023-02-01", "2024-03-01"]),
    (["24. 3. 4. 15:05", "24. 11. 12. 15:05"], ["2024-03-04", "2024-11-12"]),
    (["99-03-04", "98-12-31"], ["1999-03-04", "1998-12-31"]),
    (["03/03/2024", "04/04/2024"], ["2024-03-03", "2024-04-04"]),
    (["13/04/69", "13/04/70"], ["2069-04-13", "1970-04-13"]),
]


@pytest.mark.parametrize(("values", "days"), DECIDED)
def test_the_whole_column_decides_on_one_order(values, days):
    for order in (values, values[::-1]):
        read, sorts = column(*order)
        assert ([iso[:10] for iso in read], sorts) == (
            days if order is values else days[::-1],
            True,
        )
        assert remarks(*order) == []


OPEN = ["05/04/2024 10:00", "06/04/2024 10:00"]
YEARS = ["24-03-04", "24-03-16"]
MIXED = ["13/05/2024", "14/05/2024", "05/13/2024", "05/06/2024"]
UNITS = ["1704103200", "1704103260000", "1704103320", 1704103380000000]
NO_DAY = "in which no day was read"
DOUBTED = [  # a fact, a column, how it is read, their days, whether they sort, what is remarked
    (
        "it does not decide",
        OPEN,
        "",
        "04-05 04-06",
        False,
        "say --dates day-first or --dates month",
    ),
    ("a guess by PM", ["4/5/2024, 3:05 PM"], "", "04-05", False, "3:05 PM', month-first and in"),
    ("a guess by EDT", ["4/5/2024 15:05 EDT"], "", "04-05", False, "EDT', month-first and in"),
    ("a guess by AM", ["4/5/24, 3:05\u202fAM"], "", "04-05", False, "month-first and in the order"),
    ("told the day", OPEN, "day-first", "04-05 04-06", True, ""),
    ("told the month", OPEN, "month-first", "05-04 06-04", True, ""),
    ("told against PM", [*OPEN[:1], "3/4/2024, 3:05 PM"], "day-first", "04-05 04-03", True, ""),
    (
        "the option denies",
        ["13/04/2024", "04/05/2024"],
        "month-first",
        "- 04-05",
        True,
        "'13/04/2024'",
    ),
    (
        "the majority",
        MIXED,
        "",
        "05-13 05-14 - 06-05",
        False,
        "read 3 times, such as '13/05/2024', '14/05/2024', '05/06/2024', day-first and in the "
        "order of the file, as they are not all day-first",
    ),
    (
        "the minority",
        MIXED,
        "",
        "05-13 05-14 - 06-05",
        False,
        "left out 1 time, such as '05/13/2024'",
    ),
    (
        "years or days",
        YEARS,
        "",
        "03-04 03-16",
        False,
        "year-first and in the order of the file, as they may also be day-first",
    ),
    ("days, as told", YEARS, "day-first", "03-24 03-24", True, ""),
    ("several units", UNITS, "", "01-01 01-01 01-01 01-01", True, ""),
    ("seconds, no days", [0, 1520, 45293, 46100], "", "- - - -", True, NO_DAY),
    ("parts of seconds", ["0.0", "7.5", "45293.64"], "", "- - -", True, NO_DAY),
    ("counts", [700000, 20240102, 31230000], "", "- - -", True, NO_DAY),
    ("a second and a time", [5, 1704103200], "", "- -", True, NO_DAY),
    ("an odd number", [UNITS[0]] * 9 + ["12"], "", "01-01 " * 9 + "-", True, "as '12', in which"),
    ("days of a spreadsheet", ["45293", 45294.0], "", "01-02 01-03", True, ""),
]


@pytest.mark.parametrize(
    ("values", "dates", "days", "sorts", "words"),
    [case[1:] for case in DOUBTED],
    ids=[case[0] for case in DOUBTED],
)
def test_what_a_column_leaves_open_is_guessed_and_told(values, dates, days, sorts, words):
    read, sorted_by_time = column(*values, dates=dates or None)
    assert [iso[5:10] if iso else "-" for iso in read] == days.split()
    assert sorted_by_time == sorts
    sentences = " ".join(sentence for _, sentence in remarks(*values, dates=dates or None))
    assert words in sentences if words else not sentences


@pytest.mark.parametrize(
    ("day", "clock", "text"),
    [
        ("2023-03-01", "10:31", "2023-03-01 10:31"),
        ("10:30", "2023-03-01", "10:30 2023-03-01"),
        ("2023-03-01 00:00:00", "10:31:00", "2023-03-01 10:31:00"),
        ("2023-03-01T00:00:00.000", datetime.time(10, 31), "2023-03-01 10:31:00"),
        (datetime.datetime(2023, 3, 1), "1899-12-30 10:31:00", "2023-03-01 10:31:00"),
        ("2023-03-01", "1900-01-01T10:31:00", "2023-03-01 10:31:00"),
        ("2023-03-01", "2023-03-01 10:31", "2023-03-01 10:31"),
        ("2023-03-01 10:31", "10:31", "2023-03-01 10:31"),
        ("01.03.2023", "", "01.03.2023"),
        ("", "10:31", "10:31"),
        (None, float("nan"), ""),
        ("20230301", "10:31", "20230301 10:31"),
    ],
)
def test_a_day_and_a_clock_of_two_columns_are_joined(day, clock, text):
    assert joined(day, clock) == text


# Forms by day, hour, noon and offset, as `strftime` writes them; those with numbers alone need a
# 13th to decide.
WRITTEN = r"""%Y-%m-%dT%H:%M:%S.%f|%Y-%m-%d %H:%M:%S|%Y/%m/%d %H:%M:%S|%Y.%m.%d %H:%M:%S
%d.%m.%Y %H:%M:%S
%m/%d/%Y %I:%M:%S %p|%d-%m-%Y, %H:%M:%S|%d/%m/%y, %I:%M:%S %p|%m/%d/%y %H:%M:%S
%d.%m.%y - %H:%M:%S;|%d/%m/%Y %H:%M:%S
[%d.%m.%y, %H:%M:%S]|%H:%M:%S %d/%m/%Y|%Y%m%d%H%M%S|%Y%m%dT%H%M%S|%d %b %Y %H:%M:%S
%d-%b-%y %I:%M:%S %p
%B %d, %Y %I:%M:%S %p|%A, %d %B %Y %H:%M:%S|%a %b %d %H:%M:%S %Y|%Y年%m月%d日 %H:%M:%S
%Y年%m月%d日 %H時%M分%S秒
%Y/%m/%d 午後%I:%M:%S"""
seconds = st.integers(0, 3 * 10**9).map(
    lambda number: datetime.datetime(1970, 1, 1) + timedelta(seconds=number)
)


@pytest.mark.parametrize("form", re.split(r"\||\n", WRITTEN))
@given(moments=st.lists(seconds, min_size=1, max_size=5), shuffle=st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_any_moment_in_any_form_reads_back_where_the_column_decides(form, moments, shuffle):
    if "%y" in form:
        moments = [moment.replace(year=2024) for moment in moments]
    moments = [*moments, datetime.datetime(2024, 3, 25, 10, 0)]
    if "午後" in form:
        moments = [moment.replace(hour=12 + moment.hour % 12) for moment in moments]
    shuffle.shuffle(moments)
    assert column(*(moment.strftime(form) for moment in moments)) == (
        [moment.isoformat() for moment in moments],
        True,
    )


@given(
    moment=seconds,
    minutes=st.integers(-14 * 60, 14 * 60),
    unit=st.sampled_from([1, 10**3, 10**6, 10**9]),
)
@settings(max_examples=60, deadline=None)
def test_offsets_are_kept_and_any_unit_since_1970_gives_the_moment(moment, minutes, unit):
    zoned = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    for form in (
        "%Y-%m-%dT%H:%M:%S%z",
        "%Y-%m-%d %H:%M:%S GMT%z",
        "%a, %d %b %Y %H:%M:%S %z",
        "%a %b %d %Y %H:%M:%S GMT%z",
    ):
        assert column(zoned.strftime(form)) == ([zoned.isoformat()], True)
    moment = max(moment, datetime.datetime(1974, 1, 1)).replace(tzinfo=UTC)
    assert column(str(int(moment.timestamp()) * unit))[0] == [moment.isoformat()]


@given(value=st.text() | st.integers() | st.floats() | st.text("0123456789/.-: APM", max_size=20))
@settings(max_examples=300, deadline=None)
def test_no_value_fails_and_what_is_read_is_iso(value):
    (read,), _ = column(value)
    assert not read or 1901 <= datetime.datetime.fromisoformat(read).year <= 2100


@pytest.mark.parametrize(
    "locale", ["en", "de", "fr", "es", "it", "pt", "nl", "ru", "sv", "da", "nb", "tr"]
)
def test_the_names_of_months_are_those_of_the_unicode_locales(locale):
    babel = pytest.importorskip("babel")
    for names in babel.Locale.parse(locale).months.values():
        for width in ("wide", "abbreviated"):
            for number, name in names.get(width, {}).items():
                assert column(f"14 {name} 2024 15:05") == (
                    [f"2024-{number:02}-14T15:05:00"],
                    True,
                ), name
