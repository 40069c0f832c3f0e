"""Vectors on disk, by what makes them and by what they are of, so that nothing is encoded twice by a model.

A folder holds files that are written once: ``rows-*.safetensors`` with the vectors of some dialogues and the keys of
those, and ``list-KEY.safetensors`` with the vectors of a list that an encoder was fitted on. The metadata of each hold
the seconds that encoding took and a checksum. A file appears whole or not at all; one that is damaged nevertheless is
passed over. Several processes may share a folder.
"""

import logging
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..hashing import list_key
from ..runs.files import check_writable, write_atomically
from .specs import fingerprint

logger = logging.getLogger(__name__)

Arrays = dict[str, NDArray[np.generic]]


class Kept(NamedTuple):
    """What a cache holds of a dialogue, ``(D,)``, or of a list of them, ``(N, D)``; and how long encoding took."""

    vectors: NDArray[np.float32]
    seconds: float


class EmbeddingCache:
    """A folder of one model's vectors. Only keys stay in memory."""

    def __init__(self, folder: Path) -> None:
        """Opens the folder of a model alone, which need not exist; see `embedding_cache`."""
        check_writable(folder / "rows")
        self.folder = folder
        self._files: dict[str, Path] | None = None

    def find(self, keys: Iterable[str]) -> dict[str, Kept]:
        """Reads the vectors of those dialogues that are there, by their keys."""
        if self._files is None:
            files = sorted(self.folder.glob("rows-*.safetensors"))
            self._files = {key: file for file in files for key in _keys(file)}
        wanted: dict[Path, set[str]] = {}
        for key in keys:
            if key in self._files:
                wanted.setdefault(self._files[key], set()).add(key)
        return {key: kept for file, sought in wanted.items() for key, kept in self._rows(file, sought)}

    def add(self, keys: Sequence[str], vectors: NDArray[np.float32], seconds: float) -> None:
        """Writes the vectors ``(N, D)`` of N dialogues, each of which is taken to have cost the same seconds."""
        file = self.folder / f"rows-{list_key(keys)[:24]}.safetensors"
        digits = np.frombuffer(bytes.fromhex("".join(keys)), dtype=np.uint8).reshape(len(keys), -1)
        _write(file, {"keys": digits, "vectors": np.asarray(vectors, dtype=np.float32)}, seconds)
        if self._files is not None:
            self._files.update(dict.fromkeys(keys, file))

    def find_list(self, key: str) -> Kept | None:
        """Reads the vectors of a list of dialogues that an encoder was fitted on; None where it is not there."""
        file = self._list_file(key)
        found = _read(file) if file.exists() else None
        return None if found is None else Kept(found[0]["vectors"].astype(np.float32, copy=False), found[1])

    def add_list(self, key: str, vectors: NDArray[np.float32], seconds: float) -> None:
        """Writes the vectors of such a list, ``(N, D)``, and how long it took."""
        _write(self._list_file(key), {"vectors": np.asarray(vectors, dtype=np.float32)}, seconds)

    def _list_file(self, key: str) -> Path:
        return self.folder / f"list-{key}.safetensors"

    def _rows(self, file: Path, sought: set[str]) -> list[tuple[str, Kept]]:
        found = _read(file)
        if found is None:
            return []
        arrays, seconds = found
        keys = _texts(arrays["keys"])
        rows = [row for row, key in enumerate(keys) if key in sought]
        vectors = arrays["vectors"][rows].astype(np.float32, copy=False)  # a copy: the rest of the file is let go
        return [(keys[row], Kept(vector, seconds / len(keys))) for row, vector in zip(rows, vectors, strict=True)]


def embedding_cache(folder: Path, spec: str) -> EmbeddingCache:
    """Opens the cache of a model among those of others.

    The folder holds one for each model, named by its `fingerprint` and the version of this package. Whitening comes
    after what is kept: a model shares its vectors with its whitened self.
    """
    from importlib.metadata import version

    return EmbeddingCache(folder / f"{fingerprint(spec)}-{version('hf-dialemb')}")


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


def _write(file: Path, arrays: Arrays, seconds: float) -> None:
    from safetensors.numpy import save_file

    arrays = {name: np.ascontiguousarray(values) for name, values in arrays.items()}
    metadata = {"seconds": repr(seconds), "checksum": _checksum(arrays)}
    write_atomically(file, lambda temporary: save_file(arrays, temporary, metadata))


def _read(file: Path) -> tuple[Arrays, float] | None:
    """Reads a file whole; None, and a warning, where it is damaged."""
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
        return None


def _pass_over(file: Path, error: Exception) -> None:
    logger.warning("%s is damaged (%s): what it held is encoded again", file, error)
