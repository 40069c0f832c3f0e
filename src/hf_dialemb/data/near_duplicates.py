"""Near duplicates: the same texts but for case, punctuation, tokenisation or some edits.

Texts are compared as their letters and digits alone (`comparable`), by shingles: runs of 3
characters of an utterance, of 8 of a dialogue. Every near text is found, without an approximation.

A dialogue equals another (`Dialogues`) when all its letters do, whatever turns they are cut into.
It nearly equals another when 65 % of the own shingles of the smaller one, and at least 40 of them,
stand in the other as well. A shingle is a dialogue's own as long as five dialogues of the
evaluation set or fewer have it: what more have is the corpus's manner of speaking. The share is the
smaller one's, since half of an evaluation dialogue is leakage too.

An utterance nearly equals another (`Utterances`) when the Jaccard similarity of their shingles is
0.8 or more: such pairs differ in a letter, a filler or a number, while pairs around 0.7 begin to be
different requests.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

DIALOGUE_THRESHOLD = 0.65  # least share of the smaller dialogue's own shingles in near duplicates
UTTERANCE_THRESHOLD = 0.8  # least Jaccard similarity of the shingles of near utterances
MOST_OWNERS = 5  # dialogues of an evaluation set that may have an own shingle in common
LEAST_SHARED = 40  # own shingles in common of near duplicates: fewer are a phrase of small talk
_DIALOGUE_LENGTH = 8  # characters in a shingle
_UTTERANCE_LENGTH = 3
_REMEMBERED = 200_000  # look-ups: some 20 MiB
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)

# Chinese, Japanese, Korean: one such character says about as much as two letters, and so counts as
# two.
_DENSE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")

Hashes = NDArray[np.uint64]


class _Kept(dict[int, int | None]):
    """From a letter, digit or mark of any script to itself, from other characters to None.

    Fills itself.
    """

    def __missing__(self, code: int) -> int | None:
        self[code] = code if unicodedata.category(chr(code))[0] in "LMN" else None
        return self[code]


_KEPT = _Kept()


def comparable(text: str) -> str:
    """Return the letters and digits of a text, folded (NFKC, case) and without spaces.

    Texts are compared by them.

    Chinese, Japanese and Korean characters are doubled. Of a text without letters and digits, all
    but its spaces stays.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    letters = folded.translate(_KEPT)
    return (letters if letters.isascii() else _DENSE.sub(r"\g<0>\g<0>", letters)) or "".join(
        folded.split()
    )


def shingles_of(text: str, length: int) -> Hashes:
    """Return the hashes of a text's runs of characters, sorted and distinct."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
    count = max(1, len(codes) - length + 1)
    codes = np.pad(codes, (0, max(0, length - len(codes))))
    hashes = np.zeros(count, np.uint64)
    for start in range(length):
        hashes = hashes * _MULTIPLIER + codes[start : start + count]
    return np.unique(hashes)


class _ShingleTable:
    """The shingles of texts: a sparse table with a row for a text and a column for a shingle."""

    def __init__(self, texts: Sequence[Hashes]) -> None:
        self.sizes = np.array([len(shingles) for shingles in texts])
        self._keys, columns = np.unique(np.concatenate(texts), return_inverse=True)
        rows = np.repeat(np.arange(len(texts)), self.sizes)
        shape = (len(texts), len(self._keys))
        self._table = csc_array((np.ones(len(rows), np.bool_), (rows, columns)), shape)

    def shared(self, shingles: Hashes) -> NDArray[np.intp]:
        """Count the shingles that each text shares with another."""
        columns = np.searchsorted(self._keys, shingles)
        columns = columns[np.searchsorted(self._keys, shingles, "right") > columns]
        return np.bincount(self._table[:, columns].indices, minlength=len(self.sizes))


class Dialogues:
    """The dialogues of evaluation sets, in which equal and nearly equal ones are looked up."""

    def __init__(self) -> None:
        self._exact: set[int] = set()  # hashes: the texts of a large set take much memory
        self._sets: list[int] = []  # of each dialogue, the position of its evaluation set
        self._own: list[Hashes] = []  # of each dialogue
        self._common: list[Hashes] = []  # of each evaluation set
        self._tables: tuple[_ShingleTable, _ShingleTable] | None = None

    def __len__(self) -> int:
        return len(self._own)

    def add(self, texts: Iterable[str]) -> None:
        """Add an evaluation set: the texts of its dialogues, as `comparable` gives them."""
        parts = [np.empty(0, np.uint64)]
        for text in texts:
            self._exact.add(hash(text))
            self._sets.append(len(self._common))
            parts.append(shingles_of(text, _DIALOGUE_LENGTH))
        keys, places, owners = np.unique(
            np.concatenate(parts), return_inverse=True, return_counts=True
        )
        is_own = np.split(owners[places] <= MOST_OWNERS, np.cumsum([len(part) for part in parts]))
        self._own += [part[own] for part, own in zip(parts, is_own, strict=False)][1:]
        self._common.append(keys[owners > MOST_OWNERS])
        self._tables = None

    def holds(self, text: str, near: bool) -> bool:
        """Return whether one of the dialogues equals a text or, with ``near``, nearly does."""
        if hash(text) in self._exact:
            return True
        if not near:
            return False
        if self._tables is None:
            self._tables = _ShingleTable(self._own), _ShingleTable(self._common)
        own, common = self._tables
        shingles = shingles_of(text, _DIALOGUE_LENGTH)
        shared = own.shared(shingles)
        rows = np.flatnonzero(shared >= LEAST_SHARED)
        others = len(shingles) - common.shared(shingles)[np.array(self._sets)[rows]]
        shares = shared[rows] / np.minimum(others, own.sizes[rows])
        return bool((shares >= DIALOGUE_THRESHOLD).any())


class Utterances:
    """The utterances of evaluation sets, in which equal and nearly equal ones are looked up.

    Recent look-ups are remembered.
    """

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._table: _ShingleTable | None = None
        self.holds = lru_cache(_REMEMBERED)(self._holds)  # common texts soon come again

    def __len__(self) -> int:
        return len(self._texts)

    def add(self, text: str) -> None:
        """Add an utterance, as `comparable` gives it."""
        self._texts.add(text)
        self._table = None
        self.holds.cache_clear()

    def _holds(self, text: str) -> bool:
        """Return whether one of the utterances equals a text, or nearly does."""
        if text in self._texts:
            return True
        if self._table is None:
            self._table = _ShingleTable(
                [shingles_of(other, _UTTERANCE_LENGTH) for other in self._texts]
            )
        shingles = shingles_of(text, _UTTERANCE_LENGTH)
        shared = self._table.shared(shingles)
        similarities = shared / (self._table.sizes + len(shingles) - shared)
        return bool((similarities >= UTTERANCE_THRESHOLD).any())
