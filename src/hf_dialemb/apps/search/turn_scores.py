"""Score turns for a query: by meaning and words, by who said them, when, and beside what."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .query_reading import Reading

WORDS = 0.4
"""What BM25 counts for beside the standard score of cosines.

It stays as it is: its standard score grows with the number of turns, and then hides the cosines. It
was chosen on LoCoMo (dev), as were the next ones.
"""
SPEAKER = 1.5
"""What a speaker counts for whom the query names."""
TIME = 1.0
"""What a time counts for that the query names."""
ASKS = 0.5
"""What a turn loses that ends in a question."""
WHEN = 1.0
"""What a turn gains for a word of a time if the query asks when."""
SESSION = 0.2
"""The share that a turn gets of its session's best score."""
WORDS_BEFORE = 0.3
"""What the words of the turn before count for, in one session."""
WORDS_AFTER = 0.1
"""What the words of the turn after count for, in one session."""

Scores = NDArray[np.float64]


class Scored(NamedTuple):
    """The scores of N turns for a query."""

    of: NDArray[np.bool_]  # which turns there are
    before: NDArray[np.int_]  # the row before each in its session, or -1
    cosines: Scores
    meaning: Scores  # their standard scores
    bm25: Scores  # BM25
    words: Scores  # what the words add
    beside: Scores  # what all but the cosine adds
    total: Scores  # with the session; minus infinity for turns that are not there
    spoken: NDArray[np.bool_]  # by the speaker whom the query names
    reading: Reading


def standard(scores: Scores, of: NDArray[np.bool_] | None = None) -> Scores:
    """Return how many standard deviations each score is above the mean, 0 where all are equal.

    Mean and deviation are those of a mask (N,), if one is given.
    """
    own = scores if of is None or of.all() else scores[of]
    spread = own.std()
    result: Scores = (scores - own.mean()) / (spread if spread > 1e-6 else 1.0)
    return result


def with_beside(words: Scores, before: NDArray[np.int_]) -> Scores:
    """Add to the scores of turns by words (N,) those of the turns beside them, and weigh them.

    ``before`` has the row of the turn before each in its session, or -1, (N,).
    """
    follows = before >= 0
    scores: Scores = words + WORDS_BEFORE * np.where(follows, words[before], 0.0)
    later = np.flatnonzero(follows & (words > 0))
    scores[before[later]] += WORDS_AFTER * words[later]  # a turn is before one other at most
    return WORDS * scores


def with_session(scores: Scores, before: NDArray[np.int_]) -> Scores:
    """Add to the scores of turns (N,) a share of the best of their session.

    ``before`` has the row of the turn before each in its session, or -1, (N,). Scores are rounded,
    so that ties do not hang on the order of sums.
    """
    rows = np.arange(len(before))
    first = np.where(before < 0, rows, before)
    first = first[np.maximum.accumulate(rows * (first != rows - 1))]  # of rows in a row
    while ((earlier := first[first]) != first).any():
        first = earlier
    best = np.full_like(scores, -np.inf)
    np.maximum.at(best, first, scores)
    return np.round(scores + SESSION * best[first], 5)
