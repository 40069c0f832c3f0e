"""Source: the files of a corpus, read in place from a folder or from a packed archive; nothing is ever extracted."""

import io
import logging
import os
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from ...errors import InputError
from .streams import BROKEN, Allowance, damaged, decompressed, guarded

logger = logging.getLogger(__name__)

ARCHIVE_SUFFIXES = (".tar.xz", ".tar.gz", ".zip")  # the archives that a `Source` opens
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
        """Opens the files whose path ends as the pattern says, sorted by name; a stream is good until the next one."""
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
            raise damaged(str(self.path), error) from None

    def holds(self, pattern: str) -> bool:
        """Says whether there is such a file."""
        return any(True for _ in self.files(pattern))

    def _folder_files(self, pattern: str) -> Iterator[tuple[str, io.BufferedReader]]:
        found: dict[str, Path] = {}
        for path in files_within(self.path):
            name = path.relative_to(self.path).as_posix()
            if _matches(name, pattern):
                found[name] = path
            elif name.endswith(_GZIP) and _matches(name.removesuffix(_GZIP), pattern):
                found.setdefault(name.removesuffix(_GZIP), path)
        for name in sorted(found):
            with decompressed(found[name]) as stream:
                yield (self.path / name).as_posix(), stream  # by the name that it has unpacked: readers look at it

    def _zip_files(self, pattern: str) -> Iterator[tuple[str, io.BufferedReader]]:
        allowance = Allowance(self.path)
        with zipfile.ZipFile(self.path) as archive:
            members = {self._normal(member.filename): member for member in archive.infolist() if not member.is_dir()}
            for name in sorted(name for name in members if _matches(name, pattern)):
                place = f"{self.path}:{name}"
                with archive.open(members[name]) as stream, guarded(stream, place, allowance) as content:
                    yield place, content

    def _tar_files(self, pattern: str) -> Iterator[tuple[str, io.BufferedReader]]:
        names = self._list_tar()
        # A name that occurs twice means its last occurrence, as it would after unpacking.
        last = {name: index for index, name in enumerate(names) if _matches(name, pattern)}
        for name in sorted(self._tar_links):
            if _matches(name, pattern):
                raise InputError(
                    f"{self.path}:{name}: is a link to another file, expected the file itself; pack the folder again "
                    "with tar --dereference --hard-dereference"
                )
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
                    with guarded(stream, place) as content:
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
        # As a stream, since going back in a compressed file means to unpack it again from its beginning.
        with decompressed(self.path) as stream, tarfile.open(fileobj=stream, mode="r|", bufsize=_CHUNK) as archive:
            yield archive

    def _list_tar(self) -> list[str]:
        """Lists the members once: a tar has no index, and no order can be promised before all names are known."""
        if self._tar_names is None:
            with self._open_tar() as archive:
                listed: list[str] = []
                targets: dict[str, str] = {}
                for member in archive:
                    # What is no regular file gets a name that no pattern matches, to keep the positions.
                    plain = member.isreg() and not member.issparse()  # holes need not end
                    listed.append(self._normal(member.name) if plain else "")
                    if member.issym() or member.islnk():
                        self._tar_links.add(self._normal(member.name))
                    if member.issym():
                        targets[member.name] = os.path.normpath(PurePosixPath(member.name).parent / member.linkname)
                # tarfile stops silently at a broken header; reading on makes the compression's own checks speak.
                while archive.fileobj and archive.fileobj.read(_CHUNK):
                    pass
            self._tar_names = listed
            present = set(listed)
            for name in sorted(name for name, target in targets.items() if target not in present):
                logger.warning(
                    "%s: passed over %s, a link to a folder or to nothing in the archive; if it holds conversations, "
                    "pack the folder again with tar --dereference", self.path, name,
                )  # fmt: skip
        return self._tar_names

    def _normal(self, name: str) -> str:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            raise InputError(
                f"{self.path}: member {name!r} points outside the archive; get it again from a source that you trust"
            )
        return path.as_posix()


def files_within(folder: Path) -> Iterator[Path]:
    """Lists the files of a folder, those behind links too; a folder that several links lead to is entered once.

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
    """Says whether a path is a file that a `Source` can open."""
    return path.name.endswith((*ARCHIVE_SUFFIXES, _GZIP)) and path.is_file()


def _was_entered(folder: Path, entered: set[Path]) -> bool:
    """Says whether a folder is a link to one on the way to it, or that a link led to before, and takes note of it."""
    if not folder.is_symlink():
        return False
    target = folder.resolve()
    if target in entered or target in {each.resolve() for each in folder.parents}:
        return True
    entered.add(target)
    return False


def _matches(name: str, pattern: str) -> bool:
    path = PurePosixPath(name)
    # Hidden files are what systems leave behind, such as the "._name" twins in archives made on a Mac.
    return path.match(pattern) and not any(part.startswith(".") for part in path.parts)
