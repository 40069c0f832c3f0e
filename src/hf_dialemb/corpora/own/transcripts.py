"""Your own transcripts: a text file per dialogue, with lines ``SPEAKER: what is said``."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ...models.errors import InputError
from ..source.files import files_within
from ..source.streams import decompressed
from .findings import Finding, Line, Problem, at_least_one, distinct, from_lines, is_text, text_of
from .roles import RoleMap

logger = logging.getLogger(__name__)

ENDING = ".txt"
"""How the names of transcripts end."""

_OTHERS = (".jsonl", ".csv", ".tsv", ".parquet", ".gz")  # conversations as well, perhaps, but not of this form

# With the blank after the colon, neither 10:30 nor https://... begins a turn.
_TURN = re.compile(r"(?P<speaker>[^\s:][^:]{0,39}):(?:\s+(?P<content>.*))?", re.DOTALL)
_CLOCK = r"(\d{4}-\d\d-\d\d[ T])?\d{1,2}:\d\d(:\d\d)?([.,]\d+)?Z?"
_TIME = re.compile(rf"(\[{_CLOCK}\]|\({_CLOCK}\)|{_CLOCK})[ \t]+(?=[^\s:][^:]{{0,39}}:(\s|$))")


def find_in_transcripts(path: Path, roles: RoleMap) -> Iterator[Finding]:
    """Reads transcripts, malformed ones too.

    A line that begins with a speaker (at most 40 characters), a colon and a blank begins a turn; a time before the
    speaker, such as ``[00:07]``, is left out. Any other line goes on with the turn before it, joined by a space. Blank
    lines are passed over, and so are hidden files and folders. Who speaks once beside two or more others may be no
    speaker but the beginning of a sentence: that is a warning.

    Yields what each file holds, sorted by name, and the files of a folder before its folders.
    """
    findings = distinct(_find(path, roles))
    if not path.is_dir():
        yield from findings
    else:
        yield from at_least_one(findings, path, f"{ENDING} files; a file of another form is to be given by itself")


def _find(path: Path, roles: RoleMap) -> Iterator[Finding]:
    if not path.is_dir():
        yield _transcript(path, path.stem, (), roles)
        return
    for file in _files(path):
        inner = file.relative_to(path)
        domains = (inner.parent.name,) if inner.parent.name else ()
        yield _transcript(file, inner.with_suffix("").as_posix(), domains, roles)


def _files(folder: Path) -> Iterator[Path]:
    others: list[str] = []
    for file in files_within(folder):
        if file.name.lower().endswith(ENDING):
            yield file
        elif file.name.lower().endswith(_OTHERS):
            others.append(file.relative_to(folder).as_posix())
    if others:
        logger.warning(
            "%s: passed over %d files that are no %s files, such as %s; give each by itself",
            folder, len(others), ENDING, others[0],
        )  # fmt: skip


def _transcript(path: Path, identifier: str, domains: tuple[str, ...], roles: RoleMap) -> Finding:
    place = f"{path}:1"
    try:
        with decompressed(path) as stream, text_of(stream, path) as text:
            turns, problems = _turns(path, text)
    except InputError as error:
        return Finding(place, problems=(Problem(place, str(error).removeprefix(f"{path}: ")),))
    if not is_text(identifier):
        problems.append(Problem(place, "got a file name that is not UTF-8, expected text; rename the file"))
    for turn in turns:
        if not turn.content:
            problems.append(Problem(turn.place, f"got no text after {turn.speaker!r}; add what was said or remove it"))
    finding = from_lines(place, identifier, domains, turns, roles, problems)
    return finding if finding.problems else replace(finding, doubts=_doubts(turns))


def _doubts(turns: list[Line]) -> tuple[Problem, ...]:
    """Warns of speakers that may be none."""
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


def _turns(path: Path, text: Iterator[str]) -> tuple[list[Line], list[Problem]]:
    turns: list[tuple[str, str, list[str]]] = []
    problems: list[Problem] = []
    for number, line in enumerate(text, start=1):
        place, said = f"{path}:{number}", line.strip()
        said = said[time.end() :] if (time := _TIME.match(said)) else said
        if not is_text(said):
            problems.append(Problem(place, "got bytes that are not UTF-8, expected text; save the file as UTF-8"))
        elif turn := _TURN.fullmatch(said):
            turns.append((place, turn["speaker"].strip(), [turn["content"] or ""]))
        elif said and turns:
            turns[-1][2].append(said)
        elif said and not problems:
            problems.append(
                Problem(place, f"got {said[:60]!r} before any speaker, expected 'SPEAKER: text'; add who says it")
            )
    return [Line(place, speaker, " ".join(parts).strip()) for place, speaker, parts in turns], problems
