"""Words of texts, and the texts that share them with a query.

BM25, over texts that are added as they come.
"""

import re
from array import array
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

K1, B = 0.9, 0.4
"""How soon a repeated word stops counting, and how much a long text is held back.

Those of Anserini.
"""

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
    """Texts by their words (Robertson and Zaragoza, 2009, equation 3.15).

    One is added in microseconds.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._places: dict[str, array[int]] = {}
        self._counts: dict[str, array[int]] = {}
        self._lengths = array("l")
        for text in texts:
            self.add(text)

    def __len__(self) -> int:
        return len(self._lengths)

    def add(self, text: str) -> None:
        """Add a text; its row is the number of those before it."""
        words = words_of(text)
        for word, count in Counter(words).items():
            self._places.setdefault(word, array("l")).append(len(self))
            self._counts.setdefault(word, array("l")).append(count)
        self._lengths.append(len(words))

    def scores(self, query: str) -> NDArray[np.float64]:
        """Score all N texts, (N,); a text that shares no word with the query has 0."""
        lengths = np.array(self._lengths, dtype=np.float64)
        long = K1 * (1 - B + B * lengths / max(1.0, lengths.mean() if len(self) else 1.0))
        scores = np.zeros(len(self))
        for word in set(words_of(query)) & self._places.keys():
            rows, counts = np.array(self._places[word]), np.array(self._counts[word])
            rarity = np.log1p((len(self) - len(rows) + 0.5) / (len(rows) + 0.5))
            scores[rows] += rarity * (K1 + 1) * counts / (counts + long[rows])
        return scores
