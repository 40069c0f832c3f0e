"""Your own transcripts: a text file per dialogue, with lines ``SPEAKER: what is said``."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from ...errors import InputError
from ..source.files import files_within
from .findings import Draft, Finding, Line, Notes, Problem, began, distinct, from_drafts, is_text, text_of
from .roles import RoleMap

ENDING = ".txt"  # how the names of transcripts end

# With the blank after the colon, neither 10:30 nor https://... begins a turn.
_TURN = re.compile(r"(?P<speaker>[^\s:][^:]{0,39}):(?:\s+(?P<content>.*))?", re.DOTALL)
_DAY = r"(\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4})"
_CLOCK = rf"({_DAY}(, ?|[ T]))?\d{{1,2}}:\d\d(:\d\d)?([.,]\d+)?(\s?[AaPp]\.?[Mm]\.?)?Z?"
_SPOKEN = r"(?=[^\s:][^:]{0,39}:(\s|$))"
_TIME = re.compile(rf"(\[{_CLOCK}\]|\({_CLOCK}\)|{_CLOCK}( -)?)\s+{_SPOKEN}")
# What a messenger says between the turns, such as that somebody came: a day and a time, but no speaker.
_NOTICE = re.compile(rf"(\[{_DAY}, ?{_CLOCK}\]|{_DAY}, ?{_CLOCK} -)\s+.*")
_MARKS = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"  # which way to write
# What a messenger writes in place of a picture, a file or what was deleted.
_UNSAID = re.compile(
    r"<[^<>]* omitted>|<attached: [^<>]*>|.* \(file attached\)|(this message was deleted|you deleted this message)\.?"
    r"|(image|video|audio|gif|sticker|contact card|(.* • .*)?document) omitted",
    re.IGNORECASE,
)


def find_in_transcripts(path: Path, roles: RoleMap, notes: Notes) -> Iterator[Finding]:
    """Reads transcripts, malformed ones too.

    A line that begins with a speaker (at most 40 characters), a colon and a blank begins a turn; a time before the
    speaker, such as ``[00:07]``, is left out, and the first with a day says when the dialogue began. Any other line
    goes on with the turn before it, joined by a space. Blank lines are passed over, and so are hidden files and
    folders. Who speaks once beside two or more others may be no speaker but the beginning of a sentence: that is a
    warning.

    Yields what each file holds, sorted by name, and the files of a folder before its folders.
    """
    yield from distinct(from_drafts(partial(_drafts, path), roles, notes))


def _drafts(path: Path, notes: Notes) -> Iterator[Draft]:
    if not path.is_dir():
        yield _transcript(path, path.stem, (), notes)
        return
    for file in files_within(path):
        if not file.name.lower().endswith(ENDING):
            continue
        inner = file.relative_to(path)
        domains = (inner.parent.name,) if inner.parent.name else ()
        yield _transcript(file, inner.with_suffix("").as_posix(), domains, notes)


def _transcript(path: Path, identifier: str, domains: tuple[str, ...], notes: Notes) -> Draft:
    place = f"{path}:1"
    try:
        with text_of(path, notes) as text:
            turns, problems, time = _turns(path, text, notes)
    except InputError as error:
        return Draft(place, "", (), problems=(Problem(place, str(error).removeprefix(f"{path}: ")),))
    if not is_text(identifier):
        problems.append(Problem(place, "got a file name that is not UTF-8, expected text; rename the file"))
    said = []
    for turn in turns:
        if not turn.content:
            notes.add("left out a turn without text", turn.place)
        elif _UNSAID.fullmatch(turn.content):
            notes.add("left out what was sent without words, or deleted", turn.place)
        else:
            said.append(turn)
    return Draft(place, identifier, said, domains, tuple(problems), _doubts(said), time)


def _began(stamps: list[str]) -> str:
    """Reads when a dialogue began; a day is before its month, unless numbers over 12 or AM and PM deny it."""
    if not stamps:
        return ""
    numbers = [re.findall(r"\d+", stamp) for stamp in stamps]
    us = any(int(two) > 12 for _, two, *_ in numbers) or re.search("[AP]M", stamps[0]) is not None
    return began(stamps[0].replace(",", ""), day_first=not us or any(int(one) > 12 for one, *_ in numbers))


def _doubts(turns: list[Line]) -> tuple[Problem, ...]:
    counts = Counter(turn.speaker for turn in turns)
    return tuple(
        Problem(
            turn.place,
            f"got a turn of {turn.speaker!r}, who speaks once beside {len(counts) - 1} others; if that is no speaker, "
            "put the line behind the one before it",
            "warning",
        )
        for turn in turns
        if len(counts) > 2 and counts[turn.speaker] == 1
    )


def _turns(path: Path, text: Iterator[str], notes: Notes) -> tuple[list[Line], list[Problem], str]:
    turns: list[tuple[str, str, list[str]]] = []
    problems: list[Problem] = []
    stamps = []
    for number, line in enumerate(text, start=1):
        place, said = f"{path}:{number}", line.strip().lstrip(_MARKS)
        if time := _TIME.match(said):
            said = said[time.end() :].lstrip(_MARKS)
            stamps += [" ".join(time[0].strip("[( )]-").split())] if re.search(_DAY, time[0]) else []
        if not is_text(said):
            problems.append(Problem(place, "got bytes that are not UTF-8, expected text; save the file as UTF-8"))
        elif turn := _TURN.fullmatch(said):
            turns.append((place, turn["speaker"].strip(f" {_MARKS}"), [(turn["content"] or "").lstrip(_MARKS)]))
        elif _NOTICE.fullmatch(said):
            notes.add("left out a line with a time but no speaker", place)
        elif said and turns:
            turns[-1][2].append(said)
        elif said and not problems:
            problems.append(
                Problem(place, f"got {said[:60]!r} before any speaker, expected 'SPEAKER: text'; add who says it")
            )
    lines = [Line(place, speaker, " ".join(parts).strip()) for place, speaker, parts in turns]
    return lines, problems, _began(stamps)
