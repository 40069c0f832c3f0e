"""An encoder that embeds nothing twice: its vectors stay in memory, and in a folder for later runs.

A folder holds one subfolder for each model, by the model's fingerprint and the version of this package. In it lie files
``rows-*.safetensors``, each written once: the keys of some items, their vectors, the seconds that encoding took, and a
checksum. A file appears whole or not at all; a damaged one is passed over. Several processes may share a folder.
"""

from __future__ import annotations

import logging
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..dialogue import Dialogue
from ..hashing import dialogue_key, list_key, utterance_key
from ..runs.files import check_writable, write_atomically
from .encoder import Encoder, Vectors
from .loading import load_encoder

Result = TypeVar("Result")
Arrays = dict[str, NDArray[np.generic]]

PART = 500
"""The number of items that are embedded, and written to disk, at once: what a stopped run loses at most."""

logger = logging.getLogger(__name__)


class RememberingEncoder(Encoder):
    """An encoder whose tasks on the same items cost one pass over them.

    A dialogue is known by who says what, not by its labels. Vectors that are fitted on their input are remembered for
    that very list. Whitening is done anew, on remembered vectors: a model shares them with its whitened self.
    """

    def __init__(self, encoder: Any, folder: Path | None = None) -> None:  # noqa: ANN401 - see load_encoder
        self.encoder = load_encoder(encoder)
        self.__dict__ |= vars(self.encoder)
        self.seconds = 0.0  # of encoding; remembered vectors count with their time then
        self._vectors: dict[str, Vectors] = {}
        self._folder: Path | None = None
        self._files: dict[str, Path] | None = None  # by key, once the folder is listed
        if folder is not None and self.encoder.spec:
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

    def _of_dialogues(self, dialogues: Sequence[Dialogue]) -> Vectors:
        return self._remembered(list(map(dialogue_key, dialogues)), dialogues, self.encoder._of_dialogues)

    def _of_texts(self, texts: Sequence[str]) -> Vectors:
        return self._remembered(list(map(utterance_key, texts)), texts, self.encoder._of_texts)

    def _remembered(self, keys: list[str], items: Sequence[Any], embed: Callable[[Any], Vectors]) -> Vectors:
        part = PART
        if self.fitted:  # all at once; the list is part of every item's key
            whole, part = list_key(keys), len(keys)
            keys = [list_key((whole, f"{row}")) for row in range(len(keys))]
        missing = {key: item for key, item in zip(keys, items, strict=True) if key not in self._vectors}
        for key, vector, seconds in self._read(missing):
            self._vectors[key] = vector
            self.seconds += seconds
            del missing[key]
        order = list(missing)
        if not self.fitted:  # the longest first, so that parts are of one length and one warning counts what is cut
            order.sort(key=lambda key: -len(_text(missing[key])))
        self._embed(missing, order, part, embed)
        return np.stack([self._vectors[key] for key in keys])

    def _embed(self, items: Mapping[str, Any], order: list[str], part: int, embed: Callable[[Any], Vectors]) -> None:
        from tqdm.auto import tqdm

        total, name = len(order), Path(self.name).name
        with tqdm(total=total, desc=name, unit="item", file=sys.stderr, leave=False, disable=total <= PART) as progress:
            for start in range(0, len(order), part):
                keys, before = order[start : start + part], self.seconds
                made = self.timed(lambda: embed([items[key] for key in keys]))  # noqa: B023 - called at once
                vectors = Encoder._checked(_plain(self.encoder), made, len(keys))
                if self._folder is not None:
                    self._write(keys, vectors, self.seconds - before)
                self._vectors.update(zip(keys, vectors, strict=True))
                progress.update(len(keys))

    def _write(self, keys: Sequence[str], vectors: Vectors, seconds: float) -> None:
        from safetensors.numpy import save_file

        assert self._folder is not None
        file = self._folder / f"rows-{list_key(keys)[:24]}.safetensors"
        digits = np.frombuffer(bytes.fromhex("".join(keys)), dtype=np.uint8).reshape(len(keys), -1)
        arrays: Arrays = {"keys": digits, "vectors": np.ascontiguousarray(vectors)}
        metadata = {"seconds": repr(seconds), "checksum": _checksum(arrays)}
        write_atomically(file, lambda temporary: save_file(arrays, temporary, metadata))
        if self._files is not None:
            self._files.update(dict.fromkeys(keys, file))

    def _read(self, wanted: Iterable[str]) -> Iterator[tuple[str, Vectors, float]]:
        """Yield the keys, vectors and seconds of the items that the folder holds."""
        if self._folder is None:
            return
        if self._files is None:
            files = sorted(self._folder.glob("rows-*.safetensors"))
            self._files = {key: file for file in files for key in _keys(file)}
        by_file: dict[Path, set[str]] = {}
        for key in wanted:
            if key in self._files:
                by_file.setdefault(self._files[key], set()).add(key)
        for file, sought in by_file.items():
            arrays, seconds = _arrays(file)
            keys = _texts(arrays["keys"]) if arrays else []
            for row, key in enumerate(keys):
                if key in sought:
                    yield key, arrays["vectors"][row].astype(np.float32), seconds / len(keys)


def _plain(encoder: Encoder) -> Encoder:
    """Return a stand-in that checks vectors before whitening."""
    return Encoder(encoder.name)


def _text(item: Any) -> str:  # noqa: ANN401 - a text or a dialogue
    return item if isinstance(item, str) else "".join(turn.content for turn in item.turns)


def _texts(digits: NDArray[np.generic]) -> list[str]:
    return [row.tobytes().hex() for row in digits]


def _keys(file: Path) -> list[str]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, "numpy") as tensors:
            return _texts(tensors.get_tensor("keys"))
    except (OSError, SafetensorError) as error:
        _pass_over(file, error)
        return []


def _checksum(arrays: Arrays) -> str:
    value = 0
    for name in sorted(arrays):
        value = zlib.crc32(arrays[name].tobytes(), value)
    return str(value)


def _arrays(file: Path) -> tuple[Arrays, float]:
    """Read a file whole; of a damaged one return nothing, with a warning."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, "numpy") as tensors:
            arrays: Arrays = {name: tensors.get_tensor(name) for name in tensors.keys()}  # noqa: SIM118 - no mapping
            metadata = tensors.metadata() or {}
        if metadata.get("checksum") != _checksum(arrays):
            raise ValueError("its checksum differs")
        return arrays, float(metadata["seconds"])
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        _pass_over(file, error)
        return {}, 0.0


def _pass_over(file: Path, error: Exception) -> None:
    logger.warning("%s is damaged (%s): what it held is encoded again", file, error)
