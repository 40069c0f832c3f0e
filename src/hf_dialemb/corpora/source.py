"""Source: the files of a corpus, read in place from a folder or from a packed archive; nothing is ever extracted."""

from __future__ import annotations

import io
import json
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from ..models.errors import InputError

ARCHIVE_SUFFIXES = (".tar.xz", ".tar.gz", ".zip")
"""The archives that a `Source` opens."""

# RuntimeError and NotImplementedError are what zipfile raises for encrypted members and unknown compression.
_BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    lzma.LZMAError,
    zlib.error,
    EOFError,
    OSError,
    RuntimeError,
    NotImplementedError,
)
_CHUNK = 1 << 20


class Source:
    """The files of one corpus, wherever they lie.

    Args:
        path: A folder, or an archive that ends in one of `ARCHIVE_SUFFIXES`.

    Raises:
        InputError: There is no such folder or archive.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.exists():
            raise InputError(f"{self.path}: no such folder or archive; check the path that you gave for the corpus")
        if not self.path.is_dir() and not is_archive(self.path):
            raise InputError(f"{self.path}: expected a folder or an archive that ends in {', '.join(ARCHIVE_SUFFIXES)}")
        self._tar_names: list[str] | None = None

    def files(self, pattern: str) -> Iterator[tuple[str, BinaryIO]]:
        """Opens the files whose path ends as the pattern says.

        Args:
            pattern: A glob for the end of the path, such as ``"train/dialogues_*.json"``; ``*`` stops at a slash.

        Yields:
            A name for error messages (the folder or archive, and the file in it) and the open file, sorted by path: a
            folder and an archive of it give the same order. A stream is good until the next one is asked for.

        Raises:
            InputError: A file cannot be read, or the archive is damaged.
        """
        if self.path.is_dir():
            yield from self._folder_files(pattern)
            return
        reached = ""
        stream = self._zip_files(pattern) if self.path.name.endswith(".zip") else self._tar_files(pattern)
        while True:
            try:
                member, content = next(stream)
            except StopIteration:
                return
            except _BROKEN as error:
                where = f"after {reached}" if reached else "before its first wanted file"
                raise InputError(
                    f"{self.path}: the archive cannot be read {where} ({error}); it is damaged or incomplete: "
                    "get it again"
                ) from None
            reached = member
            yield f"{self.path}:{member}", io.BytesIO(content)

    def _folder_files(self, pattern: str) -> Iterator[tuple[str, BinaryIO]]:
        found = {path.relative_to(self.path).as_posix(): path for path in self.path.rglob("*") if path.is_file()}
        for name in sorted(name for name in found if _matches(name, pattern)):
            try:
                stream = found[name].open("rb")
            except OSError as error:
                raise InputError(f"{found[name]}: cannot be read ({error.strerror}); check its permissions") from None
            with stream:
                yield found[name].as_posix(), stream

    def _zip_files(self, pattern: str) -> Iterator[tuple[str, bytes]]:
        with zipfile.ZipFile(self.path) as archive:
            members = {_normal(member.filename): member for member in archive.infolist() if not member.is_dir()}
            for name in sorted(name for name in members if _matches(name, pattern)):
                yield name, archive.read(members[name])

    def _tar_files(self, pattern: str) -> Iterator[tuple[str, bytes]]:
        names = self._list_tar()
        # A name that occurs twice means its last occurrence, as it would after unpacking.
        last = {name: index for index, name in enumerate(names) if _matches(name, pattern)}
        order = sorted(last, reverse=True)
        early: dict[str, bytes] = {}  # members that come before their turn; stays at one when the archive is sorted
        with tarfile.open(self.path, "r:*") as archive:
            for index, member in enumerate(archive):
                if not order:
                    return
                name = _normal(member.name)
                if last.get(name) != index:
                    continue
                stream = archive.extractfile(member)
                early[name] = stream.read() if stream else b""
                while order and order[-1] in early:
                    yield order[-1], early.pop(order.pop())

    def _list_tar(self) -> list[str]:
        """Lists the members once: a tar has no index, and no order can be promised before all names are known."""
        if self._tar_names is None:
            with tarfile.open(self.path, "r:*") as archive:
                # What is no regular file gets a name that no pattern matches, to keep the positions.
                listed = [_normal(member.name) if member.isreg() else "" for member in archive]
                # tarfile stops silently at a broken header; reading on makes the compression's own checks speak.
                while archive.fileobj and archive.fileobj.read(_CHUNK):
                    pass
            self._tar_names = listed
        return self._tar_names


def is_archive(path: Path) -> bool:
    """Says whether a path is a file that a `Source` can open.

    Args:
        path: The path.

    Returns:
        Whether the file exists and its name ends as an archive's.
    """
    return path.name.endswith(ARCHIVE_SUFFIXES) and path.is_file()


def read_json(name: str, stream: BinaryIO) -> Any:  # noqa: ANN401 - whatever the file holds
    """Parses a whole JSON file.

    Args:
        name: The file's name for error messages.
        stream: The open file.

    Returns:
        The parsed value.

    Raises:
        InputError: The file is not UTF-8 or not JSON.
    """
    return parse_json(name, stream.read(), "the file is damaged or incomplete: get it again")


def parse_json(name: str, content: bytes, remedy: str) -> Any:  # noqa: ANN401
    """Parses JSON text.

    Args:
        name: Where the text comes from; empty if the caller adds that.
        content: The text, encoded as UTF-8 with or without a byte order mark.
        remedy: What the user can do when the text is broken.

    Returns:
        The parsed value.

    Raises:
        InputError: The text is not UTF-8 or not JSON.
    """
    start = f"{name}: " if name else ""
    try:
        return json.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError(f"{start}broken UTF-8 at byte {error.start}; {remedy}") from None
    except json.JSONDecodeError as error:
        line = f"line {error.lineno} " if error.lineno > 1 else ""
        raise InputError(f"{start}broken JSON at {line}column {error.colno} ({error.msg}); {remedy}") from None
    except (ValueError, RecursionError) as error:  # numbers of thousands of digits, thousands of brackets
        raise InputError(f"{start}JSON that cannot be parsed ({error}); {remedy}") from None


def _normal(name: str) -> str:
    return PurePosixPath(name).as_posix()


def _matches(name: str, pattern: str) -> bool:
    path = PurePosixPath(name)
    # Hidden files are what systems leave behind, such as the "._name" twins in archives made on a Mac.
    return path.match(pattern) and not any(part.startswith(".") for part in path.parts)
