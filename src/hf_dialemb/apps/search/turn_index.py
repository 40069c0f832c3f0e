"""Find what was said: turns by their words, and by what they mean in their surroundings."""

import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.loading import load_all
from ...dialogue import Dialogue, Turn
from ...encoders import load_encoder
from ...errors import InputError
from ...methods.sessions import parted, spoken
from ...metrics.vectors import unit
from .hits import Hits, TurnHit, best_rows, check_top
from .word_index import WordIndex, shared

WORDS, SPEAKER, TIME = 0.4, 1.0, 1.0
"""What BM25, a speaker whom the query names, and a time that it names count for beside the standard
score of cosines.

They were chosen on LoCoMo (dev), as were the next ones. BM25 stays as it is: its standard score
grows with the number of turns, and then hides the cosines.
"""

WORDS_BEFORE, WORDS_AFTER = 0.3, 0.1
"""What the words of the turn before and after count for, in one session."""

AGAIN, READ = 4, 8
"""How many turns before a new one are embedded again, as they have a new neighbour.

As many more are read with them.
"""

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


class TurnIndex:
    """Turns in memory, found by words and meaning; it grows by whole dialogues, or turn by turn.

    Examples:
        >>> index = TurnIndex("dialogue-static", dialogues)
        >>> index.search("what did Anna say about the flat?", top=3).to_pandas()
        >>> index.add_turn(Turn("user", "I moved to Berlin.", name="Anna"), "today")
    """

    def __init__(self, encoder: Any, dialogues: Any = ()) -> None:
        self.encoder = load_encoder(encoder)
        if self.encoder.fitted_on_input:
            raise InputError(
                f"model '{self.encoder.name}': got one that is fitted on its input, expected one "
                "that embeds questions too; choose another, or search whole conversations"
            )
        self._turns: list[tuple[str, int, Turn]] = []
        self._domains: dict[str, tuple[str, ...]] = {}
        self._rows: defaultdict[str, list[int]] = defaultdict(list)  # of each dialogue
        self._before = array("l")  # the row before each in its session; -1 for none
        self._names, self._days = _Repeated(), _Repeated()  # who spoke, and when
        self._times: dict[str, str] = {}  # the last that is known of each dialogue
        self._vectors = np.zeros((0, 0), dtype=np.float32)  # with room for more
        self.words = WordIndex()
        if len(dialogues):
            self.add(dialogues)

    def __len__(self) -> int:
        return len(self._turns)

    def add(self, dialogues: Any) -> None:
        """Add dialogues, in any form that `load_dialogues` takes.

        One without an id is called by its number.
        """
        items = load_all(dialogues)
        known, names = set(self._rows), []
        for place, dialogue in enumerate(items, 1):
            name = dialogue.id or f"#{len(self._rows) + place}"
            if name in known:
                raise InputError(
                    f"id: got {name!r} twice, expected each dialogue once; give each dialogue its "
                    "own id"
                )
            known.add(name)
            names.append(name)
        vectors = self.encoder.encode_turns(items).vectors
        for name, dialogue in zip(names, items, strict=True):
            self._domains[name] = dialogue.domains
            for turn in dialogue.turns:
                self._append(name, turn)
        self._set(list(range(len(self) - len(vectors), len(self))), vectors)

    def add_turn(self, turn: Turn, dialogue: str = "") -> None:
        """Add a turn to the end of a dialogue, which may be new.

        The turns before it learn what followed.
        """
        self.add_turns([turn], dialogue)

    def add_turns(self, turns: Sequence[Turn], dialogue: str = "") -> None:
        """Add some turns at once, as `add_turn` does, which reads fewer of those before again."""
        if not turns:
            return
        for turn in turns:
            self._append(dialogue, turn)
        rows = self._rows[dialogue][-READ - len(turns) :]
        read = Dialogue(tuple(self._turns[row][2] for row in rows))
        vectors = self.encoder.encode_turns([read]).vectors
        last = AGAIN + len(turns)
        self._set(rows[-last:], vectors[-last:])

    def search(self, query: str, top: int = 5) -> Hits:
        """Find the turns that answer a question, or are about a text, best first.

        A speaker of the index whom the query names, and a month, day or year, lift the turns by
        that speaker or of that time.
        """
        check_top(top)
        if not isinstance(query, str) or not query.strip():
            raise InputError("query: got no text, expected some words")
        if not len(self):
            return Hits()
        scores, cosines = self.scores(query)
        return Hits(
            self._hit(row, float(scores[row]), float(cosines[row]), query)
            for row in best_rows(scores, top).tolist()
        )

    def scores(self, query: str) -> tuple[Scores, Scores]:
        """Score all N turns for a query, (N,), and return the cosines too."""
        cosines = self.cosines(unit(self.encoder.encode_utterances([query]))[0])
        return standard(cosines) + self.beside_meaning(query), cosines

    def cosines(self, vector: NDArray[np.float32]) -> Scores:
        """Return the cosines of all N turns in their surroundings with a unit vector (D,): (N,)."""
        return (self._vectors[: len(self)] @ vector).astype(np.float64)

    def beside_meaning(self, query: str) -> Scores:
        """Return what the words, speaker and time of all N turns add to standard scores, (N,)."""
        words, before = self.words.scores(query), np.array(self._before)
        later = np.flatnonzero(before >= 0)
        together = words.copy()
        together[later] += WORDS_BEFORE * words[before[later]]
        together[before[later]] += WORDS_AFTER * words[later]  # a turn is before one other at most
        scores: Scores = WORDS * together
        speaker, time = asked_speaker(query, self._names), asked_time(query)
        if speaker:
            scores += SPEAKER * self._names.where(lambda name: name == speaker)
        if time:
            scores += TIME * self._days.where(lambda day: bool(time.match(day)))
        return scores

    def _append(self, dialogue: str, turn: Turn) -> None:
        rows, row, known = self._rows[dialogue], len(self), self._times.get(dialogue, "")
        goes_on = bool(rows) and not parted(known, turn.time)
        self._times[dialogue] = turn.time or known
        self._before.append(rows[-1] if goes_on else -1)
        self._names.append(turn.name)
        self._days.append(turn.time[: len("2026-05-03")])
        rows.append(row)
        self._turns.append((dialogue, len(self._rows[dialogue]) - 1, turn))
        self.words.add(spoken(turn))

    def _set(self, rows: list[int], vectors: NDArray[np.float32]) -> None:
        if len(self) > len(self._vectors):
            grown = np.zeros((2 * len(self), vectors.shape[1]), dtype=np.float32)
            if self._vectors.size:
                grown[: len(self._vectors)] = self._vectors
            self._vectors = grown
        self._vectors[rows] = vectors

    def _hit(self, row: int, score: float, cosine: float, query: str) -> TurnHit:
        name, place, turn = self._turns[row]
        rows = self._rows[name]
        before, after = (
            named(self._turns[rows[at]][2]) if 0 <= at < len(rows) else ""
            for at in (place - 1, place + 1)
        )
        return turn_hit(
            turn,
            query,
            row=row,
            id=name,
            score=score,
            cosine=cosine,
            domains=self._domains.get(name, ()),
            turn=place,
            before=before,
            after=after,
        )


def named(turn: Turn) -> str:
    """Return a turn after the name of its speaker, or else the role."""
    return f"{turn.name or turn.role}: {turn.content}"


def turn_hit(found: Turn, query: str, **known: Any) -> TurnHit:
    """Make a hit of a turn that was found, with the words that it shares with a query."""
    return TurnHit(
        text=found.content,
        role=found.role,
        time=found.time,
        speaker=found.name,
        words=shared(query, spoken(found)),
        **known,
    )


class _Repeated:
    """Texts of rows that many rows share, such as names: each text is compared once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._rows = array("l")

    def append(self, text: str) -> None:
        self._rows.append(self._numbers.setdefault(text, len(self._numbers)))

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def where(self, fits: Callable[[str], bool]) -> NDArray[np.bool_]:
        """Return for each of N rows whether its text fits, (N,)."""
        result: NDArray[np.bool_] = np.array(list(map(fits, self._numbers)), dtype=bool)[
            np.array(self._rows)
        ]
        return result


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
