"""Turns that are kept: written with their vectors, and held in memory to be compared."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...dialogue import Dialogue, Turn
from ...encoders import Encoder, load_encoder
from ...encoders.specs import EncoderSpec, trained_encoder
from ...errors import InputError
from ...methods.sessions import parted, spoken
from .turn_store import TurnStore, in_utc
from .word_index import WordIndex, words_of

AGAIN = 4
"""How many turns before a new one are embedded again, as they have a new neighbour."""

READ = 8
"""How many turns more are read with them."""

NEAR = 64
"""How many turns on either side of one that was changed or deleted are embedded again."""

HELD = np.dtype(
    [
        ("before", np.int64),
        ("alive", np.bool_),
        ("asks", np.bool_),
        ("speaker", np.int64),
        ("moment", "datetime64[s]"),
    ]
)
"""What is held of a turn beside its vector: the row before it in its session or -1, whether it was
not deleted, whether it ends in a question, the place of its speaker among all, and when it was
said."""


class StoredTurns:
    """Turns of a store with their words and vectors, by one encoder.

    Vectors are stored in half precision; cosines move by less than 0.001.
    """

    def __init__(self, folder: Path | None, source: EncoderSpec | Encoder | None) -> None:
        """Open a store, or make one of an encoder; by default the encoder is that of the store.

        Raises:
            InputError: The store is of another encoder, or none could load the encoder later.
        """
        self.path = folder
        self._store = TurnStore(folder)
        self._lock = RLock()
        known = self._store.record
        self._source = source or trained_encoder(known["model"], **known["options"])
        self._record = record_of(self._source)
        if not known:
            self._store.write_record(self._record)
        self._clear()
        self._refresh()

    @property
    def encoder(self) -> Encoder:
        """What embeds turns; it is loaded when it is needed first."""
        if not isinstance(self._source, Encoder):
            self._source = load_encoder(self._record["model"], **self._record["options"])
        return self._source

    def _clear(self) -> None:
        """Hold nothing, so that all is read anew."""
        self._version = 0
        self._count = 0
        self._held = np.zeros(0, dtype=HELD)  # both have room for more
        self._vectors = np.zeros((0, 0), dtype=np.float32)
        self._words = WordIndex()
        self._speakers: dict[str, int] = {}

    def _refresh(self) -> None:
        """Read what this process and others wrote since; refuse what is by another encoder."""
        version = self._store.version
        if version == self._version:
            return
        record = self._store.record
        if record != self._record:
            raise InputError(
                f"index {self.path}: is of {record['model']} as it was, no other; embed it anew"
                f" with dialemb index --output {self.path} --model {self._record['model']}"
                " --reembed"
            )
        fresh = self._store(
            'SELECT "row", words, speaker, time, before, vector, ifnull(substr(trim(text), -1) IN'
            " ('?', '？', '؟'), 0) FROM turns WHERE version > ? ORDER BY \"row\"",
            self._version,
        )
        rows, words, speakers, times, before, vectors, asks = zip(*fresh, strict=True)
        read = np.frombuffer(b"".join(filter(None, vectors)), dtype=np.float16)
        alive = np.array([vector is not None for vector in vectors])
        self._count = max(self._count, rows[-1] + 1)
        width = self._vectors.shape[1] or len(read) // max(1, alive.sum())
        if self._count > len(self._held) or not self._vectors.size:
            self._held = np.resize(self._held, 2 * self._count)
            self._vectors = np.resize(self._vectors, (2 * self._count, width))
        own = np.array(rows)
        self._vectors[own[alive]] = read.reshape(alive.sum(), -1) if alive.any() else 0
        for row, text in zip(rows, words, strict=True):
            self._words.put(row, text)
        by = [self._speakers.setdefault(name, len(self._speakers)) for name in speakers]
        moments = np.array(times, "datetime64[s]")  # an empty text is not a time
        self._held[own] = np.rec.fromarrays([before, alive, asks, by, moments], dtype=HELD)
        self._version = version

    def _new(
        self, dialogues: Iterable[Dialogue], user: str | None
    ) -> Iterator[tuple[str, str, str, Dialogue]]:
        """Yield users, ids and digests of dialogues that are not stored as they are.

        The digest, of all but the id, stands in for a missing id.
        """
        seen: dict[tuple[str, str], str] = {}
        for dialogue in dialogues:
            record = {**dialogue.to_json(), "id": ""}
            digest = hashlib.sha256(json.dumps(record, default=str).encode()).hexdigest()[:32]
            owner = str(dialogue.metadata.get("user") or "") if user is None else user
            key = (owner, dialogue.id or digest[:16])
            if key not in seen:
                seen[key] = digest
                known = self._store(
                    "SELECT digest FROM dialogues WHERE user = ? AND id = ?", owner, key[1]
                )
                if known != [(digest,)]:
                    yield *key, digest, dialogue
            elif seen[key] != digest:
                raise InputError(
                    f"id: got {key[1]!r} twice for different dialogues, expected each dialogue "
                    "once; give each dialogue its own id"
                )

    def _write(self, batch: Sequence[tuple[str, str, str, Dialogue]]) -> None:
        """Write dialogues in one version, in place of what they replace."""
        vectors = self.encoder.encode_turns([dialogue for *_, dialogue in batch]).vectors
        place = 0
        with self._store.at_once() as version:
            for user, name, digest, dialogue in batch:
                number = self._number(user, name)
                replaced = self._store('SELECT "row" FROM turns WHERE dialogue = ?', number)
                self._forget([row for (row,) in replaced], version)
                self._insert(number, 0, dialogue, version, vectors[place:])
                self._store(
                    "UPDATE dialogues SET digest = ?, metadata = ? WHERE number = ?",
                    *(digest, json.dumps(dict(dialogue.metadata), default=str), number),
                )
                place += len(dialogue.turns)

    def _number(self, user: str, name: str) -> int:
        """Return the number of a dialogue, which may be new."""
        ((number,),) = self._store(
            "INSERT INTO dialogues (user, id) VALUES (?, ?)"
            " ON CONFLICT (user, id) DO UPDATE SET id = id RETURNING number",
            *(user, name),
        )
        return int(number)

    def _insert(
        self,
        number: int,
        place: int,
        dialogue: Dialogue,
        version: int,
        vectors: NDArray[np.float32] | None = None,
    ) -> list[int]:
        """Insert turns from a place of a dialogue on; without vectors, these are set later."""
        ((first,),) = self._store('SELECT coalesce(max("row") + 1, 0) FROM turns')
        of = f"dialogue {dialogue.id!r}, field time"
        times = [in_utc(turn.time or dialogue.time, of) for turn in dialogue.turns]
        rows = list(range(first, first + len(times)))
        before = _chained(rows, times)
        self._store.many(
            "INSERT INTO turns VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    *(row, version, number, place + row - first),
                    *(turn.role, turn.name, time, turn.content),
                    *(" ".join(words_of(spoken(turn))), before[row]),
                    b"" if vectors is None else vectors[row - first].astype(np.float16).tobytes(),
                )
                for row, turn, time in zip(rows, dialogue.turns, times, strict=True)
            ],
        )
        return rows

    def _read_again(self, number: int, place: int, near: int, version: int, new: int = 0) -> None:
        """Embed the turns near a place of a dialogue, as they read now, and new ones there."""
        select = 'SELECT "row", role, text, speaker, time FROM turns WHERE dialogue = ? AND turn '
        earlier = self._store(
            f"{select} < ? ORDER BY turn DESC LIMIT ?", number, place, near + READ
        )
        later = self._store(
            f"{select} >= ? ORDER BY turn LIMIT ?", number, place, new + near + READ
        )
        read = [*earlier[::-1], *later]
        if not read:
            return
        dialogue = Dialogue(tuple(turn_of(*values) for _, *values in read))
        vectors = self.encoder.encode_turns([dialogue]).vectors
        rows = [row for row, *_ in read]
        before = _chained(rows, [time for *_, time in read])
        changed = slice(max(0, len(earlier) - near), len(earlier) + new + near)
        self._store.many(
            'UPDATE turns SET before = ?, vector = ?, version = ? WHERE "row" = ?',
            [
                (before[row], vector.astype(np.float16).tobytes(), version, row)
                for row, vector in list(zip(rows, vectors, strict=True))[changed]
            ],
        )

    def _forget(self, rows: Sequence[int], version: int) -> None:
        """Overwrite turns, and read anew those that had read them."""
        listed = json.dumps(rows)
        chosen = '"row" IN (SELECT value FROM json_each(?))'
        gone = self._store(
            f"SELECT dialogue, turn FROM turns WHERE {chosen} ORDER BY dialogue, turn", listed
        )
        self._store(
            "UPDATE turns SET version = ?, dialogue = NULL, turn = NULL, role = NULL, text = NULL,"
            " speaker = '', time = '', words = '', before = -1, vector = NULL"
            f" WHERE {chosen}",
            *(version, listed),
        )
        for earlier, (number, place) in zip([None, *gone], gone, strict=False):
            if earlier != (number, place - 1):  # of those in a row, once
                self._read_again(number, place, NEAR, version)


def named(encoder: Any, folder: Path | None) -> EncoderSpec | Encoder:
    """Look an encoder up, without loading one that has a name, which it needs in a folder."""
    source: EncoderSpec | Encoder = trained_encoder(
        str(encoder) if isinstance(encoder, str | Path) else load_encoder(encoder)
    )
    if folder and not record_of(source):
        raise InputError(
            "encoder: got a model in memory, which none could load later; give its folder or Hub id"
        )
    return source


def record_of(source: EncoderSpec | Encoder) -> dict[str, Any]:
    """Return what an index records of its encoder; nothing of one without a name."""
    spec = source.source if isinstance(source, Encoder) else source
    if spec is None:
        return {}
    return {"model": spec.model, "options": spec.options, "weights": spec.fingerprint}


def turn_of(role: str, text: str, speaker: str, time: str) -> Turn:
    """Return a turn as it is stored."""
    return Turn(role, text, name=speaker, time=time)


def _chained(rows: Sequence[int], times: Sequence[str]) -> dict[int, int]:
    """Return the row before each in its session, or -1."""
    before = {}
    last = -1
    known = ""
    for row, time in zip(rows, times, strict=True):
        before[row] = -1 if parted(known, time) else last
        last = row
        known = time or known
    return before
