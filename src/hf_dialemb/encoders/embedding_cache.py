"""An encoder that embeds nothing twice: its vectors stay in memory, and in a folder for later runs.

A folder holds one subfolder for each model, by the model's fingerprint and the version of this
package. In it lie files ``rows-*.safetensors``, each written once: the keys of some items, their
vectors, and the seconds that encoding took. A file appears whole or not at all; a damaged one is
passed over. Several processes may share a folder.
"""

import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..dialogue import Dialogue
from ..hashing import dialogue_key, list_key, utterance_key
from ..storage.files import check_writable, write_atomically
from .encoder import Encoder, Result, Vectors
from .load_encoder import load_encoder

Arrays = dict[str, NDArray[np.generic]]

PART = 500
"""The number of items that are embedded, and written to disk, at once.

What a stopped run loses at most.
"""

logger = logging.getLogger(__name__)


class RememberingEncoder(Encoder):
    """An encoder whose tasks on the same items cost one pass over them.

    A dialogue is known by who says what, not by its labels. Vectors that are fitted on their input
    are remembered for that very list.
    """

    def __init__(self, encoder: Any, folder: Path | None = None) -> None:
        self.encoder = load_encoder(encoder)
        super().__init__(
            **{field.name: getattr(self.encoder, field.name) for field in fields(Encoder)}
        )
        self.seconds = 0.0  # of encoding; remembered vectors count with their time then
        self._vectors: dict[str, Vectors] = {}
        self._folder: Path | None = None
        self._files: dict[str, Path] | None = None  # by key, once the folder is listed
        if folder is not None and self.source:
            self._folder = folder / f"{self.encoder.fingerprint}-{version('hf-dialemb')}"
            check_writable(self._folder / "rows")

    def timed(self, work: Callable[[], Result]) -> Result:
        """Do other work of the encoder and add its duration to the seconds."""
        started = time.perf_counter()
        result = work()
        self.seconds += time.perf_counter() - started
        return result

    def forget(self) -> None:
        """Free the vectors."""
        self._vectors.clear()

    def _of_dialogues(self, dialogues: Sequence[Dialogue], *how: Any) -> Vectors:
        embed = self.encoder._of_dialogues
        return self._remembered(
            list(map(dialogue_key, dialogues)), dialogues, lambda items: embed(items, *how)
        )

    def _of_texts(self, texts: Sequence[str], *how: Any) -> Vectors:
        embed = self.encoder._of_texts
        return self._remembered(
            list(map(utterance_key, texts)), texts, lambda items: embed(items, *how)
        )

    def _remembered(
        self, keys: list[str], items: Sequence[Any], embed: Callable[[Any], Vectors]
    ) -> Vectors:
        from tqdm.auto import tqdm

        part = PART
        if self.fitted_on_input:  # all at once; the list is part of every item's key
            whole, part = list_key(keys), len(keys)
            keys = [list_key((whole, f"{row}")) for row in range(len(keys))]
        missing = {
            key: item for key, item in zip(keys, items, strict=True) if key not in self._vectors
        }
        for key, vector, seconds in self._read(missing):
            self._vectors[key] = vector
            self.seconds += seconds
            del missing[key]
        rows = list(missing.items())
        if not self.fitted_on_input:
            # the longest first, so that parts are of one length and one warning counts what is cut
            rows.sort(key=lambda row: -_length(row[1]))
        total, name = len(rows), Path(self.name).name
        with tqdm(
            total=total, desc=name, unit="item", file=sys.stderr, leave=False, disable=total <= PART
        ) as progress:
            for start in range(0, total, part):
                self._embed(rows[start : start + part], embed)
                progress.update(part)
        return np.stack([self._vectors[key] for key in keys])

    def _embed(self, rows: list[tuple[str, Any]], embed: Callable[[Any], Vectors]) -> None:
        keys, items = (list(column) for column in zip(*rows, strict=True))
        before = self.seconds
        vectors = self._finished(self.timed(lambda: embed(items)), len(keys))
        if self._folder is not None:
            self._write(self._folder, keys, vectors, self.seconds - before)
        self._vectors.update(zip(keys, vectors, strict=True))

    def _write(self, folder: Path, keys: Sequence[str], vectors: Vectors, seconds: float) -> None:
        from safetensors.numpy import save_file

        file = folder / f"rows-{list_key(keys)[:24]}.safetensors"
        digits = np.frombuffer(bytes.fromhex("".join(keys)), dtype=np.uint8).reshape(len(keys), -1)
        arrays: Arrays = {"keys": digits, "vectors": np.ascontiguousarray(vectors)}
        metadata = {"seconds": repr(seconds)}
        write_atomically(file, lambda temporary: save_file(arrays, temporary, metadata))
        if self._files is not None:
            self._files.update(dict.fromkeys(keys, file))

    def _read(self, wanted: Iterable[str]) -> Iterator[tuple[str, Vectors, float]]:
        """Yield the keys, vectors and seconds of the items that the folder holds."""
        if self._folder is None:
            return
        if self._files is None:
            files = sorted(self._folder.glob("rows-*.safetensors"))
            self._files = {key: file for file in files for key in _texts(_arrays(file, "keys")[0])}
        by_file: dict[Path, set[str]] = {}
        for key in wanted:
            if key in self._files:
                by_file.setdefault(self._files[key], set()).add(key)
        for file, sought in by_file.items():
            arrays, seconds = _arrays(file, "keys", "vectors")
            keys = _texts(arrays)
            for row, key in enumerate(keys):
                if key in sought:
                    yield key, arrays["vectors"][row].astype(np.float32), seconds / len(keys)


def _length(item: Any) -> int:
    return len(item) if isinstance(item, str) else sum(len(turn.content) for turn in item.turns)


def _texts(arrays: Arrays) -> list[str]:
    return [row.tobytes().hex() for row in arrays["keys"]] if arrays else []


def _arrays(file: Path, *names: str) -> tuple[Arrays, float]:
    """Read arrays of a file and its seconds; of a damaged one return nothing, with a warning."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, "numpy") as tensors:
            arrays: Arrays = {name: tensors.get_tensor(name) for name in names}
            return arrays, float(tensors.metadata()["seconds"])
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        logger.warning("%s is damaged (%s): what it held is encoded again", file, error)
        return {}, 0.0
