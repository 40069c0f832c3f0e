"""The encodings of text files: UTF-8 as it should be.

Any other is found out over the whole file, and told.
"""

import codecs
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...data.source import decompressed
from .findings import Notes

_MARKS = (
    # the first begins as UTF-16 does
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)
_OTHERS = [
    "cp1252",
    "cp1250",
    "cp1251",
    "cp1253",
    "cp1254",
    "cp1255",
    "cp1256",
    "cp1257",
    "cp1258",
    "cp874",
    "cp932",
    "euc_jp",
    "gb18030",
    "big5",
    "cp949",
    "koi8_r",
    "cp850",
    "cp852",
    "cp866",
    "mac_roman",
    "iso8859_2",
    "iso8859_5",
    "iso8859_7",
    "iso8859_15",
]
_CLOSE = 0.05  # between the scores of encodings that both fit
_LARGEST_SAMPLE, _BLOCK = 1 << 20, 1 << 16  # bytes
_HIGH = re.compile(rb"[\x80-\xff]")
_BETWEEN_WORDS = re.compile(r"[\s,;\"]+")
_HALVES = re.compile("[\ud800-\udfff]")


@contextmanager
def text_of(path: Path, notes: Notes) -> Iterator[io.TextIOWrapper]:
    """Open a text file, packed or not.

    UTF-8, UTF-16 or UTF-32, else in the encoding that fits its letters best. Bytes that the
    encoding does not have can be reported with their line; see `is_text`.
    """
    with text_in(path, encoding_of(path, notes)) as text:
        yield text


@contextmanager
def text_in(path: Path, encoding: str) -> Iterator[io.TextIOWrapper]:
    """Open a text file of a known encoding."""
    errors = "replace" if encoding.startswith(("utf-16", "utf-32")) else "surrogateescape"
    with decompressed(path) as stream:
        yield io.TextIOWrapper(stream, encoding, errors=errors, newline="")


def is_text(text: str) -> bool:
    """Return whether a string was valid in its file: other bytes are half characters now."""
    return text.isascii() or _HALVES.search(text) is None


def encoding_of(path: Path, notes: Notes) -> str:
    """Return the encoding of a text file, and note any but UTF-8."""
    with decompressed(path) as stream:
        start = stream.peek(_BLOCK)[:_BLOCK]
    encoding = next((name for mark, name in _MARKS if start.startswith(mark)), "")
    if not encoding and start.count(0) * 64 > len(start):
        is_little = start[1::2].count(0) > start[::2].count(0)
        encoding = "utf-16-le" if is_little else "utf-16-be"
    if not encoding:
        sample = _foreign_lines(path)
        return _best_of(sample, path, notes) if sample else "utf-8-sig"
    if encoding != "utf-8-sig":
        notes.add(f"read as {encoding}, since it is not UTF-8", str(path))
    return encoding


def _foreign_lines(path: Path) -> bytes:
    """Return the lines that tell encodings apart; none if the file is UTF-8, or damaged UTF-8."""
    valid = broken = 0
    sample = b""
    with decompressed(path) as stream:
        while block := stream.read(_BLOCK) + stream.readline():
            foreign = b"".join(filter(_HIGH.search, block.splitlines(keepends=True)))
            halves = len(_HALVES.findall(foreign.decode("utf-8", "surrogateescape")))
            valid += len(_HIGH.findall(foreign)) - halves
            broken += halves
            sample += foreign[: _LARGEST_SAMPLE - len(sample)]
    return sample if broken > valid else b""


def _best_of(sample: bytes, path: Path, notes: Notes) -> str:
    """Return the encoding that fits best, and note it; a guess where another fits too."""
    from charset_normalizer import from_bytes

    matches = list(from_bytes(sample, cp_isolation=_OTHERS))
    # Western Europe is as good as its neighbours, if nothing is better
    western = [match for match in matches if "cp1252" in match.could_be_from_charset]
    best = min(
        [*western[:1], *matches[:1]],
        key=lambda match: (round(match.chaos, 2), -round(match.coherence, 1)),
        default=None,
    )
    if best is None:
        notes.add(
            "read as cp1252, though it fits no encoding; save it as UTF-8", str(path), "guess"
        )
        return "cp1252"
    encoding = "cp1252" if best in western else str(best.encoding)
    text = str(best)
    word = next((word for word in _BETWEEN_WORDS.split(text) if not word.isascii()), text)
    remedy = f'if its letters look wrong, as in "{word[:20]}", save it as UTF-8'
    others = [
        match.encoding
        for match in matches
        if str(match) != text
        and match.chaos <= best.chaos + _CLOSE
        and match.coherence >= 0.6 * best.coherence
    ]
    if others:
        notes.add(f"read as {encoding}, though {others[0]} fits too; {remedy}", str(path), "guess")
    else:
        notes.add(f"read as {encoding}, since it is not UTF-8; {remedy}", str(path))
    return encoding
