"""Score turns for a query by their words, and by a speaker and a time that the query names."""

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

WORDS, SPEAKER, TIME = 0.4, 1.0, 1.0
"""What BM25, a speaker whom the query names, and a time that it names count for beside the standard
score of cosines.

They were chosen on LoCoMo (dev), as were the next ones. BM25 stays as it is: its standard score
grows with the number of turns, and then hides the cosines.
"""

WORDS_BEFORE, WORDS_AFTER = 0.3, 0.1
"""What the words of the turn before and after count for, in one session."""

Scores = NDArray[np.float64]

_IN_ORDER = "january february march april may june july august september october november december"
_MONTHS = _IN_ORDER.split()
# "May" and "March" at the beginning are verbs without a number; written small, months follow a
# preposition.
_MONTH = re.compile(
    rf"(?!^Ma(?:y|rch)\b(?! ?\d))\b({'|'.join(map(str.title, _MONTHS))})\b"
    rf"|\b(?:in|on|of|since|last) ({'|'.join(_MONTHS)})\b"
)
_WORD = re.compile(r"[^\W_]+")
_DAY = re.compile(r"\b([0-3]?\d)(?:st|nd|rd|th)?\b")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")


def beside_meaning(
    query: str,
    words: Scores,
    before: NDArray[np.int_],
    speakers: Mapping[str, Sequence[int]],
    times: Mapping[str, Sequence[int]],
) -> Scores:
    """Return what words, speakers and times of N turns add to standard scores of meaning, (N,).

    Args:
        query: The query.
        words: The score of each turn by its words, (N,).
        before: The row of the turn before each in its session, or -1, (N,).
        speakers: The rows of turns by the names of their speakers.
        times: The rows of turns by their times, or the days of these.
    """
    later = np.flatnonzero(before >= 0)
    scores = words.copy()
    scores[later] += WORDS_BEFORE * words[before[later]]
    scores[before[later]] += WORDS_AFTER * words[later]  # a turn is before one other at most
    scores *= WORDS
    speaker = asked_speaker(query, speakers)
    if speaker:
        scores[np.array(speakers[speaker])] += SPEAKER
    time = asked_time(query)
    if time:
        for day, rows in times.items():
            if time.match(day):
                scores[np.array(rows)] += TIME
    return scores


def standard(scores: Scores) -> Scores:
    """Return how many standard deviations each score is above the mean, 0 where all are equal."""
    spread = scores.std()
    result: Scores = (scores - scores.mean()) / (spread if spread > 1e-9 else 1.0)
    return result


def asked_speaker(query: str, names: Iterable[str]) -> str:
    """Return the one speaker whose first name a query has, or nothing if there are more or none."""
    words = set(_WORD.findall(query.lower()))
    named = {name for name in names if words & set(_WORD.findall(name.lower())[:1])}
    return named.pop() if len(named) == 1 else ""


def asked_time(query: str) -> re.Pattern[str] | None:
    """Return what the ISO 8601 times look like that a query names.

    A month, perhaps with its day, a year, or both.
    """
    month, year = _MONTH.search(query), _YEAR.search(query)
    if not month and not year:
        return None
    form = [year[0] if year else r"\d{4}", r"\d\d", r"\d\d"]
    if month:
        form[1] = f"{_MONTHS.index(month[0].split()[-1].lower()) + 1:02}"
        start = max(month.start(1), month.start(2))
        beside = (
            f"{query[max(0, start - len('31st of ')) : start]} "
            f"{query[month.end() : month.end() + 5]}"
        )
        day = _DAY.search(_YEAR.sub("", beside))
        form[2] = f"{int(day[1]):02}" if day else form[2]
    return re.compile("-".join(form))
