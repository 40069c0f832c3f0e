"""Your own transcripts: a text file per dialogue, with lines ``SPEAKER: text``."""

import codecs
import io
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..source import decompressed, files_within
from .findings import Draft, Notes, Problem, message_of

# With the blank after the colon, neither 10:30 nor https://... begins a turn.
_TURN = re.compile(r"(?P<speaker>[^\s:][^:]{0,39}):(?:\s+(?P<content>.*))?", re.DOTALL)
_DAY = r"(\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4})"
_CLOCK = rf"({_DAY}(, ?|[ T]))?\d{{1,2}}:\d\d(:\d\d)?([.,]\d+)?(\s?[AaPp]\.?[Mm]\.?)?Z?"
_SPOKEN = r"(?=[^\s:][^:]{0,39}:(\s|$))"
_TIME = re.compile(rf"(\[{_CLOCK}\]|\({_CLOCK}\)|{_CLOCK}( -)?)\s+{_SPOKEN}")
# A messenger's notice between the turns, such as that somebody came: a day and a time, but no speaker.
_NOTICE = re.compile(rf"(\[{_DAY}, ?{_CLOCK}\]|{_DAY}, ?{_CLOCK} -)\s+.*")
_MARKS = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"  # directions of writing
# A messenger's text in place of a picture, a file or a deleted message.
_UNSAID = re.compile(
    r"<[^<>]* omitted>|<attached: [^<>]*>|.* \(file attached\)|(this message was deleted|you deleted this message)\.?"
    r"|(image|video|audio|gif|sticker|contact card|(.* • .*)?document) omitted",
    re.IGNORECASE,
)
_NO_ASCII = re.compile(rb"[^\s,;\"]{0,20}[\x80-\xff][^\s,;\"]{0,20}")
_HALVES = re.compile("[\ud800-\udfff]")


def transcripts(path: Path, notes: Notes) -> Iterator[Draft]:
    """Read a transcript or those of a folder, sorted by name, the files of a folder before its folders.

    A line that begins with a speaker (at most 40 characters), a colon and a blank begins a turn; a time before the
    speaker, such as ``[00:07]``, is left out, and the first with a day says when the dialogue began. Any other line
    goes on with the turn before it, joined by a space. A warning names who speaks once beside two or more others: it
    may be the beginning of a sentence.
    """
    if not path.is_dir():
        yield _transcript(path, path.stem, (), notes)
        return
    for file in files_within(path):
        if file.suffix.lower() == ".txt":
            inner = file.relative_to(path)
            yield _transcript(file, inner.with_suffix("").as_posix(), tuple(filter(None, [inner.parent.name])), notes)


@contextmanager
def text_of(path: Path, notes: Notes) -> Iterator[io.TextIOWrapper]:
    """Open a text file, packed or not: UTF-16 with a mark, else UTF-8, else Windows-1252.

    Bytes that are neither can be reported with their line; see `is_text`.
    """
    encoding, word = _encoding_of(path)
    if encoding != "utf-8-sig":
        remedy = f'; if its letters look wrong, as in "{word}", save it as UTF-8' if word else ""
        notes.add(f"read as {encoding}, since it is not UTF-8{remedy}", str(path))
    with decompressed(path) as stream:
        errors = "replace" if encoding == "utf-16" else "surrogateescape"
        yield io.TextIOWrapper(stream, encoding, errors=errors, newline="")


def is_text(text: str) -> bool:
    """Return whether a string was valid in its file: other bytes are half characters now."""
    return _HALVES.search(text) is None


def _encoding_of(path: Path) -> tuple[str, str]:
    """Guess the encoding, and return a word that shows whether the guess is right."""
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    word = ""
    with decompressed(path) as stream:
        if stream.peek(2)[:2] in (b"\xff\xfe", b"\xfe\xff"):
            return "utf-16", ""
        while block := stream.read(1 << 20):
            if not _HALVES.sub("", decoder.decode(block)).isascii():
                return "utf-8-sig", ""  # some of it is UTF-8, so that the rest is damaged
            if not word and (match := _NO_ASCII.search(block)):
                word = match[0].decode("cp1252", "replace")
    return ("cp1252", word) if word else ("utf-8-sig", "")


def _transcript(path: Path, identifier: str, domains: tuple[str, ...], notes: Notes) -> Draft:
    place = f"{path}:1"
    try:
        with text_of(path, notes) as text:
            turns, problems = _turns(path, text, notes)
    except InputError as error:
        return Draft(place, "", (), problems=(Problem(place, str(error).removeprefix(f"{path}: ")),))
    if not is_text(identifier):
        problems.append(Problem(place, "got a file name that is not UTF-8, expected text; rename the file"))
    if not turns and not problems:
        problems.append(Problem(place, "got no turn, expected at least one; remove the dialogue or add its turns"))
    spoken = []
    for turn in turns:
        if _UNSAID.fullmatch(turn["content"]):
            notes.add("left out what was sent without words, or deleted", turn["place"])
        else:
            spoken.append(turn)
    speakers = Counter(turn["role"] for turn in spoken if turn["content"])
    for turn in spoken:
        if len(speakers) > 2 and speakers[turn["role"]] == 1 and turn["content"]:
            doubt = (
                f"got a turn of {turn['role']!r}, who speaks once beside {len(speakers) - 1} others; if that is no "
                "speaker, put the line behind the one before it"
            )
            notes.put(Problem(turn["place"], doubt, "warning"))
    return Draft(place, identifier, spoken, domains, tuple(problems))


def _turns(path: Path, text: Iterator[str], notes: Notes) -> tuple[list[dict[str, Any]], list[Problem]]:
    turns: list[tuple[str, str, str, list[str]]] = []
    problems: list[Problem] = []
    for number, whole in enumerate(text, start=1):
        place, line, stamp = f"{path}:{number}", whole.strip().lstrip(_MARKS), ""
        if time := _TIME.match(line):
            line = line[time.end() :].lstrip(_MARKS)
            stamp = " ".join(time[0].strip("[( )]-").split())
        if not is_text(line):
            problems.append(Problem(place, "got bytes that are not UTF-8, expected text; save the file as UTF-8"))
        elif turn := _TURN.fullmatch(line):
            speaker = turn["speaker"].strip(f" {_MARKS}")
            turns.append((place, stamp, speaker, [(turn["content"] or "").lstrip(_MARKS)]))
        elif _NOTICE.fullmatch(line):
            notes.add("left out a line with a time but no speaker", place)
        elif line and turns:
            turns[-1][-1].append(line)
        elif line and not problems:
            problems.append(
                Problem(place, f"got {line[:60]!r} before any speaker, expected 'SPEAKER: text'; add who says it")
            )
    messages = [
        message_of(place, speaker, " ".join(parts).strip()) | {"time": stamp} for place, stamp, speaker, parts in turns
    ]
    return messages, problems
