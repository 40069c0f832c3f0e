"""An encoder that embeds nothing twice: its vectors stay in memory, and on disk for later runs.

A folder holds a SQLite file for each model, named by the model's fingerprint and the version of
this package. Its rows are the key of an item, its vector, and the seconds that encoding took.
Several processes may share a folder.
"""

import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ..dialogue import Dialogue
from ..errors import InputError
from ..hashing import dialogue_key, json_key
from ..storage.files import check_writable
from .encoder import Encoder, Vectors
from .load_encoder import load_encoder

PART = 500
"""The number of items that are embedded, and written to disk, at once.

What a stopped run loses at most.
"""

_TABLE = "CREATE TABLE IF NOT EXISTS vectors (key TEXT PRIMARY KEY, vector BLOB, seconds REAL)"


class RememberingEncoder(Encoder):
    """An encoder whose tasks on the same items cost one pass over them.

    A dialogue is known by who says what, not by its labels, and by the prompt. Vectors that are
    fitted on their input are not remembered.
    """

    def __init__(self, encoder: Any, folder: Path | None = None) -> None:
        self.encoder = load_encoder(encoder)
        super().__init__(
            **{field.name: getattr(self.encoder, field.name) for field in fields(Encoder)}
        )
        self.seconds = 0.0  # of encoding; remembered vectors count with their time then
        self._vectors: dict[str, Vectors] = {}
        self._file: Path | None = None
        if folder is not None and self.source:
            self._file = folder / f"{self.encoder.fingerprint}-{version('hf-dialemb')}.sqlite"
            check_writable(self._file)

    def timed(self, work: Callable[[], Any]) -> Any:
        """Do work of the encoder, such as ranking, and add its duration to the seconds."""
        started = time.perf_counter()
        result = work()
        self.seconds += time.perf_counter() - started
        return result

    def forget(self) -> None:
        """Free the vectors."""
        self._vectors.clear()

    def _of_dialogues(self, dialogues: Sequence[Dialogue], prompt: str, *how: Any) -> Vectors:
        keys = [json_key([prompt, dialogue_key(dialogue)]) for dialogue in dialogues]
        return self._remembered(
            keys, dialogues, lambda items: self.encoder._of_dialogues(items, prompt, *how)
        )

    def _of_texts(self, texts: Sequence[str], prompt: str, *how: Any) -> Vectors:
        keys = [json_key([prompt, text]) for text in texts]
        return self._remembered(
            keys, texts, lambda items: self.encoder._of_texts(items, prompt, *how)
        )

    def _remembered(
        self, keys: list[str], items: Sequence[Any], embed: Callable[[Any], Vectors]
    ) -> Vectors:
        from tqdm.auto import tqdm

        if self.fitted_on_input:
            fitted: Vectors = self.timed(lambda: embed(items))
            return fitted
        missing = {
            key: item for key, item in zip(keys, items, strict=True) if key not in self._vectors
        }
        for key, vector, seconds in self._read(list(missing)):
            self._vectors[key] = vector
            self.seconds += seconds
            del missing[key]
        # the longest first, so that parts are of one length and one warning counts what is cut
        rows = sorted(missing.items(), key=lambda row: -_length(row[1]))
        starts = tqdm(
            range(0, len(rows), PART),
            desc=Path(self.name).name,
            file=sys.stderr,
            leave=False,
            disable=len(rows) <= PART,
        )
        for start in starts:
            self._embed(dict(rows[start : start + PART]), embed)
        return np.stack([self._vectors[key] for key in keys])

    def _embed(self, items: dict[str, Any], embed: Callable[[Any], Vectors]) -> None:
        before = self.seconds
        vectors = self._finished(self.timed(lambda: embed(list(items.values()))), len(items))
        seconds = (self.seconds - before) / len(items)
        if self._file is not None:
            rows = [(key, row.tobytes(), seconds) for key, row in zip(items, vectors, strict=True)]
            with _table(self._file) as table:
                table.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)", rows)
        self._vectors.update(zip(items, vectors, strict=True))

    def _read(self, keys: Iterable[str]) -> Iterator[tuple[str, Vectors, float]]:
        """Yield the keys, vectors and seconds of the items that the file holds."""
        if self._file is None:
            return
        with _table(self._file) as table:
            for key in keys:
                rows = table.execute("SELECT vector, seconds FROM vectors WHERE key = ?", (key,))
                for vector, seconds in rows:
                    yield key, np.frombuffer(vector, dtype=np.float32), seconds


@contextmanager
def _table(file: Path) -> Iterator[sqlite3.Connection]:
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with closing(sqlite3.connect(file, timeout=60)) as table, table:
            table.execute(_TABLE)
            yield table
    except sqlite3.DatabaseError as error:
        raise InputError(
            f"{file}: SQLite cannot use it ({error}); remove it, or make room on the disk"
        ) from None


def _length(item: Any) -> int:
    return len(item) if isinstance(item, str) else sum(len(turn.content) for turn in item.turns)
