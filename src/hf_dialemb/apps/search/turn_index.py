"""Remember what was said, in a folder or in memory, and find it by its words and its meaning."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ...data.loading import load_all, load_dialogues
from ...dialogue import Dialogue, Turn
from ...errors import InputError
from ...methods.sessions import spoken
from ...metrics.vectors import unit
from ...storage.files import working_folder
from .confidence import evidence, probabilities
from .hits import Hit, Hits, check_top
from .query_reading import TIME_WORDS, read_query
from .stored_turns import AGAIN, NEAR, StoredTurns, named, record_of, turn_of
from .turn_scores import (
    ASKS,
    SPEAKER,
    TIME,
    WHEN,
    Scored,
    Scores,
    standard,
    with_beside,
    with_session,
)
from .turn_store import FILE, FORGET, chosen_rows, in_utc
from .word_index import shared, words_of

BATCH = 1_000
"""How many dialogues are embedded and added at once: what a killed run loses at most."""


class TurnIndex(StoredTurns):
    """A memory of turns, found by words and meaning, by whose they are and when they were said.

    It lies in a folder, where other processes may read and write it too, or in memory. A turn that
    was added is on the disk when the call returns. Several threads may use one index.

    Examples:
        >>> memory = TurnIndex("calls.memory", encoder="turn-minilm")
        >>> memory.add_turn(Turn("user", "I moved to Berlin.", name="Anna"), "today", user="anna")
        >>> memory.search("where does Anna live?", top=3, user="anna").to_pandas()
    """

    def __init__(self, path: Any = None, encoder: Any = None) -> None:
        """Open an index, or make one.

        Args:
            path: The folder of an index. Without one, it is in memory; an encoder may stand in its
                place.
            encoder: What `load_encoder` takes; by default that of the index. In a folder it must
                have a name, by which it is loaded again.

        Raises:
            InputError: The folder holds something else, or an index of another encoder.
        """
        folder = Path(path).expanduser().resolve() if isinstance(path, str | Path) else None
        if encoder is None and not (folder and (folder / FILE).is_file()):
            if path is None or (folder and folder.suffix):
                raise InputError(
                    f"index {path}: no such index; make one with dialemb index FILE --output {path}"
                    ", or name an encoder"
                )
            encoder = path
            folder = None
        super().__init__(folder, None if encoder is None else named(encoder, folder))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Open the index of a folder."""
        return cls(path)

    def save(self, path: str | Path) -> None:
        """Write the index into a new folder, whole or not at all."""
        output = Path(path).expanduser().resolve()
        if output.exists() or not self._record:
            raise InputError(
                f"index {path}: got one that exists or none, expected a new folder, and an encoder "
                "that has a name"
            )
        with self._lock, working_folder(output) as folder:
            self._store("VACUUM INTO ?", str(folder / FILE))
            folder.replace(output)

    def __len__(self) -> int:
        with self._lock:
            self._refresh()
            return int(self._held["alive"][: self._count].sum())

    def add(self, dialogues: Any, user: str | None = None, **reading: Any) -> int:
        """Add new dialogues, and replace those that changed under their id.

        Args:
            dialogues: The forms of `hf_dialemb.data.load_dialogues`, or an iterator of `Dialogue`.
                One without an id gets that of its text.
            user: Whose they are; by default what the ``user`` of their metadata says.
            **reading: How files are read, as in `load_dialogues`.

        Returns:
            How many dialogues were embedded.

        Raises:
            InputError: Two have one id, or a time is none.
        """
        if not isinstance(dialogues, Iterator):
            dialogues = iter(
                load_dialogues(dialogues, **reading) if reading else load_all(dialogues)
            )
        count = 0
        with self._lock:
            new = self._new(dialogues, user)
            while batch := list(islice(new, BATCH)):
                self._write(batch)
                count += len(batch)
            self._store(FORGET)  # what was replaced
        return count

    def add_turn(self, turn: Turn, dialogue: str = "", user: str = "") -> int:
        """Add a turn to the end of a dialogue, which may be new, and return its row.

        The turns before it learn what followed.
        """
        return self.add_turns([turn], dialogue, user)[0]

    def add_turns(self, turns: Sequence[Turn], dialogue: str = "", user: str = "") -> list[int]:
        """Add some turns at once, as `add_turn` does, which reads fewer of those before again."""
        with self._lock, self._store.at_once() as version:
            number = self._number(user, dialogue)
            ((place,),) = self._store(
                "SELECT coalesce(max(turn) + 1, 0) FROM turns WHERE dialogue = ?", number
            )
            rows = self._insert(number, place, Dialogue(tuple(turns), dialogue), version)
            self._read_again(number, place, AGAIN, version, len(turns))
        return rows

    def update(self, row: int, turn: Turn) -> None:
        """Put another turn in the place of that of a row, which a hit has.

        What its neighbours had read of it is read anew, and its former text leaves the disk.
        """
        with self._lock, self._store.at_once() as version:
            changed = self._store(
                "UPDATE turns SET version = ?, role = ?, text = ?, speaker = ?, time = ?, words = ?"
                ' WHERE "row" = ? AND dialogue NOT NULL RETURNING dialogue, turn',
                *(version, turn.role, turn.content, turn.name, in_utc(turn.time, "time")),
                *(" ".join(words_of(spoken(turn))), row),
            )
            if not changed:
                raise InputError(f"row: got {row!r}, expected that of a turn; take it from a hit")
            number, place = changed[0]
            self._read_again(number, place, NEAR, version)
        self._store(FORGET)

    def delete(self, **scope: Any) -> int:
        """Delete turns: those of a ``dialogue``, a ``turn`` of it, a ``user``, or as in `search`.

        They leave the disk, and what their neighbours had read of them is read anew. Returns how
        many turns were deleted.
        """
        if not scope:
            raise InputError("delete: got no condition, expected one such as user='anna'; name it")
        with self._lock, self._store.at_once() as version:
            rows = chosen_rows(self._store, scope).tolist()
            self._forget(rows, version)
            self._store(
                "DELETE FROM dialogues WHERE number NOT IN"
                " (SELECT dialogue FROM turns WHERE dialogue NOT NULL)"
            )
        self._store(FORGET)
        return len(rows)

    def reembed(self, encoder: Any) -> None:
        """Embed all turns with another encoder, from the texts that are stored."""
        source = named(encoder, self.path)
        with self._lock, self._store.at_once() as version:
            self._source = source
            self._record = record_of(source)
            self._store.write_record(self._record)
            for number, count in self._store(
                "SELECT dialogue, count(*) FROM turns WHERE dialogue NOT NULL GROUP BY dialogue"
            ):
                self._read_again(number, 0, count, version)
        self._clear()

    def search(
        self,
        query: str,
        top: int = 5,
        *,
        whole: bool = False,
        at_least: float = 0.0,
        now: datetime | None = None,
        **scope: Any,
    ) -> Hits:
        """Find the turns that answer a question, or are about a text, best first.

        A speaker and a time that the query names lift turns; ``read_as`` of the hits says how it
        was read. Scores are those of an index that has nothing but the turns of the scope.

        Args:
            query: The question.
            top: How many are wanted, at least 1.
            whole: Whether dialogues are wanted, each by its best turn.
            at_least: The lowest probability of a hit; there may be none. Fitted for some encoders.
            now: When it is asked; by default now.
            **scope: What turns must have: ``user``, ``dialogue``, ``turn``, ``role``, ``speaker``,
                ``since``, ``until`` (a date means its whole day), or a name of metadata;
                a list stands for any of its values.

        Raises:
            InputError: A condition names what no dialogue has.
        """
        check_top(top)
        if not isinstance(query, str) or re.search(r"^\s*$|[\ud800-\udfff]", query):
            raise InputError("query: got no text in UTF-8, expected some words")
        with self._lock, self._store.at_once("BEGIN"):
            of = self._chosen(scope)
            if not of.any():
                return Hits()
            scored = self.scored(query, self.encoder.encode_query([query])[0], of, now)
            rows = self._best(scored.total, min(top, int(of.sum())), whole)
            known = evidence(query, rows, scored, self._words)
            chances = probabilities(known, self.encoder.name, needed=at_least > 0)
            hits = Hits(
                self._hit(row, scored, chance, query)
                for row, chance in zip(rows, chances, strict=True)
                if chance is None or chance >= at_least
            )
            hits.read_as = scored.reading
            return hits

    def scored(
        self,
        query: str,
        vector: NDArray[np.float32],
        of: NDArray[np.bool_] | None = None,
        now: datetime | None = None,
    ) -> Scored:
        """Score all N turns for a query and its vector (D,), of a mask (N,) if there is one."""
        with self._lock:
            of = self._chosen({}) if of is None else of
            held = self._held[: self._count]
            there = np.bincount(held["speaker"][of], minlength=len(self._speakers)) > 0
            names = [name for name, place in self._speakers.items() if name and there[place]]
            reading = read_query(query, names, (now or datetime.now()).replace(tzinfo=None))
            asked = self._speakers[reading.speaker] if reading.speaker else -1
            spoken_by: NDArray[np.bool_] = held["speaker"] == asked
            cosines = (self._vectors[: self._count] @ unit(vector[None])[0]).astype(np.float64)
            bm25 = self._words.scores(query, of)
            before = np.ascontiguousarray(held["before"])
            words = with_beside(bm25, before)
            meaning = standard(cosines, of)
            beside = words + SPEAKER * spoken_by - ASKS * held["asks"]
            if reading.time:
                beside += TIME * reading.includes(held["moment"])
            if reading.when:
                beside += WHEN * self._words.having(TIME_WORDS)
            total = with_session(np.where(of, meaning + beside, -np.inf), before)
            return Scored(
                of, before, cosines, meaning, bm25, words, beside, total, spoken_by, reading
            )

    def _chosen(self, scope: Mapping[str, Any]) -> NDArray[np.bool_]:
        """Return which turns a search may find, (N,)."""
        self._refresh()
        chosen: NDArray[np.bool_] = self._held["alive"][: self._count]
        if scope:
            chosen = np.zeros_like(chosen)
            chosen[chosen_rows(self._store, scope)] = True
        return chosen

    def _best(self, scores: Scores, top: int, whole: bool) -> list[int]:
        """Return the rows of the highest scores, best first, ties by user, dialogue and turn.

        If ``whole``, those of the best turns of the best dialogues.
        """
        rows = np.flatnonzero(
            scores > -np.inf if whole else scores >= np.partition(scores, -top)[-top]
        )
        ordered = self._store(
            'SELECT "row", dialogue FROM turns JOIN dialogues ON number = dialogue WHERE "row" IN'
            " (SELECT value FROM json_each(?)) ORDER BY user, id, turn",
            json.dumps(rows.tolist()),
        )
        best = sorted(ordered, key=lambda pair: -scores[pair[0]])
        if whole:
            best = list({dialogue: (row, dialogue) for row, dialogue in best[::-1]}.values())[::-1]
        return [row for row, _ in best[:top]]

    def _hit(self, row: int, scored: Scored, probability: float | None, query: str) -> Hit:
        """Make a hit of a turn, with the turns before and after it."""
        ((number, place, name, user, *values),) = self._store(
            "SELECT dialogue, turn, id, user, role, text, speaker, time"
            ' FROM turns JOIN dialogues ON number = dialogue WHERE "row" = ?',
            row,
        )
        own = turn_of(*values)
        return Hit(
            row=row,
            id=name,
            score=float(scored.total[row]),
            text=own.content,
            time=own.time,
            user=user,
            role=own.role,
            turn=place,
            speaker=own.name,
            cosine=float(scored.cosines[row]),
            probability=probability,
            words=shared(query, spoken(own)),
            before=self._line("< ? ORDER BY turn DESC", number, place),
            after=self._line("> ? ORDER BY turn", number, place),
        )

    def _line(self, beside: str, number: int, place: int) -> str:
        """Return a turn after the name of its speaker, or else the role; nothing for no turn."""
        lines = self._store(
            "SELECT coalesce(nullif(speaker, ''), role) || ': ' || text FROM turns"
            f" WHERE dialogue = ? AND turn {beside} LIMIT 1",
            *(number, place),
        )
        return next((line for (line,) in lines), "")
