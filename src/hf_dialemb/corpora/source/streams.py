"""Streams over files that may be damaged or hostile: failures are `InputError`s, and nothing unpacks without end."""

import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import IO

from ...errors import InputError

BROKEN = (tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error, EOFError, OSError, RuntimeError)
"""What the standard library raises while it reads a damaged archive; the last for encrypted members."""

LARGEST_RATIO = 500  # how many bytes one byte of an archive may become; the most that a real corpus reaches is about 50
_FREE = 1 << 28  # archives of a few bytes may well hold more than their ratio
_BUFFER = 1 << 18


class Allowance:
    """Counts the bytes that come out of one archive, and refuses what no corpus holds."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.left = _FREE + LARGEST_RATIO * path.stat().st_size

    def take(self, count: int) -> None:
        """Takes note of bytes that were read."""
        self.left -= count
        if self.left < 0:
            raise InputError(
                f"{self.path}: unpacks to more than {LARGEST_RATIO} times its size, as no corpus does; "
                "it is damaged or made to fill the disk: get it again from a source that you trust"
            )


class _GuardedStream(io.RawIOBase):
    def __init__(self, stream: IO[bytes] | io.BufferedIOBase, name: str, allowance: Allowance | None = None) -> None:
        super().__init__()
        self.name, self._stream, self._allowance = name, stream, allowance

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            content = self._stream.read(len(buffer))
        except BROKEN as error:
            raise damaged(self.name, error) from None
        if self._allowance:
            self._allowance.take(len(content))
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


def guarded(stream: IO[bytes] | io.BufferedIOBase, name: str, allowance: Allowance | None = None) -> io.BufferedReader:
    """Counts the bytes of a stream, and turns what goes wrong into an `InputError` that names it."""
    return io.BufferedReader(_GuardedStream(stream, name, allowance), _BUFFER)


def damaged(name: str, error: Exception) -> InputError:
    """Makes the error for an archive or a compressed file that cannot be read."""
    return InputError(f"{name}: cannot be read ({error}); it is damaged or incomplete: get it again")


def decompressed(path: Path) -> io.BufferedReader:
    """Opens a file; one that ends in ``.gz`` or ``.xz`` is unpacked while it is read."""
    try:
        if path.name.endswith(".gz"):
            return guarded(gzip.open(path), str(path), Allowance(path))
        if path.name.endswith(".xz"):
            return guarded(lzma.open(path), str(path), Allowance(path))
        return path.open("rb")
    except OSError as error:
        remedy = "check its name" if isinstance(error, FileNotFoundError) else "check its permissions"
        raise InputError(f"{path}: cannot be read ({error.strerror or error}); {remedy}") from None
