"""The encodings of text files: UTF-8 as it should be.

Any other is found out over the whole file, and told.
"""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...data.source import decompressed
from .findings import Notes

_MARKS = (  # the first begins as UTF-16 does
    (b"\xff\xfe\0\0", "utf_32"),
    (b"\0\0\xfe\xff", "utf_32"),
    (b"\xff\xfe", "utf_16"),
    (b"\xfe\xff", "utf_16"),
)
_OTHERS = [  # none of these is a guess of every text
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258"),
    *("cp874", "cp932", "euc_jp", "gb18030", "big5", "cp949", "koi8_r", "cp850", "cp852", "cp866"),
    *("mac_roman", "iso8859_2", "iso8859_5", "iso8859_7", "iso8859_15"),
]
NOT_TEXT = "got bytes that are not UTF-8, expected text; save the file as UTF-8"
_LARGEST_SAMPLE = 1 << 20  # bytes
_BLOCK = 1 << 16  # bytes
_HIGH = re.compile(rb"[\x80-\xff]")
_HALVES = re.compile("[\ud800-\udfff]")


@contextmanager
def text_of(path: Path, encoding: str) -> Iterator[io.TextIOWrapper]:
    """Open a text file, packed or not; bytes that its encoding does not have are no `is_text`."""
    errors = "replace" if encoding.startswith(("utf_16", "utf_32")) else "surrogateescape"
    with decompressed(path) as stream:
        yield io.TextIOWrapper(stream, encoding, errors=errors, newline="")


def is_text(text: str) -> bool:
    """Return whether a string was valid in its file: other bytes are half characters now."""
    return text.isascii() or _HALVES.search(text) is None


def encoding_of(path: Path, notes: Notes) -> str:
    """Return the encoding of a text file, and note any but UTF-8; a guess where no mark tells."""
    with decompressed(path) as stream:
        start = stream.peek(_BLOCK)[:_BLOCK]
    wide = next((name for mark, name in _MARKS if start.startswith(mark)), "")
    if not wide and start.count(0) * 64 > len(start):
        wide = "utf_16_le" if start[1::2].count(0) > start[::2].count(0) else "utf_16_be"
    if wide:
        notes.add(f"read as {wide}, since it is not UTF-8", str(path))
        return wide
    sample = _foreign_lines(path)
    return _best_of(sample, path, notes) if sample else "utf-8-sig"


def _foreign_lines(path: Path) -> bytes:
    """Return the lines that tell encodings apart; none if the file is UTF-8, or damaged UTF-8."""
    valid = broken = 0
    sample = b""
    with decompressed(path) as stream:
        while block := stream.read(_BLOCK) + stream.readline():
            if not block.isascii():
                halves = len(_HALVES.findall(block.decode("utf-8", "surrogateescape")))
                valid += len(_HIGH.findall(block)) - halves
                broken += halves
                foreign = b"".join(filter(_HIGH.search, block.splitlines(keepends=True)))
                sample += foreign[: _LARGEST_SAMPLE - len(sample)]
    return sample if broken > valid else b""


def _best_of(sample: bytes, path: Path, notes: Notes) -> str:
    """Return the encoding that fits best; Western Europe's if none is better."""
    from charset_normalizer import from_bytes

    matches = list(from_bytes(sample, cp_isolation=_OTHERS))
    western = [match for match in matches if "cp1252" in match.could_be_from_charset]
    best = min(
        [*western[:1], *matches[:1]],
        key=lambda match: (round(match.chaos, 2), -round(match.coherence, 1)),
        default=None,
    )
    encoding = "cp1252" if best is None or best in western else str(best.encoding)
    text = sample.decode(encoding, "replace")
    word = next((word for word in re.split(r'[\s,;"]+', text) if not word.isascii()), text)
    notes.add(
        f"read as {encoding}, as it is not UTF-8; if its letters look wrong, as in "
        f'"{word[:20]}", save it as UTF-8',
        str(path),
        "guess",
    )
    return encoding
