"""What is typical of each of several groups of texts: class-based TF-IDF (Grootendorst, 2022) of short phrases."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

PHRASES = 5
"""So many phrases a group gets at most."""

_LONGEST = 3
_LONGEST_WORD = 50  # what has more characters is no word
_CANDIDATES = 50  # the best of a group are looked through for those that say something new
_SAME = 0.75  # a phrase that is mostly said within a longer one gives way to it
_ASKING = frozenset(("what", "when", "where", "which", "who", "whose", "why", "how"))
_STOPS = re.compile(r"[^\w\s'’-]+|\s-+\s")  # phrases do not go across punctuation
_WORD = re.compile(r"\w(?:[\w'’-]*\w)?")


def typical_phrases(groups: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Finds phrases of one to three words that are typical of each of G groups: at most `PHRASES`, the best first.

    A phrase scores the share of a group's texts that hold it, times ``log(1 + A / f)``: f texts hold it in all, A is
    the mean over groups of the sum of such counts. One of two words counts half as much again, one of three twice, as
    it says more. Phrases that begin or end with a word such as "the", of digits alone, or said once in a group of
    several texts, are left out, and so is what repeats a part of another.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    texts = {text: row for row, text in enumerate(dict.fromkeys(text for group in groups for text in group))}
    vectorizer = CountVectorizer(analyzer=_phrases_of, binary=True, dtype=np.float32)
    try:
        held = vectorizer.fit_transform(texts)
    except ValueError:  # scikit-learn's way to say that no text holds a word
        return [()] * len(groups)
    phrases = vectorizer.get_feature_names_out()
    counts = (_members(groups, texts) @ held).tocsr()
    totals = np.asarray(counts.sum(axis=0)).ravel()
    rarity = np.log1p(totals.sum() / len(groups) / totals)
    found = []
    for row, group in enumerate(groups):
        start, end = counts.indptr[row : row + 2]
        columns, often = counts.indices[start:end], counts.data[start:end]
        several = often >= min(2, len(group))
        found.append(_best(phrases, columns[several], often[several], rarity))
    return found


def _phrases_of(text: str) -> set[str]:
    """Finds all phrases of a text that say something."""
    found: set[str] = set()
    for part in _STOPS.split(text.lower()):
        words = _WORD.findall(part)
        for length in range(1, _LONGEST + 1):
            found.update(
                " ".join(words[start : start + length])
                for start in range(len(words) - length + 1)
                if _says_something(words[start : start + length])
            )
    return found


def _says_something(words: Sequence[str]) -> bool:
    empty = _empty_words()
    first, last = (word.replace("’", "'").partition("'")[0] for word in (words[0], words[-1]))
    begins = first not in empty or (first in _ASKING and len(words) > 1)
    long = any(len(word) > _LONGEST_WORD for word in words)
    return begins and last not in empty and not long and not all(word.isdigit() for word in words)


@cache
def _empty_words() -> frozenset[str]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return frozenset(ENGLISH_STOP_WORDS) | {"like"}


def _members(groups: Sequence[Sequence[str]], texts: dict[str, int]) -> Any:  # noqa: ANN401 - scipy's are not typed
    """Counts how often each group has each text, (G, T)."""
    from scipy.sparse import csr_matrix

    rows = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    columns = [texts[text] for group in groups for text in group]
    ones = np.ones(len(columns), dtype=np.float32)
    return csr_matrix((ones, (rows, columns)), shape=(len(groups), len(texts)))


def _best(phrases: NDArray[Any], columns: NDArray[Any], often: NDArray[Any], rarity: NDArray[Any]) -> tuple[str, ...]:
    """Chooses the phrases of one group that score best and do not repeat one another."""
    words = np.array([phrase.count(" ") + 1 for phrase in phrases[columns]])
    scores = often * rarity[columns] * (1 + words) / 2
    order = np.lexsort((phrases[columns], -scores))[:_CANDIDATES]
    candidates = dict(zip(phrases[columns[order]], often[order], strict=True))
    kept: list[str] = []
    for phrase, count in candidates.items():
        longer = any(_within(phrase, other) and often >= _SAME * count for other, often in candidates.items())
        if not longer and not any(_within(phrase, other) or _within(other, phrase) for other in kept):
            kept.append(phrase)
    return tuple(kept[:PHRASES])


def _within(phrase: str, other: str) -> bool:
    return phrase != other and f" {phrase} " in f" {other} "
