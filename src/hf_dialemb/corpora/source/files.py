"""The files of corpora: read in place from a folder or a packed archive, never extracted, safe against damage."""

import gzip
import io
import lzma
import os
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from ...errors import InputError

ARCHIVE_SUFFIXES = (".tar.xz", ".tar.gz", ".zip")  # of the archives that a `Source` opens
BROKEN = (tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error, EOFError, OSError, RuntimeError)
"""Errors of the standard library while it reads a damaged archive; the last for encrypted members."""

LARGEST_RATIO = 500  # bytes that a byte of an archive may become; real corpora reach about 50
_FREE = 1 << 28  # archives of a few bytes may well exceed their ratio
_GZIP = ".gz"
_CHUNK = 1 << 20


class MissingFilesError(InputError):
    """The files of a corpus, or of one of its splits, are not at hand."""


class Source:
    """The files of one corpus: a folder, an archive as in `ARCHIVE_SUFFIXES`, or a single file that ends in ``.gz``.

    A file in a folder may be packed by itself: ``data.json.gz`` is read as ``data.json``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._tar_names: list[str] | None = None
        self._tar_links: set[str] = set()

    def files(self, pattern: str) -> Iterator[tuple[str, io.BufferedReader]]:
        """Open the files whose path ends as the pattern says, sorted by name; a stream is good until the next one."""
        if self.path.is_dir():
            yield from self._folder_files(pattern)
            return
        name = self.path.name
        if not name.endswith(ARCHIVE_SUFFIXES):
            if _matches(name.removesuffix(_GZIP), pattern):
                with decompressed(self.path) as stream:
                    yield str(self.path).removesuffix(_GZIP), stream
            return
        try:
            yield from self._zip_files(pattern) if name.endswith(".zip") else self._tar_files(pattern)
        except BROKEN as error:
            raise _damaged(str(self.path), error) from None

    def holds(self, pattern: str) -> bool:
        """Return whether there is such a file."""
        return any(True for _ in self.files(pattern))

    def _folder_files(self, pattern: str) -> Iterator[tuple[str, io.BufferedReader]]:
        paths: dict[str, Path] = {}
        for path in files_within(self.path):
            name = path.relative_to(self.path).as_posix()
            if _matches(name, pattern):
                paths[name] = path
            elif name.endswith(_GZIP) and _matches(name.removesuffix(_GZIP), pattern):
                paths.setdefault(name.removesuffix(_GZIP), path)
        for name in sorted(paths):
            with decompressed(paths[name]) as stream:
                yield (self.path / name).as_posix(), stream  # by its unpacked name, which readers look at

    def _zip_files(self, pattern: str) -> Iterator[tuple[str, io.BufferedReader]]:
        allowance = _Allowance(self.path)
        with zipfile.ZipFile(self.path) as archive:
            members = {self._normal(member.filename): member for member in archive.infolist() if not member.is_dir()}
            for name in sorted(name for name in members if _matches(name, pattern)):
                place = f"{self.path}:{name}"
                with archive.open(members[name]) as stream, _guarded(stream, place, allowance) as content:
                    yield place, content

    def _tar_files(self, pattern: str) -> Iterator[tuple[str, io.BufferedReader]]:
        names = self._list_tar()
        if link := next((name for name in sorted(self._tar_links) if _matches(name, pattern)), None):
            raise InputError(
                f"{self.path}:{link}: is a link to another file, expected the file itself; pack the folder again "
                "with tar --dereference --hard-dereference"
            )
        # A name that occurs twice means its last occurrence, as it would after unpacking.
        last = {name: index for index, name in enumerate(names) if _matches(name, pattern)}
        order = sorted(last, reverse=True)
        if not order:
            return
        # Members that come before their turn wait on disk; there are none when the archive is sorted.
        early: dict[str, Path] = {}
        with tempfile.TemporaryDirectory() as waiting, self._open_tar() as archive:
            for index, member in enumerate(archive):
                name = self._normal(member.name)
                stream = archive.extractfile(member) if last.get(name) == index else None
                if stream is None:
                    continue
                if name == order[-1]:
                    order.pop()
                    place = f"{self.path}:{name}"
                    with _guarded(stream, place) as content:
                        yield place, content
                else:
                    early[name] = Path(waiting, str(index))
                    with early[name].open("wb") as file:
                        shutil.copyfileobj(stream, file, _CHUNK)
                while order and order[-1] in early:
                    with early[order[-1]].open("rb") as content:
                        yield f"{self.path}:{order.pop()}", content
                if not order:
                    return

    @contextmanager
    def _open_tar(self) -> Iterator[tarfile.TarFile]:
        # As a stream: going back in a compressed file means to unpack it again from its beginning.
        with decompressed(self.path) as stream, tarfile.open(fileobj=stream, mode="r|", bufsize=_CHUNK) as archive:
            yield archive

    def _list_tar(self) -> list[str]:
        """List the members once: a tar has no index, and no order can be promised before all names are known."""
        if self._tar_names is None:
            names = []
            with self._open_tar() as archive:
                for member in archive:
                    name = self._normal(member.name)
                    # Other members than regular files get a name that no pattern matches, to keep the positions.
                    names.append(name if member.isreg() and not member.issparse() else "")  # holes need not end
                    if member.issym() or member.islnk():
                        self._tar_links.add(name)
                # tarfile stops silently at a broken header; reading on makes the compression's own checks speak.
                while archive.fileobj and archive.fileobj.read(_CHUNK):
                    pass
            self._tar_names = names
        return self._tar_names

    def _normal(self, name: str) -> str:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            raise InputError(
                f"{self.path}: member {name!r} points outside the archive; get it again from a source that you trust"
            )
        return path.as_posix()


def files_within(folder: Path) -> Iterator[Path]:
    """List the files of a folder, those behind links too; a folder that several links lead to is entered once.

    Yields the path of each, the files of a folder before its folders, both sorted by name; none that is hidden.
    """

    def refuse(error: OSError) -> None:
        raise InputError(f"{error.filename}: cannot be read ({error.strerror}); check its permissions")

    entered: set[Path] = set()
    for parent, folders, files in os.walk(folder, onerror=refuse, followlinks=True):
        named = sorted(name for name in folders if not name.startswith("."))
        folders[:] = [name for name in named if not _was_entered(Path(parent, name).absolute(), entered)]
        for name in sorted(files):
            file = Path(parent, name)
            if not name.startswith(".") and file.is_file():
                yield file


def is_archive(path: Path) -> bool:
    """Return whether a path is a file that a `Source` can open."""
    return path.name.endswith((*ARCHIVE_SUFFIXES, _GZIP)) and path.is_file()


def decompressed(path: Path) -> io.BufferedReader:
    """Open a file; one that ends in ``.gz`` or ``.xz`` is unpacked while it is read."""
    try:
        for ending, opened in ((_GZIP, gzip.open), (".xz", lzma.open)):
            if path.name.endswith(ending):
                return _guarded(opened(path), str(path), _Allowance(path))
        return path.open("rb")
    except OSError as error:
        remedy = "check its name" if isinstance(error, FileNotFoundError) else "check its permissions"
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
                f"{self.path}: unpacks to more than {LARGEST_RATIO} times its size, as no corpus does; "
                "it is damaged or made to fill the disk: get it again from a source that you trust"
            )


class _GuardedStream(io.RawIOBase):
    def __init__(self, stream: IO[bytes] | io.BufferedIOBase, name: str, allowance: _Allowance | None) -> None:
        super().__init__()
        self.name, self._stream, self._allowance = name, stream, allowance

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            content = self._stream.read(len(buffer))
        except BROKEN as error:
            raise _damaged(self.name, error) from None
        if self._allowance:
            self._allowance.take(len(content))
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


def _guarded(
    stream: IO[bytes] | io.BufferedIOBase, name: str, allowance: _Allowance | None = None
) -> io.BufferedReader:
    """Count the bytes of a stream, and turn its errors into an `InputError` that names it."""
    return io.BufferedReader(_GuardedStream(stream, name, allowance), 1 << 18)


def _damaged(name: str, error: Exception) -> InputError:
    return InputError(f"{name}: cannot be read ({error}); it is damaged or incomplete: get it again")


def _was_entered(folder: Path, entered: set[Path]) -> bool:
    """Return whether a folder is a link to one of its parents or to a folder that a link led to before; remember it."""
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
