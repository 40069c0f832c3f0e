"""Near duplicates: texts and dialogues that are the same but for case, punctuation, tokenisation or some edits.

Texts are compared as their letters and digits alone, folded and without spaces (`comparable`), so that "I do n't" and
"i don't" are equal. What is compared of them are shingles: runs of 3 characters of an utterance, of 8 of a dialogue.

A dialogue equals another (`Dialogues`) when all its letters do, whatever turns they are cut into. It nearly equals
another when 65 % of the own shingles of the smaller one, and at least 40 of them, stand in the other as well. A shingle
is a dialogue's own as long as five dialogues of the evaluation set or fewer have it: what more have is the corpus's
manner of speaking, or a template. The share of the smaller one, and not that of the union, is taken
since half of an evaluation dialogue is leakage too: some dialogues of MultiWOZ go on where others of it end. Own
shingles have few places, so that all are looked up: the result is exact.

These settings were chosen on the derivatives of MultiWOZ, whose ids tell what of them is in dev and test of version
2.1: all of them are found (docs/leakage.md), those that were tokenised (HDSA) and rewritten (182 of TITAN) too.
Few dialogues of corpora made from templates, such as STAR, MuLDoGO and SGD, are near. With all shingles, and half of
the union asked for, STAR and MuLDoGO have about ten times as many, and TITAN only 176.

An utterance nearly equals another (`Utterances`) when the Jaccard similarity of their shingles is 0.8 or more. Above
that, pairs differ in a letter, a filler or a number ("what kind(s) of hobbies do you have"); around 0.7 they begin to
be different requests ("the calories in a cookie", "in a taco"). Candidates are those of similar length that share some
of the rarest shingles, and each is verified: this result is exact, too.
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

# Chinese, Japanese, Korean: one such character says about as much as two letters, and so counts as two.
_DENSE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")

Hashes = NDArray[np.uint64]


class Match(NamedTuple):
    """The place of an equal or near text."""

    evaluation: str  # the evaluation set
    id: str  # the dialogue or utterance there
    exact: bool  # equal, and not only nearly
    similarity: float  # 1.0 if equal; otherwise as compared with the threshold


class _Kept(dict[int, int | None]):
    """From a letter, digit or mark of any script to itself, from other characters to None; fills itself."""

    def __missing__(self, code: int) -> int | None:
        self[code] = code if unicodedata.category(chr(code))[0] in "LMN" else None
        return self[code]


_KEPT = _Kept()


def comparable(text: str) -> str:
    """Return the letters and digits of a text, folded (NFKC, case) and without spaces; texts are compared by them.

    Chinese, Japanese and Korean characters are doubled. Of a text without letters and digits, all but its spaces stays.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    letters = folded.translate(_KEPT)
    return (letters if letters.isascii() else _DENSE.sub(r"\g<0>\g<0>", letters)) or "".join(folded.split())


def content_hash(text: str) -> int:
    """Return a hash of a text, 64 bits, the same in every process."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


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
    return {text[start : start + _UTTERANCE_LENGTH] for start in range(max(1, len(text) - _UTTERANCE_LENGTH + 1))}


class Dialogues:
    """The dialogues of evaluation sets, to look equal and nearly equal ones up."""

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
        """Add an evaluation set: pairs of a dialogue's id and its whole text, as `comparable` gives it."""
        for identifier, text in texts:
            places = self._exact.setdefault(content_hash(text), {})
            places[evaluation] = min(identifier, places.get(evaluation, identifier))
            self._ids.append(identifier)
            self._sets.append(len(self._names))
            self._parts.append(dialogue_shingles(text))
        self._names.append(evaluation)
        self._table = None

    def find(self, text: str, near: bool) -> list[Match]:
        """Return the best match of each evaluation set: the equal dialogue or, with ``near``, the nearest."""
        matches = self._find_near(dialogue_shingles(text)) if near else {}
        for name, identifier in self._exact.get(content_hash(text), {}).items():
            matches[name] = Match(name, identifier, True, 1.0)
        return list(matches.values())

    def _find_near(self, shingles: Hashes) -> dict[str, Match]:
        if self._table is None:
            self._table = _Table(self._parts, self._sets, len(self._names))
        rows, shares = self._table.shares(shingles)
        matches = [
            Match(self._names[self._sets[row]], self._ids[row], False, share)
            for row, share in zip(rows.tolist(), shares.tolist(), strict=True)
            if share >= DIALOGUE_THRESHOLD
        ]
        matches.sort(key=lambda match: (-match.similarity, match.id), reverse=True)
        return {match.evaluation: match for match in matches}  # the best comes last, and stays


class _Table:
    """Entries of shingles: one for each dialogue whose own it is, and one for each set in which it is too common."""

    def __init__(self, parts: Sequence[Hashes], sets: Sequence[int], set_count: int) -> None:
        self._sets, self._set_count = np.array(sets, np.int32), set_count
        owners = np.repeat(np.arange(len(parts), dtype=np.int32), [len(part) for part in parts])
        keys = np.concatenate(parts)
        order = np.argsort(keys, kind="stable")  # and so the dialogues of a set stay together
        keys, owners = keys[order], owners[order]
        places = self._sets[owners]
        first = np.flatnonzero(np.append(True, (keys[1:] != keys[:-1]) | (places[1:] != places[:-1])))
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
        """Return the dialogues that share enough of these shingles, and the shares of the smaller of both."""
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
    """The utterances of evaluation sets, to look equal and nearly equal ones up; recent look-ups are remembered."""

    def __init__(self) -> None:
        self._places: list[dict[str, str]] = []  # of each distinct text, from the evaluation set to the id there
        self._texts: list[str] = []
        self._rows: dict[int, int] = {}
        self._rare: _RareShingles | None = None
        self._remembered: dict[int, tuple[Match, ...]] = {}

    def __len__(self) -> int:
        return len(self._texts)

    def add(self, evaluation: str, identifier: str, text: str) -> None:
        """Add an utterance, as `comparable` gives it."""
        key = content_hash(text)
        row = self._rows.setdefault(key, len(self._texts))
        if row == len(self._texts):
            self._texts.append(text)
            self._places.append({})
            self._rare = None
        self._remembered.clear()
        places = self._places[row]
        places[evaluation] = min(identifier, places.get(evaluation, identifier))

    def find(self, text: str) -> tuple[Match, ...]:
        """Return the equal utterance or else the nearest of each evaluation set that has one, sorted by set.

        Of several, the one whose id comes first is returned.
        """
        key = content_hash(text)
        if key not in self._remembered:
            if len(self._remembered) >= _REMEMBERED:  # common texts soon come again
                self._remembered.clear()
            self._remembered[key] = self._look_up(text, self._rows.get(key))
        return self._remembered[key]

    def _look_up(self, text: str, equal: int | None) -> tuple[Match, ...]:
        best: dict[str, tuple[float, str]] = {}
        shingles = utterance_shingles(text)
        self._rare = self._rare or _RareShingles(self._texts)
        for row in self._rare.candidates(shingles):
            others = utterance_shingles(self._texts[row])
            shared = len(shingles & others)
            similarity = shared / (len(shingles) + len(others) - shared)
            if similarity >= UTTERANCE_THRESHOLD and row != equal:
                for evaluation, identifier in self._places[row].items():
                    best[evaluation] = min((-similarity, identifier), best.get(evaluation, (0.0, "")))
        matches = {name: Match(name, identifier, False, -negative) for name, (negative, identifier) in best.items()}
        if equal is not None:
            places = self._places[equal]
            matches |= {name: Match(name, identifier, True, 1.0) for name, identifier in places.items()}
        return tuple(matches[name] for name in sorted(matches))


class _RareShingles:
    """The rows of texts by their rarest shingles and by bands of length; near texts are at most one band apart.

    Two near texts have at least the threshold's share of either's shingles in common. Enough of the rarest of both are
    looked at that they share `_SHARED_RARE` of them, or all that are in common where those are fewer.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._counts = Counter(chain.from_iterable(map(utterance_shingles, texts)))
        self._rows: dict[tuple[int, str], list[int]] = {}
        for row, text in enumerate(texts):
            shingles = utterance_shingles(text)
            for shingle in self._rarest(shingles):
                self._rows.setdefault((_band(shingles), shingle), []).append(row)

    def candidates(self, shingles: set[str]) -> list[int]:
        """Return the rows of all texts that may be near, and of few others."""
        band, rarest = _band(shingles), self._rarest(shingles)
        places = ((near, shingle) for near in (band - 1, band, band + 1) for shingle in rarest)
        counts = Counter(chain.from_iterable(self._rows[place] for place in places if place in self._rows))
        least = min(_SHARED_RARE, _in_common(shingles))
        return [row for row, count in counts.items() if count >= least]

    def _rarest(self, shingles: set[str]) -> list[str]:
        rare = sorted(shingles, key=lambda shingle: (self._counts.get(shingle, 0), shingle))
        return rare[: len(shingles) - _in_common(shingles) + _SHARED_RARE]


def _in_common(shingles: set[str]) -> int:
    return ceil(UTTERANCE_THRESHOLD * len(shingles))


def _band(shingles: set[str]) -> int:
    return int(log(len(shingles), 1 / UTTERANCE_THRESHOLD))
