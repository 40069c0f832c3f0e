"""Findings: what was found in your own files, good or bad, so that reading and checking agree on what is malformed."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...models.dialogue import Dialogue, Turn
from ...models.errors import InputError
from ..records import convert_records
from .roles import RoleMap, TooManySpeakersError

logger = logging.getLogger(__name__)

_LONGEST_MESSAGE = 600


@dataclass(frozen=True)
class Problem:
    """Something wrong, or only suspicious, in a user's data.

    Attributes:
        place: Where, such as ``"calls.csv:12"``.
        message: What came, what was expected and what to do; always printable, and shortened if it quotes too much.
        severity: ``"error"`` for what cannot be read, ``"warning"`` for what can.
    """

    place: str
    message: str
    severity: str = "error"

    def __post_init__(self) -> None:
        half, message = _LONGEST_MESSAGE // 2, self.message
        if len(message) > _LONGEST_MESSAGE:
            message = f"{message[:half]} ... {message[-half:]}"
        for name, text in (("place", self.place), ("message", message)):
            object.__setattr__(self, name, text.encode("utf-8", "backslashreplace").decode())

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


@dataclass(frozen=True)
class Finding:
    """One dialogue as it was found.

    Attributes:
        place: Where it begins.
        dialogue: The dialogue (in a registered corpus, whatever its records are); None if there are problems.
        id: Its id as far as it is known.
        problems: All that is wrong with it.
        doubts: What can be read but may be a mistake.
    """

    place: str
    dialogue: Any = None
    id: str = ""
    problems: tuple[Problem, ...] = ()
    doubts: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class Line:
    """What a speaker says in a file that names its speakers freely.

    Attributes:
        place: Where it stands.
        speaker: Who says it.
        content: What is said.
        dialogue_acts: What it does.
    """

    place: str
    speaker: str
    content: str
    dialogue_acts: tuple[str, ...] = ()


def from_record(place: str, record: Any, roles: RoleMap) -> Finding:  # noqa: ANN401 - whatever the file holds
    """Reads one dialogue of chat messages."""
    record = roles.rename(record)
    try:
        try:
            dialogue = Dialogue.from_json(record)
        except InputError as error:
            faults = [
                fault if ";" in fault else f"{fault}; repair the record" for fault in _faults(record) or [str(error)]
            ]
        else:
            return Finding(place, dialogue, dialogue.id)
    except RecursionError:
        faults = ["got lists in lists too deep to be read, expected messages; repair the record"]
    return Finding(place, problems=tuple(Problem(place, fault) for fault in faults))


def from_lines(
    place: str,
    identifier: str,
    domains: Iterable[str],
    lines: Sequence[Line],
    roles: RoleMap,
    problems: Sequence[Problem],
) -> Finding:
    """Puts one dialogue together."""
    problems = list(problems)
    assigned: dict[str, str] = {}
    try:
        assigned = roles.assign(line.speaker for line in lines)
    except TooManySpeakersError as error:
        problems.append(Problem(next(line.place for line in lines if line.speaker == error.name), str(error)))
    if not lines and not problems:
        problems.append(Problem(place, "got no turn, expected at least one; remove the dialogue or add its turns"))
    if problems:
        return Finding(place, id=identifier, problems=tuple(problems))
    turns = tuple(Turn(assigned[line.speaker], line.content, line.dialogue_acts) for line in lines)
    return Finding(place, Dialogue(turns, identifier, tuple(dict.fromkeys(domains))), identifier)


def distinct(findings: Iterable[Finding], remedy: str = "give each dialogue its own id") -> Iterator[Finding]:
    """Makes a problem of every id that an earlier dialogue has too."""
    places: dict[int, str] = {}  # by hashes: ids may be long
    for finding in findings:
        if finding.id:
            first = places.setdefault(hash(finding.id), finding.place)
            if first != finding.place:
                problem = Problem(finding.place, f"field id: got {finding.id!r}, which {first} has too; {remedy}")
                finding = replace(finding, dialogue=None, problems=(problem, *finding.problems))
        yield finding


def at_least_one(findings: Iterable[Finding], path: str | Path, expected: str) -> Iterator[Finding]:
    """Refuses a file without any dialogue."""
    empty = True
    for finding in findings:
        empty = False
        yield finding
    if empty:
        raise InputError(f"{path}: got no dialogue, expected {expected}; fill the file")


def all_named(findings: Iterable[Finding], roles: RoleMap, path: str | Path) -> Iterator[Finding]:
    """Tells of names that were given a role and that no speaker has: a misspelt one lets speakers change places."""
    last = None
    for finding in findings:
        if last is not None:
            yield last
        last = finding
    if last is not None:
        said = [
            f"roles: got the name {name!r}, which no speaker has; correct it"
            for name in roles.given
            if name not in roles.met
        ]
        for sentence in said:
            logger.warning("%s: %s", path, sentence)
        yield replace(last, doubts=(*last.doubts, *(Problem(str(path), sentence, "warning") for sentence in said)))


def dialogues(findings: Iterable[Finding], path: str | Path, *, skip_invalid: bool) -> Iterator[Dialogue]:
    """Takes the dialogues out of findings."""
    empty = True
    records = ((finding.problems[0].place if finding.problems else finding.place, finding) for finding in findings)
    for dialogue in convert_records(records, _dialogue, skip_invalid=skip_invalid):
        empty = False
        yield dialogue
    if empty:
        raise InputError(f"{path}: got no dialogue that is not malformed, expected at least one; repair the file")


def text_of(stream: io.BufferedReader, path: Path) -> io.TextIOWrapper:
    """Decodes a file so that bytes which are not UTF-8 can be reported with their line (see `is_text`).

    Args:
        stream: The open file.
        path: Its path.

    Returns:
        Its lines with their ends.

    Raises:
        InputError: The file is UTF-16, as some spreadsheet programs write it.
    """
    if stream.peek(2)[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError(f"{path}: got UTF-16, expected UTF-8; save the file as UTF-8")
    return io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline="")


def is_text(text: str) -> bool:
    """Says whether a string can be encoded, that is, whether it was UTF-8 in the file."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _dialogue(finding: Finding) -> Dialogue:
    if finding.problems:
        raise InputError(finding.problems[0].message)
    dialogue: Dialogue = finding.dialogue
    return dialogue


def _faults(record: Any) -> list[str]:  # noqa: ANN401
    """Lists every fault of a record: the one validator is asked about each field of each message alone."""
    good = {"role": "user", "content": "text"}
    if not isinstance(record, dict) or "messages" not in record:
        return []
    probes = [({"messages": [good], field: record.get(field)}, 0) for field in ("id", "domains")]
    messages = record["messages"]
    if not isinstance(messages, list) or not messages:
        probes.append(({"messages": messages}, 0))
        messages = []
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            probes.append(({"messages": [message]}, index))
            continue
        for field in ("role", "content", "dialogue_acts", "slots", "intents"):
            probes.append(({"messages": [{**good, field: message.get(field)}]}, index))
    faults = []
    for probe, index in probes:
        try:
            Dialogue.from_json(probe)
        except InputError as error:
            faults.append(str(error).replace("messages[0]:", f"messages[{index}]:", 1))
    return faults
