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
_WIDE = ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")  # without such a mark
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
    "iso2022_jp",
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
# such escapes begin the letters of a Japanese encoding of 7 bits
_FOREIGN = re.compile(rb"[\x80-\xff]|\x1b[$(]")
_BETWEEN_WORDS = re.compile(r"[\s,;\"]+")
_HALVES = re.compile("[\ud800-\udfff]")


@contextmanager
def text_of(path: Path, notes: Notes) -> Iterator[io.TextIOWrapper]:
    """Open a text file, packed or not.

    UTF-8, UTF-16 or UTF-32, else in the encoding that fits its letters best.

    Bytes that the encoding does not have can be reported with their line; see `is_text`.
    """
    encoding, word, other = _encoding_of(path)
    remedy = f'; if its letters look wrong, as in "{word}", save it as UTF-8' if word else ""
    if other:
        notes.guess(f"read as {encoding}, though {other} fits too{remedy}", str(path))
    elif encoding != "utf-8-sig":
        notes.add(f"read as {encoding}, since it is not UTF-8{remedy}", str(path))
    with decompressed(path) as stream:
        errors = "replace" if encoding.startswith(("utf-16", "utf-32")) else "surrogateescape"
        yield io.TextIOWrapper(stream, encoding, errors=errors, newline="")


def is_text(text: str) -> bool:
    """Return whether a string was valid in its file: other bytes are half characters now."""
    return text.isascii() or _HALVES.search(text) is None


def _encoding_of(path: Path) -> tuple[str, str, str]:
    """Return the encoding, a word that shows whether it is right, and another encoding that fits."""
    valid = broken = 0
    sample = b""  # the lines that tell encodings apart
    with decompressed(path) as stream:
        start = stream.peek(_BLOCK)[:_BLOCK]
        if marked := next((name for mark, name in _MARKS if start.startswith(mark)), ""):
            return marked, "", ""
        if start.count(0) * 64 > len(start):
            readings = {start.decode(name, "replace"): name for name in _WIDE}
            plainest = max(
                readings, key=lambda text: len(re.findall("[ -~\n]", text)) - text.count("\0")
            )
            return readings[plainest], "", ""
        while block := stream.read(_BLOCK) + stream.readline():
            if _FOREIGN.search(block):
                foreign = b"".join(filter(_FOREIGN.search, block.splitlines(keepends=True)))
                halves = len(_HALVES.findall(foreign.decode("utf-8", "surrogateescape")))
                valid, broken = valid + len(_HIGH.findall(foreign)) - halves, broken + halves
                sample += foreign[: _LARGEST_SAMPLE - len(sample)]
                if valid > 4 * broken:
                    break  # the rest is damaged, if it is not UTF-8
    is_utf8 = valid >= broken and (valid or b"\x1b" not in sample)
    return ("utf-8-sig", "", "") if is_utf8 else _best_of(sample)


def _best_of(sample: bytes) -> tuple[str, str, str]:
    from charset_normalizer import from_bytes

    matches = list(from_bytes(sample, cp_isolation=_OTHERS))
    if not matches:
        return ("utf-8-sig", "", "") if sample.isascii() else ("cp1252", "", "none")
    best = matches[0]
    for match in matches:  # Western Europe is as good as its neighbours, if nothing is better
        if "cp1252" in match.could_be_from_charset and match.chaos <= best.chaos + _CLOSE / 10:
            best = match if match.coherence >= best.coherence - _CLOSE / 2 else best
    encoding = "cp1252" if "cp1252" in best.could_be_from_charset else best.encoding
    words = _BETWEEN_WORDS.split(str(best))
    for other in matches:
        pairs = zip(words, _BETWEEN_WORDS.split(str(other)), strict=False)
        word, read = next(((word, read) for word, read in pairs if word != read), ("", "\0"))
        close = other.chaos <= best.chaos + _CLOSE and other.coherence >= 0.6 * best.coherence
        if close and read.isprintable():
            return encoding, word[:20], f'{other.encoding} ("{read[:20]}")'
    return encoding, next(word[:20] for word in words if not word.isascii()), ""
