"""What tells the data of a corpus from other data under its name."""

import hashlib
from functools import lru_cache
from pathlib import Path, PurePosixPath

from ..loading import OWN, REGISTERED, form_of
from ..own.reading import files_of
from ..published import find_source
from ..registry import get_corpus
from .files import Source


def data_hash(corpus: str, data_dir: str | Path | None = None) -> str | None:
    """Hashes the files of a corpus."""
    form = form_of(corpus)
    if form == OWN:
        path = Path(corpus).expanduser()
        return _hash_folder(path) if path.is_dir() else _hash_file(path)
    source = find_source(get_corpus(corpus), data_dir) if form == REGISTERED else None
    if source is None:
        return None
    return _hash_source(source.path, tuple(sorted(get_corpus(corpus).patterns)))


@lru_cache(maxsize=64)
def _hash_source(path: Path, patterns: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    source = Source(path)
    for pattern in patterns:
        for place, stream in source.files(pattern):
            digest.update(PurePosixPath(place).name.encode())
            hashlib.file_digest(stream, lambda: digest)
    return digest.hexdigest()


def _hash_folder(folder: Path) -> str:
    digest = hashlib.sha256()
    for file in files_of(folder):
        inner = file.relative_to(folder).as_posix()  # the dialogue's id, and its label
        digest.update(f"{inner}\0{_hash_file(file)}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


def _hash_file(file: Path) -> str:
    digest = hashlib.sha256(file.name.encode(errors="surrogateescape"))
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: digest).hexdigest()
