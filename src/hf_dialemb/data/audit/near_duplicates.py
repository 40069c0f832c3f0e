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
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

DIALOGUE_THRESHOLD = 0.65  # least share of the smaller dialogue's own shingles in near duplicates
UTTERANCE_THRESHOLD = 0.8  # least Jaccard similarity of the shingles of near utterances
MOST_OWNERS = 5  # dialogues of an evaluation set that may have an own shingle in common
LEAST_SHARED = 40  # own shingles in common of near duplicates: fewer are a phrase of small talk
_DIALOGUE_LENGTH, _UTTERANCE_LENGTH = 8, 3  # characters in a shingle
_REMEMBERED = 200_000  # look-ups: some 20 MiB
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)

# Chinese, Japanese, Korean: one such character says about as much as two letters, and so counts as
# two.
_DENSE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")

Hashes = NDArray[np.uint64]


DIALOGUE, UTTERANCE = "dialogue", "utterance"
"""Levels of a leak."""


class Leak(NamedTuple):
    """A part of an evaluation set in a training dialogue.

    The similarity of equal texts is 1.0. Of near duplicates it is the share of the smaller
    dialogue's own shingles that the other has, or the Jaccard similarity of the utterances'
    shingles.
    """

    evaluation: str  # the evaluation set
    id: str  # of the dialogue or utterance there
    level: str  # `DIALOGUE` or `UTTERANCE`
    exact: bool  # equal, and not only nearly
    similarity: float
    turn: int | None = None  # position in the training dialogue; None if the whole dialogue leaks


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


def content_hash(text: str) -> int:
    """Return a hash of a text, 64 bits, the same in every process."""
    return int.from_bytes(
        blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little"
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
        self._names: list[str] = []
        self._ids: list[str] = []
        self._sets: list[int] = []  # of each dialogue, the position of its evaluation set
        self._own: list[Hashes] = []  # of each dialogue
        self._common: list[Hashes] = []  # of each evaluation set
        self._exact: dict[int, dict[str, str]] = {}
        self._tables: tuple[_ShingleTable, _ShingleTable] | None = None

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, evaluation: str, texts: Iterable[tuple[str, str]]) -> None:
        """Add an evaluation set: pairs of a dialogue's id and its text as `comparable` gives it."""
        parts = [np.empty(0, np.uint64)]
        for identifier, text in texts:
            _keep_first(self._exact.setdefault(content_hash(text), {}), evaluation, identifier)
            self._ids.append(identifier)
            self._sets.append(len(self._names))
            parts.append(shingles_of(text, _DIALOGUE_LENGTH))
        keys, places, owners = np.unique(
            np.concatenate(parts), return_inverse=True, return_counts=True
        )
        is_own = np.split(owners[places] <= MOST_OWNERS, np.cumsum([len(part) for part in parts]))
        self._own += [part[own] for part, own in zip(parts, is_own, strict=False)][1:]
        self._common.append(keys[owners > MOST_OWNERS])
        self._names.append(evaluation)
        self._tables = None

    def find(self, text: str, near: bool) -> list[Leak]:
        """Return of each evaluation set the equal dialogue or, with ``near``, the nearest."""
        leaks: dict[str, Leak] = {}
        for share, row in self._near(text) if near else ():
            name = self._names[self._sets[row]]
            leaks.setdefault(name, Leak(name, self._ids[row], DIALOGUE, False, share))
        for name, identifier in self._exact.get(content_hash(text), {}).items():
            leaks[name] = Leak(name, identifier, DIALOGUE, True, 1.0)
        return list(leaks.values())

    def _near(self, text: str) -> list[tuple[float, int]]:
        """Return the shares and the rows of near dialogues, the nearest first."""
        if self._tables is None:
            self._tables = _ShingleTable(self._own), _ShingleTable(self._common)
        own, common = self._tables
        shingles = shingles_of(text, _DIALOGUE_LENGTH)
        shared = own.shared(shingles)
        rows = np.flatnonzero(shared >= LEAST_SHARED)
        others = len(shingles) - common.shared(shingles)[np.array(self._sets)[rows]]
        shares = shared[rows] / np.minimum(others, own.sizes[rows])
        near = shares >= DIALOGUE_THRESHOLD
        pairs = zip(shares[near].tolist(), rows[near].tolist(), strict=True)
        return sorted(pairs, key=lambda pair: (-pair[0], self._ids[pair[1]]))


class Utterances:
    """The utterances of evaluation sets, in which equal and nearly equal ones are looked up.

    Recent look-ups are remembered.
    """

    def __init__(self) -> None:
        # of each distinct text, from the evaluation set to the id there
        self._places: dict[str, dict[str, str]] = {}
        self._texts: list[str] = []  # of the rows of the table
        self._table: _ShingleTable | None = None
        self.find = lru_cache(_REMEMBERED)(self._find)  # common texts soon come again

    def __len__(self) -> int:
        return len(self._places)

    def add(self, evaluation: str, identifier: str, text: str) -> None:
        """Add an utterance, as `comparable` gives it."""
        _keep_first(self._places.setdefault(text, {}), evaluation, identifier)
        self._table = None
        self.find.cache_clear()

    def _find(self, text: str) -> tuple[Leak, ...]:
        """Return the equal or else the nearest utterance of each evaluation set, sorted by set.

        Of several, the one whose id comes first is returned.
        """
        if self._table is None:
            self._texts = list(self._places)
            self._table = _ShingleTable(
                [shingles_of(other, _UTTERANCE_LENGTH) for other in self._texts]
            )
        shingles = shingles_of(text, _UTTERANCE_LENGTH)
        shared = self._table.shared(shingles)
        similarities = shared / (self._table.sizes + len(shingles) - shared)
        best: dict[str, tuple[bool, float, str]] = {}
        for row in np.flatnonzero(similarities >= UTTERANCE_THRESHOLD):
            other = self._texts[row]
            for evaluation, identifier in self._places[other].items():
                match = (other != text, -float(similarities[row]), identifier)
                best[evaluation] = min(match, best.get(evaluation, match))
        return tuple(
            Leak(name, identifier, UTTERANCE, not differs, -distance)
            for name, (differs, distance, identifier) in sorted(best.items())
        )


def _keep_first(places: dict[str, str], evaluation: str, identifier: str) -> None:
    """Keep of each evaluation set the id that comes first."""
    places[evaluation] = min(identifier, places.get(evaluation, identifier))
