"""Find what was said: turns by their words, and by what they mean in their surroundings."""

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..corpora.loading import load_all
from ..dialogue import Dialogue, Turn
from ..drawing import visible
from ..encoders import load_encoder
from ..encoders.turns import parted, spoken
from ..errors import InputError
from ..metrics.vectors import unit
from .hits import Hit, Hits, check_top
from .words import WordIndex

WORDS, SPEAKER, TIME = 0.75, 1.0, 1.0
"""What standard scores of words, a speaker whom the query names, and a time that it names count for beside cosines.

They were chosen on LoCoMo (dev), as were the next ones.
"""

WORDS_BEFORE, WORDS_AFTER = 0.3, 0.1
"""What the words of the turn before and after count for, in one session."""

AGAIN, READ = 4, 8
"""How many turns before a new one are embedded again, as they have a new neighbour; as many more are read with them."""

Scores = NDArray[np.float64]

_IN_ORDER = "january february march april may june july august september october november december"
_MONTHS = _IN_ORDER.split()
_MONTH = re.compile(rf"\b({'|'.join(map(str.title, _MONTHS))})\b|\b(?:in|on|of|since|last) ({'|'.join(_MONTHS)})\b")
_WORD = re.compile(r"[^\W_]+")
_DAY = re.compile(r"\b([0-3]?\d)(?:st|nd|rd|th)?\b")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")


@dataclass(frozen=True)
class TurnHit(Hit):
    """A turn that was found; its ``score`` says how far it is above the average turn, in standard deviations."""

    role: str = ""
    turn: int = 0  # its place in its dialogue, from 0 on
    time: str = ""
    speaker: str = ""
    cosine: float = 0.0
    words: tuple[str, ...] = ()  # those that it shares with the query
    before: str = ""  # the turn before it, with its speaker
    after: str = ""

    def __str__(self) -> str:
        why = f"cosine {self.cosine:.2f}" + (f"; words: {', '.join(self.words)}" if self.words else "")
        when = f" {self.time}" if self.time else ""
        lines = [f"{self.score:6.2f} {self.id}, turn {self.turn + 1}{when} ({why})"]
        for mark, text in ((" ", self.before), (">", f"{self.speaker or self.role}: {self.text}"), (" ", self.after)):
            lines += [f"     {mark} {' '.join(text.split())}"] if text else []
        return "\n".join(map(visible, lines))


class TurnIndex:
    """Turns in memory, found by words and meaning; it grows by whole dialogues, or turn by turn.

    Examples:
        >>> index = TurnIndex("dialogue-static", dialogues)
        >>> index.search("what did Anna say about the flat?", top=3).to_pandas()
        >>> index.add_turn(Turn("user", "I moved to Berlin.", name="Anna"), "today")
    """

    def __init__(self, encoder: Any, dialogues: Any = ()) -> None:  # noqa: ANN401 - see load_encoder, load_dialogues
        self.encoder = load_encoder(encoder)
        if self.encoder.fitted_on_input:
            raise InputError(
                f"model '{self.encoder.name}': got one that is fitted on its input, expected one that embeds questions "
                "too; choose another, or search whole conversations"
            )
        self._turns: list[tuple[str, int, Turn]] = []
        self._speakers: dict[str, tuple[str, ...]] = {}  # names, and how queries may write them
        self._domains: dict[str, tuple[str, ...]] = {}
        self._rows: defaultdict[str, list[int]] = defaultdict(list)  # of each dialogue
        self._beside: list[tuple[int, int]] = []  # the rows before and after each in its session; -1 for none
        self._times: dict[str, str] = {}  # the last that is known of each dialogue
        self._vectors = np.zeros((0, 0), dtype=np.float32)  # with room for more
        self.words = WordIndex()
        if len(dialogues):
            self.add(dialogues)

    def __len__(self) -> int:
        return len(self._turns)

    def add(self, dialogues: Any) -> None:  # noqa: ANN401 - see load_dialogues
        """Add dialogues, in any form that `load_dialogues` takes; one without an id is called by its number."""
        items = load_all(dialogues)
        names = [dialogue.id or f"#{len(self._rows) + place}" for place, dialogue in enumerate(items, 1)]
        for place, name in enumerate(names):
            if name in self._rows or name in names[:place]:
                raise InputError(f"id: got {name!r} twice, expected each dialogue once; give each dialogue its own id")
        vectors = self.encoder.encode_turns(items).vectors
        for name, dialogue in zip(names, items, strict=True):
            self._domains[name] = dialogue.domains
            for turn in dialogue.turns:
                self._append(name, turn)
        self._set(list(range(len(self) - len(vectors), len(self))), vectors)

    def add_turn(self, turn: Turn, dialogue: str = "") -> None:
        """Add a turn to the end of a dialogue, which may be new; the turns before it learn what followed."""
        if not isinstance(turn, Turn):
            raise InputError(f"turn: got {type(turn).__name__}, expected a Turn; whole dialogues go to add")
        self._append(dialogue, turn)
        rows = self._rows[dialogue][-READ - 1 :]
        vectors = self.encoder.encode_turns([Dialogue(tuple(self._turns[row][2] for row in rows))]).vectors
        self._set(rows[-AGAIN - 1 :], vectors[-AGAIN - 1 :])

    def search(self, query: str, top: int = 5) -> Hits:
        """Find the turns that answer a question, or are about a text, best first.

        A speaker of the index whom the query names, and a month, day or year, lift the turns by that speaker or of that
        time.
        """
        check_top(top)
        if not isinstance(query, str) or not query.strip():
            raise InputError("query: got no text, expected some words")
        if not len(self):
            return Hits()
        scores, cosines = self.scores(query)
        best = np.argsort(-scores, kind="stable")[:top]
        return Hits([self._hit(int(row), float(scores[row]), float(cosines[row]), query) for row in best])

    def scores(self, query: str, vector: NDArray[np.float32] | None = None) -> tuple[Scores, Scores]:
        """Score all N turns for a query, (N,), and return the cosines too; its unit vector may be there already."""
        cosines = self.cosines(unit(self.encoder.encode_utterances([query]))[0] if vector is None else vector)
        return standard(cosines) + self.beside_meaning(query), cosines

    def cosines(self, vector: NDArray[np.float32]) -> Scores:
        """Return the cosines of all N turns in their surroundings with a unit vector (D,): (N,)."""
        return (self._vectors[: len(self)] @ vector).astype(np.float64)

    def beside_meaning(self, query: str) -> Scores:
        """Return what is added to the standard score of all N turns for their words, speaker and time, (N,)."""
        words = np.append(self.words.scores(query), 0.0)  # row -1 is none
        before, after = np.array(self._beside).T
        scores = WORDS * standard(words[:-1] + WORDS_BEFORE * words[before] + WORDS_AFTER * words[after])
        speaker, time = self._speaker(query), asked_time(query)
        if speaker:
            scores += SPEAKER * np.array([turn.name == speaker for _, _, turn in self._turns])
        if time:
            scores += TIME * np.array([bool(time.match(turn.time)) for _, _, turn in self._turns])
        return scores

    def _speaker(self, query: str) -> str:
        """Return the only speaker whom a query names, in full or by the first name; otherwise nothing."""
        words = " ".join(["", *_WORD.findall(query.lower()), ""])
        named = [name for name in self._speakers if any(f" {form} " in words for form in self._speakers[name])]
        return named[0] if len(named) == 1 else ""

    def _append(self, dialogue: str, turn: Turn) -> None:
        rows, row, known = self._rows[dialogue], len(self), self._times.get(dialogue, "")
        goes_on = bool(rows) and not parted(known, turn.time)
        self._times[dialogue] = turn.time or known
        self._beside.append((rows[-1] if goes_on else -1, -1))
        if goes_on:
            self._beside[rows[-1]] = (self._beside[rows[-1]][0], row)
        if words := _WORD.findall(turn.name.lower()):
            self._speakers[turn.name] = (" ".join(words), words[0])
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
        beside = [self._turns[rows[at]][2] if 0 <= at < len(rows) else None for at in (place - 1, place + 1)]
        before, after = (f"{turn.name or turn.role}: {turn.content}" if turn else "" for turn in beside)
        shared = self.words.shared(query, spoken(turn))
        known = (name, score, self._domains.get(name, ()), turn.content, turn.role, place, turn.time, turn.name)
        return TurnHit(row, *known, cosine, shared, before, after)


def standard(scores: Scores) -> Scores:
    """Return standard scores: how many standard deviations each is above the mean; of equal scores 0."""
    spread = scores.std()
    result: Scores = (scores - scores.mean()) / (spread if spread > 1e-9 else 1.0)
    return result


def asked_time(query: str) -> re.Pattern[str] | None:
    """Return what the ISO 8601 times look like that a query names: a month, perhaps with its day, a year, or both."""
    month, year = _MONTH.search(query), _YEAR.search(query)
    if not month and not year:
        return None
    form = [year[0] if year else r"\d{4}", r"\d\d", r"\d\d"]
    if month:
        form[1] = f"{_MONTHS.index(month[0].split()[-1].lower()) + 1:02}"
        start = max(month.start(1), month.start(2))
        beside = f"{query[max(0, start - len('31st of ')) : start]} {query[month.end() : month.end() + 5]}"
        day = _DAY.search(_YEAR.sub("", beside))
        form[2] = f"{int(day[1]):02}" if day else form[2]
    return re.compile("-".join(form))
