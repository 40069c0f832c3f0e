"""The files of corpora: read from a folder or a packed archive."""

import gzip
import lzma
import os
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TypeAlias

from ..errors import InputError

Stream: TypeAlias = BufferedReader | gzip.GzipFile | lzma.LZMAFile

ARCHIVE_SUFFIXES = (".tar.xz", ".tar.gz", ".zip")  # of the archives that a `Source` opens

_BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    lzma.LZMAError,
    zlib.error,
    EOFError,
    OSError,
    RuntimeError,  # of encrypted members
)


class MissingFilesError(InputError):
    """The files of a corpus, or of one of its splits, are not at hand."""


@dataclass(frozen=True)
class Source:
    """The files of one corpus.

    A folder, an archive as in `ARCHIVE_SUFFIXES`, or a single file that ends in ``.gz``.

    A file in a folder may be packed by itself: ``data.json.gz`` is read as ``data.json``.
    """

    path: Path

    def files(self, pattern: str) -> Iterator[tuple[str, Stream]]:
        """Open the files whose path ends as the pattern says, sorted by name.

        A stream is good until the next one.

        Raises:
            InputError: The archive is damaged.
        """
        if self.path.is_dir():
            yield from _files(self.path, files_within(self.path), pattern)
        elif self.path.name.endswith(ARCHIVE_SUFFIXES):
            with TemporaryDirectory() as folder:
                with undamaged(self.path):
                    _unpack(self.path, folder, pattern)
                for name, stream in _files(Path(folder), files_within(Path(folder)), pattern):
                    yield f"{self.path}:{PurePosixPath(name).relative_to(folder)}", stream
        else:
            yield from _files(self.path.parent, [self.path], pattern)

    def holds(self, pattern: str) -> bool:
        """Return whether there is such a file."""
        return any(True for _ in self.files(pattern))


def _files(
    folder: Path, paths: Iterator[Path] | list[Path], pattern: str
) -> Iterator[tuple[str, Stream]]:
    by_name = {}
    for path in paths:
        name = path.relative_to(folder).as_posix()
        if _matches(name, pattern):
            by_name[name] = path
        elif _matches(name.removesuffix(".gz"), pattern):
            by_name.setdefault(name.removesuffix(".gz"), path)
    for name in sorted(by_name):
        with decompressed(by_name[name]) as stream:
            # by its unpacked name, which readers look at
            yield (folder / name).as_posix(), stream


def _unpack(path: Path, folder: str, pattern: str) -> None:
    """Unpack the members of an archive that a pattern names; no member lands outside the folder."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            archive.extractall(
                folder, [name for name in archive.namelist() if _matches(name, pattern)]
            )
        return
    with decompressed(path) as stream, tarfile.open(fileobj=stream) as packed:
        members = (
            member for member in packed if member.isfile() and _matches(member.name, pattern)
        )
        packed.extractall(folder, members, filter="data")
        # tarfile stops silently at a broken header; reading on makes the compression speak.
        while stream.read(1 << 20):
            pass


def files_within(folder: Path) -> Iterator[Path]:
    """List the files of a folder, none that is hidden; a link to a folder is passed over.

    The files of a folder come before its folders, both sorted by name.
    """

    def refuse(error: OSError) -> None:
        raise InputError(
            f"{error.filename}: cannot be read ({error.strerror}); check its permissions"
        )

    for parent, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            file = Path(parent, name)
            if not name.startswith(".") and file.is_file():
                yield file


def is_archive(path: Path) -> bool:
    """Return whether a path is a file that a `Source` can open."""
    return path.name.endswith((*ARCHIVE_SUFFIXES, ".gz")) and path.is_file()


@contextmanager
def decompressed(path: Path) -> Iterator[Stream]:
    """Open a file; one that ends in ``.gz`` or ``.xz`` is unpacked while it is read.

    Raises:
        InputError: The file is missing or damaged.
    """
    with undamaged(path):
        if path.suffix == ".gz":
            with gzip.open(path) as unzipped:
                yield unzipped
        elif path.suffix == ".xz":
            with lzma.open(path) as unpacked:
                yield unpacked
        else:
            with path.open("rb") as plain:
                yield plain


@contextmanager
def undamaged(path: Path) -> Iterator[None]:
    """Turn the errors of a file that is missing or damaged into an `InputError`."""
    try:
        yield
    except _BROKEN as error:
        reason = " ".join(str(getattr(error, "strerror", None) or error).split())
        raise InputError(
            f"{path}: cannot be read ({reason}); it is missing, damaged or incomplete: get it again"
        ) from None


def _matches(name: str, pattern: str) -> bool:
    path = PurePosixPath(name)
    # Systems leave hidden files behind, such as the "._name" twins in archives made on a Mac.
    return path.match(pattern) and not any(part.startswith(".") for part in path.parts)
