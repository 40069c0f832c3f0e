"""Near duplicates: the same texts but for case, punctuation, tokenisation or some edits.

Texts are compared as their letters and digits alone (`comparable`), by shingles: runs of 3
characters of an utterance, of 8 of a dialogue. Every near text is found: candidates are verified.
docs/leakage.md says how the thresholds were chosen.

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
from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import chain
from math import ceil, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

DIALOGUE_THRESHOLD = 0.65  # least share of the smaller dialogue's own shingles in near duplicates
UTTERANCE_THRESHOLD = 0.8  # least Jaccard similarity of the shingles of near utterances
MOST_OWNERS = 5  # dialogues of an evaluation set that may have an own shingle in common
LEAST_SHARED = 40  # own shingles in common of near duplicates: fewer are a phrase of small talk
_DIALOGUE_LENGTH, _UTTERANCE_LENGTH = 8, 3  # characters in a shingle
_SHARED_RARE = 4  # rare shingles that a candidate shares: with fewer, there are many more to verify
_REMEMBERED = 200_000  # look-ups: some 20 MiB
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)

# Chinese, Japanese, Korean: one such character says about as much as two letters, and so counts as
# two.
_DENSE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")

Hashes = NDArray[np.uint64]


DIALOGUE, UTTERANCE, TURN = "dialogue", "utterance", "turn"
"""Levels of a leak.

A dialogue, an utterance, or (counted, not removed) a turn of a dialogue of an evaluation set.
"""


class Leak(NamedTuple):
    """A part of an evaluation set in a training dialogue.

    The similarity of equal texts is 1.0. Of near duplicates it is the share of the smaller
    dialogue's own shingles that the other has, or the Jaccard similarity of the utterances'
    shingles.
    """

    evaluation: str  # the evaluation set
    id: str  # of the dialogue or utterance there
    level: str  # `DIALOGUE`, `UTTERANCE` or `TURN`
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


def dialogue_shingles(text: str) -> Hashes:
    """Return the hashes of a dialogue's shingles, sorted and distinct."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
    count = max(1, len(codes) - _DIALOGUE_LENGTH + 1)
    codes = np.pad(codes, (0, max(0, _DIALOGUE_LENGTH - len(codes))))
    hashes = np.zeros(count, np.uint64)
    for start in range(_DIALOGUE_LENGTH):
        hashes = hashes * _MULTIPLIER + codes[start : start + count]
    return np.unique(hashes)


def utterance_shingles(text: str) -> set[str]:
    """Return the shingles of an utterance."""
    return {
        text[start : start + _UTTERANCE_LENGTH]
        for start in range(max(1, len(text) - _UTTERANCE_LENGTH + 1))
    }


class Dialogues:
    """The dialogues of evaluation sets, in which equal and nearly equal ones are looked up."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._ids: list[str] = []
        self._sets: list[int] = []  # of each dialogue, the position of its evaluation set
        self._parts: list[Hashes] = []
        self._exact: dict[int, dict[str, str]] = {}
        self._table: _Table | None = None

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, evaluation: str, texts: Iterable[tuple[str, str]]) -> None:
        """Add an evaluation set: pairs of a dialogue's id and its text as `comparable` gives it."""
        for identifier, text in texts:
            _keep_first(self._exact.setdefault(content_hash(text), {}), evaluation, identifier)
            self._ids.append(identifier)
            self._sets.append(len(self._names))
            self._parts.append(dialogue_shingles(text))
        self._names.append(evaluation)
        self._table = None

    def find(self, text: str, near: bool) -> list[Leak]:
        """Return of each evaluation set the equal dialogue or, with ``near``, the nearest."""
        leaks: dict[str, Leak] = {}
        if near:
            self._table = self._table or _Table(self._parts, self._sets, len(self._names))
            rows, shares = self._table.shares(dialogue_shingles(text))
            pairs = [
                pair
                for pair in zip(shares.tolist(), rows.tolist(), strict=True)
                if pair[0] >= DIALOGUE_THRESHOLD
            ]
            for share, row in sorted(pairs, key=lambda pair: (-pair[0], self._ids[pair[1]])):
                name = self._names[self._sets[row]]
                leaks.setdefault(name, Leak(name, self._ids[row], DIALOGUE, False, share))
        for name, identifier in self._exact.get(content_hash(text), {}).items():
            leaks[name] = Leak(name, identifier, DIALOGUE, True, 1.0)
        return list(leaks.values())


class _Table:
    """Entries of shingles: of dialogues whose own they are, of sets where they are common."""

    def __init__(self, parts: Sequence[Hashes], sets: Sequence[int], set_count: int) -> None:
        self._sets, self._set_count = np.array(sets, np.int32), set_count
        owners = np.repeat(np.arange(len(parts), dtype=np.int32), [len(part) for part in parts])
        keys = np.concatenate(parts)
        order = np.argsort(keys, kind="stable")  # and so the dialogues of a set stay together
        keys, owners = keys[order], owners[order]
        places = self._sets[owners]
        first = np.flatnonzero(
            np.append(True, (keys[1:] != keys[:-1]) | (places[1:] != places[:-1]))
        )
        counts = np.diff(np.append(first, len(keys)))
        common = first[counts > MOST_OWNERS]
        kept = np.repeat(counts <= MOST_OWNERS, counts)
        self._sizes = np.bincount(owners[kept], minlength=len(parts))
        owners[common] = len(parts) + places[common]
        kept[common] = True
        self._owners, keys = owners[kept], keys[kept]
        self._starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
        self._keys = keys[self._starts]
        self._counts = np.diff(np.append(self._starts, len(keys)))

    def shares(self, shingles: Hashes) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Return the dialogues that share enough shingles, and the shares of the smaller one."""
        places = np.minimum(np.searchsorted(self._keys, shingles), len(self._keys) - 1)
        places = places[self._keys[places] == shingles]
        counts = self._counts[places]
        skipped = np.cumsum(counts) - counts
        entries = np.repeat(self._starts[places] - skipped, counts) + np.arange(counts.sum())
        shared = np.bincount(self._owners[entries], minlength=len(self._sizes) + self._set_count)
        shared, common = shared[: len(self._sizes)], shared[len(self._sizes) :]
        rows = np.flatnonzero(shared >= LEAST_SHARED)
        own = len(shingles) - common[self._sets[rows]]
        return rows, shared[rows] / np.minimum(own, self._sizes[rows])


class Utterances:
    """The utterances of evaluation sets, in which equal and nearly equal ones are looked up.

    Recent look-ups are remembered.
    """

    def __init__(self, level: str = UTTERANCE) -> None:
        self._level = level  # of the leaks
        # of each distinct text, from the evaluation set to the id there
        self._places: dict[str, dict[str, str]] = {}
        self._rare: _RareShingles | None = None
        self._remembered: dict[int, tuple[Leak, ...]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def add(self, evaluation: str, identifier: str, text: str) -> None:
        """Add an utterance, as `comparable` gives it."""
        if text not in self._places:
            self._rare = None
        self._remembered.clear()
        _keep_first(self._places.setdefault(text, {}), evaluation, identifier)

    def find(self, text: str) -> tuple[Leak, ...]:
        """Return the equal or else the nearest utterance of each evaluation set, sorted by set.

        Of several, the one whose id comes first is returned.
        """
        key = content_hash(text)
        if key not in self._remembered:
            if len(self._remembered) >= _REMEMBERED:  # common texts soon come again
                self._remembered.clear()
            self._remembered[key] = self._look_up(text)
        return self._remembered[key]

    def _look_up(self, text: str) -> tuple[Leak, ...]:
        best: dict[str, tuple[float, str]] = {}
        shingles = utterance_shingles(text)
        self._rare = self._rare or _RareShingles(list(self._places))
        for candidate in self._rare.candidates(shingles):
            others = utterance_shingles(candidate)
            shared = len(shingles & others)
            similarity = shared / (len(shingles) + len(others) - shared)
            if similarity >= UTTERANCE_THRESHOLD and candidate != text:
                for evaluation, identifier in self._places[candidate].items():
                    best[evaluation] = min(
                        (-similarity, identifier), best.get(evaluation, (0.0, ""))
                    )
        leaks = {
            name: Leak(name, id_, self._level, False, -negative)
            for name, (negative, id_) in best.items()
        }
        leaks |= {
            name: Leak(name, id_, self._level, True, 1.0)
            for name, id_ in self._places.get(text, {}).items()
        }
        return tuple(leaks[name] for name in sorted(leaks))


class _RareShingles:
    """Texts by their rarest shingles and by bands of length; near texts are at most one band apart.

    Two near texts have at least the threshold's share of either's shingles in common. Enough of the
    rarest of both are looked at that they share `_SHARED_RARE` of them, or all that are in common
    where those are fewer.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._counts = Counter(chain.from_iterable(map(utterance_shingles, texts)))
        self._texts: dict[tuple[int, str], list[str]] = {}
        for text in texts:
            shingles = utterance_shingles(text)
            for shingle in self._rarest(shingles):
                self._texts.setdefault((_band(shingles), shingle), []).append(text)

    def candidates(self, shingles: set[str]) -> list[str]:
        """Return all texts that may be near, and few others."""
        band, rarest = _band(shingles), self._rarest(shingles)
        places = ((near, shingle) for near in (band - 1, band, band + 1) for shingle in rarest)
        counts = Counter(
            chain.from_iterable(self._texts[place] for place in places if place in self._texts)
        )
        least = min(_SHARED_RARE, _in_common(shingles))
        return [text for text, count in counts.items() if count >= least]

    def _rarest(self, shingles: set[str]) -> list[str]:
        rare = sorted(shingles, key=lambda shingle: (self._counts.get(shingle, 0), shingle))
        return rare[: len(shingles) - _in_common(shingles) + _SHARED_RARE]


def _in_common(shingles: set[str]) -> int:
    return ceil(UTTERANCE_THRESHOLD * len(shingles))


def _band(shingles: set[str]) -> int:
    return int(log(len(shingles), 1 / UTTERANCE_THRESHOLD))


def _keep_first(places: dict[str, str], evaluation: str, identifier: str) -> None:
    """Keep of each evaluation set the id that comes first."""
    places[evaluation] = min(identifier, places.get(evaluation, identifier))
