"""The files of corpora: read from a folder or a packed archive, safe against damage."""

import gzip
import io
import lzma
import os
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from ..errors import InputError

ARCHIVE_SUFFIXES = (".tar.xz", ".tar.gz", ".zip")  # of the archives that a `Source` opens
BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    lzma.LZMAError,
    zlib.error,
    EOFError,
    OSError,
    RuntimeError,
)
"""Errors of the standard library while it reads a damaged archive.

The last for encrypted members.
"""

LARGEST_RATIO = 500  # bytes that a byte of an archive may become; real corpora reach about 50
_FREE = 1 << 28  # archives of a few bytes may well exceed their ratio
_CHUNK = 1 << 20


class MissingFilesError(InputError):
    """The files of a corpus, or of one of its splits, are not at hand."""


class Source:
    """The files of one corpus.

    A folder, an archive as in `ARCHIVE_SUFFIXES`, or a single file that ends in ``.gz``.

    A file in a folder may be packed by itself: ``data.json.gz`` is read as ``data.json``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def files(self, pattern: str) -> Iterator[tuple[str, io.BufferedReader]]:
        """Open the files whose path ends as the pattern says, sorted by name.

        A stream is good until the next one.
        """
        if not self.path.is_dir() and self.path.name.endswith(ARCHIVE_SUFFIXES):
            try:
                yield from (
                    self._zip_files(pattern)
                    if self.path.suffix == ".zip"
                    else self._tar_files(pattern)
                )
            except BROKEN as error:
                raise _damaged(self.path, error) from None
            return
        paths: dict[str, Path] = {}
        folder = self.path if self.path.is_dir() else self.path.parent
        for path in files_within(folder) if self.path.is_dir() else (self.path,):
            name = path.relative_to(folder).as_posix()
            if _matches(name, pattern):
                paths[name] = path
            elif name.endswith(".gz") and _matches(name.removesuffix(".gz"), pattern):
                paths.setdefault(name.removesuffix(".gz"), path)
        for name in sorted(paths):
            with decompressed(paths[name]) as stream:
                # by its unpacked name, which readers look at
                yield ((folder / name).as_posix(), stream)

    def holds(self, pattern: str) -> bool:
        """Return whether there is such a file."""
        return any(True for _ in self.files(pattern))

    def _zip_files(self, pattern: str) -> Iterator[tuple[str, io.BufferedReader]]:
        allowance = _Allowance(self.path)
        with zipfile.ZipFile(self.path) as archive:
            members = {
                self._normal(member.filename): member
                for member in archive.infolist()
                if not member.is_dir()
            }
            for name in sorted(name for name in members if _matches(name, pattern)):
                place = f"{self.path}:{name}"
                with (
                    archive.open(members[name]) as stream,
                    _guarded(stream, place, allowance) as content,
                ):
                    yield place, content

    def _tar_files(self, pattern: str) -> Iterator[tuple[str, io.BufferedReader]]:
        with tempfile.TemporaryDirectory() as folder:
            # Members come in any order, and a name that occurs twice means its last occurrence.
            unpacked: dict[str, Path] = {}
            # As a stream: going back in a compressed file means to unpack it again from its
            # beginning.
            with (
                decompressed(self.path) as packed,
                tarfile.open(fileobj=packed, mode="r|", bufsize=_CHUNK) as archive,
            ):
                for number, member in enumerate(archive):
                    name = self._normal(member.name)
                    if not _matches(name, pattern):
                        continue
                    if member.issym() or member.islnk():
                        raise InputError(
                            f"{self.path}:{name}: is a link to another file, expected the file "
                            "itself; pack the folder "
                            "again with tar --dereference --hard-dereference"
                        )
                    # holes need not end
                    stream = None if member.issparse() else archive.extractfile(member)
                    if stream:
                        unpacked[name] = Path(folder, str(number))
                        with unpacked[name].open("wb") as file:
                            shutil.copyfileobj(stream, file, _CHUNK)
                # tarfile stops silently at a broken header; reading on makes the compression's own
                # checks speak.
                while packed.read(_CHUNK):
                    pass
            for name in sorted(unpacked):
                with unpacked[name].open("rb") as content:
                    yield f"{self.path}:{name}", content

    def _normal(self, name: str) -> str:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            raise InputError(
                f"{self.path}: member {name!r} points outside the archive; get it again from a "
                "source that you trust"
            )
        return path.as_posix()


def files_within(folder: Path) -> Iterator[Path]:
    """List the files of a folder, those behind links too.

    A folder that several links lead to is entered once.

    Yields the path of each, the files of a folder before its folders, both sorted by name; none
    that is hidden.
    """

    def refuse(error: OSError) -> None:
        raise InputError(
            f"{error.filename}: cannot be read ({error.strerror}); check its permissions"
        )

    entered: set[Path] = set()
    for parent, folders, files in os.walk(folder, onerror=refuse, followlinks=True):
        named = sorted(name for name in folders if not name.startswith("."))
        folders[:] = [
            name for name in named if not _was_entered(Path(parent, name).absolute(), entered)
        ]
        for name in sorted(files):
            file = Path(parent, name)
            if not name.startswith(".") and file.is_file():
                yield file


def is_archive(path: Path) -> bool:
    """Return whether a path is a file that a `Source` can open."""
    return path.name.endswith((*ARCHIVE_SUFFIXES, ".gz")) and path.is_file()


def decompressed(path: Path) -> io.BufferedReader:
    """Open a file; one that ends in ``.gz`` or ``.xz`` is unpacked while it is read."""
    openers: dict[str, Callable[[Path], gzip.GzipFile | lzma.LZMAFile]] = {
        ".gz": gzip.GzipFile,
        ".xz": lzma.LZMAFile,
    }
    try:
        if path.suffix in openers:
            return _guarded(openers[path.suffix](path), str(path), _Allowance(path))
        return path.open("rb")
    except OSError as error:
        remedy = (
            "check its name" if isinstance(error, FileNotFoundError) else "check its permissions"
        )
        raise InputError(f"{path}: cannot be read ({error.strerror or error}); {remedy}") from None


class _Allowance:
    """Count the bytes that come out of one archive, and refuse more than a corpus can hold."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.left = _FREE + LARGEST_RATIO * path.stat().st_size

    def take(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise InputError(
                f"{self.path}: unpacks to more than {LARGEST_RATIO} times its size, as no corpus "
                "does; "
                "it is damaged or made to fill the disk: get it again from a source that you trust"
            )


class _GuardedStream(io.RawIOBase):
    """A stream whose bytes are counted, and whose errors become an `InputError` that names it."""

    def __init__(
        self, stream: IO[bytes] | io.BufferedIOBase, name: str, allowance: _Allowance
    ) -> None:
        super().__init__()
        self.name, self._stream, self._allowance = name, stream, allowance

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            content = self._stream.read(len(buffer))
        except BROKEN as error:
            raise _damaged(self.name, error) from None
        self._allowance.take(len(content))
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


def _guarded(
    stream: IO[bytes] | io.BufferedIOBase, name: str, allowance: _Allowance
) -> io.BufferedReader:
    return io.BufferedReader(_GuardedStream(stream, name, allowance), 1 << 18)


def _damaged(name: object, error: Exception) -> InputError:
    return InputError(
        f"{name}: cannot be read ({error}); it is damaged or incomplete: get it again"
    )


def _was_entered(folder: Path, entered: set[Path]) -> bool:
    """Return whether a folder is a link to one of its parents or to a folder that a link led to
    before; remember it.
    """
    if not folder.is_symlink():
        return False
    target = folder.resolve()
    if target in entered or target in {parent.resolve() for parent in folder.parents}:
        return True
    entered.add(target)
    return False


def _matches(name: str, pattern: str) -> bool:
    path = PurePosixPath(name)
    # Systems leave hidden files behind, such as the "._name" twins in archives made on a Mac.
    return path.match(pattern) and not any(part.startswith(".") for part in path.parts)
