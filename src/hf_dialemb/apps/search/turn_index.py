"""Find what was said: turns by their words, and by what they mean in their surroundings."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
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
from .turn_scores import Scores, beside_meaning, standard
from .word_index import WordIndex, shared

AGAIN, READ = 4, 8
"""How many turns before a new one are embedded again, as they have a new neighbour.

As many more are read with them.
"""

Rows = defaultdict[str, "array[int]"]
"""The rows of turns by a text that they share."""


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
        self._turns: list[Turn] = []
        self._places: list[tuple[str, int]] = []  # the dialogue of each, and its place there
        self._before = array("l")  # the row before each in its session; -1 for none
        self._speakers: Rows = defaultdict(lambda: array("l"))
        self._days: Rows = defaultdict(lambda: array("l"))
        self._domains: dict[str, tuple[str, ...]] = {}
        self._rows: Rows = defaultdict(lambda: array("l"))  # of each dialogue
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
        first = len(self._rows) + 1
        names = [dialogue.id or f"#{number}" for number, dialogue in enumerate(items, first)]
        for name, count in Counter([*self._rows, *names]).most_common(1):
            if count > 1:
                raise InputError(
                    f"id: got {name!r} twice, expected each dialogue once; give each dialogue its "
                    "own id"
                )
        vectors = self.encoder.encode_turns(items).vectors
        for name, dialogue in zip(names, items, strict=True):
            self._domains[name] = dialogue.domains
            for turn in dialogue.turns:
                self._append(name, turn)
        self._set(range(len(self) - len(vectors), len(self)), vectors)

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
        read = Dialogue(tuple(self._turns[row] for row in rows))
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
        return beside_meaning(query, words, before, self._speakers, self._days)

    def _append(self, dialogue: str, turn: Turn) -> None:
        rows = self._rows[dialogue]
        known = self._times.get(dialogue, "")
        goes_on = bool(rows) and not parted(known, turn.time)
        self._times[dialogue] = turn.time or known
        self._before.append(rows[-1] if goes_on else -1)
        self._places.append((dialogue, len(rows)))
        for own in (rows, self._speakers[turn.name], self._days[turn.time[: len("2026-05-03")]]):
            own.append(len(self))
        self._turns.append(turn)
        self.words.add(spoken(turn))

    def _set(self, rows: Sequence[int], vectors: NDArray[np.float32]) -> None:
        if len(self) > len(self._vectors):
            grown = np.zeros((2 * len(self), vectors.shape[1]), dtype=np.float32)
            if self._vectors.size:
                grown[: len(self._vectors)] = self._vectors
            self._vectors = grown
        self._vectors[rows] = vectors

    def _hit(self, row: int, score: float, cosine: float, query: str) -> TurnHit:
        name, place = self._places[row]
        return turn_hit(
            query,
            {at: self._turns[own] for at, own in enumerate(self._rows[name])},
            row=row,
            id=name,
            score=score,
            cosine=cosine,
            domains=self._domains.get(name, ()),
            turn=place,
        )


def turn_hit(query: str, turns: Mapping[int, Turn], turn: int, **known: Any) -> TurnHit:
    """Make a hit of a turn, with the words that it shares with a query.

    ``turns`` are those of its dialogue by their places, with those beside it.
    """
    own = turns[turn]
    return TurnHit(
        text=own.content,
        role=own.role,
        time=own.time,
        speaker=own.name,
        turn=turn,
        words=shared(query, spoken(own)),
        before=_named(turns.get(turn - 1)),
        after=_named(turns.get(turn + 1)),
        **known,
    )


def _named(turn: Turn | None) -> str:
    """Return a turn after the name of its speaker, or else the role; nothing for no turn."""
    return f"{turn.name or turn.role}: {turn.content}" if turn else ""
