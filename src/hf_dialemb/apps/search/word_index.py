"""Words of texts, and the texts that share them with a query.

BM25, over texts that are added, changed and taken out as they come.
"""

import re
from array import array
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

K1 = 0.9
"""How soon a repeated word stops counting, as in Anserini."""

B = 0.4
"""How much a long text is held back, as in Anserini."""

_WORD = re.compile(r"[\u3400-\u9fff]|[^\W_]+")  # each Chinese character is a word
_KINDS = ("VERB", "NOUN", "ADJ", "ADV")

# What questions are made of, and what nearly every turn holds.
_STOPS = """
a about am an and any are as at be been but by can could did do does for from had has have he her
him his how i if in into is it me my no not of on or our say she should some such tell that the
their then there these they this to us was we were what when where which who why will with would
you your
"""
STOP_WORDS = frozenset(_STOPS.split())
"""English words that tell nothing about a turn."""


@lru_cache(maxsize=200_000)
def _lemma(word: str) -> str:
    from lemminflect import getAllLemmas

    lemmas = getAllLemmas(word)
    return next((lemmas[kind][0] for kind in _KINDS if kind in lemmas), word)


def words_of(text: str) -> list[str]:
    """Return the words of a text that tell something in lower case, English ones as basic forms."""
    return [_lemma(word) for word in _WORD.findall(text.lower()) if word not in STOP_WORDS]


def shared(query: str, text: str) -> tuple[str, ...]:
    """Return the words that a query and a text share, in the query's order."""
    there = set(words_of(text))
    return tuple(word for word in dict.fromkeys(words_of(query)) if word in there)


class WordIndex:
    """Texts by their words (Robertson and Zaragoza, 2009, equation 3.15)."""

    def __init__(self) -> None:
        # the rows of each word, as often as it stands there, one after the other
        self._rows: defaultdict[str, array[int]] = defaultdict(lambda: array("q"))
        self._texts: list[str] = []
        self._lengths = array("q")

    def put(self, row: int, words: str) -> None:
        """Set the words of a text, joined by blanks: of the next row, or of one that is there."""
        if row == len(self._texts):
            self._texts.append("")
            self._lengths.append(0)
        for word in {*self._texts[row].split()}:
            there = np.array(self._rows[word])
            self._rows[word] = array("q", there[there != row].tobytes())
        new = words.split()
        self._texts[row] = words
        self._lengths[row] = len(new)
        for word in new:
            self._rows[word].append(row)

    def words(self, row: int) -> list[str]:
        """Return the words of a text."""
        return self._texts[row].split()

    def having(self, words: Iterable[str]) -> NDArray[np.bool_]:
        """Return which of N texts have one of some words, (N,)."""
        there = np.zeros(len(self._texts), dtype=bool)
        for word in words:
            there[np.array(self._rows.get(word, ()), dtype=np.int64)] = True
        return there

    def scores(self, query: str, of: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Score all N texts as if there were only those of a mask (N,); all others have 0."""
        lengths = np.array(self._lengths, dtype=np.float64)
        count = int(of.sum())
        long = K1 * (1 - B + B * lengths / max(1.0, lengths.sum(where=of) / max(count, 1)))
        scores = np.zeros(len(lengths))
        for word in set(words_of(query)) & self._rows.keys():
            there = np.array(self._rows[word])
            rows, counts = np.unique(there[of[there]], return_counts=True)
            rarity = np.log1p((count - len(rows) + 0.5) / (len(rows) + 0.5))
            scores[rows] += rarity * (K1 + 1) * counts / (counts + long[rows])
        return scores
