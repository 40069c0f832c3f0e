"""Findings: what was found in your own files, good or bad, so that reading and checking agree on what is malformed."""

import codecs
import io
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...dialogue import ROLES, Dialogue, Turn, iso_time
from ...errors import InputError
from ..records import convert_records, never_empty, shortened
from ..source.streams import decompressed
from .roles import IGNORE, REST, WELL_KNOWN, RoleMap, TooManySpeakersError

logger = logging.getLogger(__name__)

_LONGEST_MESSAGE = 600
_QUOTED = re.compile(r"'[^']*'|[0-9][0-9,]*")
_LONG_AGO = 1e8  # seconds since 1970; a smaller number counts from the start of a recording
_NO_ASCII = re.compile(rb"[^\s,;\"]{0,20}[\x80-\xff][^\s,;\"]{0,20}")
_EXAMPLES = 3  # so many places show where something was noted


@dataclass(frozen=True)
class Problem:
    """Something wrong, or only suspicious, in a user's data; always printable, and shortened if it quotes too much."""

    place: str  # such as "calls.csv:12"
    message: str  # what came, what was expected and what to do
    severity: str = "error"  # what cannot be read; or "warning" for what can, "note" for what was done with it

    def __post_init__(self) -> None:
        for name, text in (("place", self.place), ("message", shortened(self.message, _LONGEST_MESSAGE))):
            object.__setattr__(self, name, text.encode("utf-8", "backslashreplace").decode())

    @property
    def kind(self) -> str:
        """What problems that differ in what they quote and count have in common; of notes, the whole."""
        return self.message if self.severity == "note" else f"{self.severity} {_QUOTED.sub('', self.message)}"

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


@dataclass(frozen=True)
class Finding:
    """One dialogue as it was found."""

    place: str  # where it begins
    dialogue: Any = None  # in a registered corpus, whatever its records are; None if there are problems
    id: str = ""  # as far as it is known
    problems: tuple[Problem, ...] = ()  # all that is wrong with it
    doubts: tuple[Problem, ...] = ()  # what can be read but may be a mistake
    told: tuple[Problem, ...] = ()  # at the last one: what was noted and guessed in the whole file


@dataclass(frozen=True)
class Line:
    """What a speaker says in a file that names its speakers freely."""

    place: str
    speaker: str
    content: str
    dialogue_acts: tuple[str, ...] = ()
    name: str = ""  # what the speaker is called, where that is told beside

    @property
    def called(self) -> str:
        """What the speaker is called, unless that says no more than the role."""
        name = (self.name or self.speaker).strip()
        return "" if name.casefold() in WELL_KNOWN else name


def from_record(place: str, record: Any) -> Finding:  # noqa: ANN401 - whatever the file holds
    """Reads one dialogue of chat messages."""
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


class Notes:
    """What is wrong with a file, or was done with it beside reading it as it stands: each kind once, counted."""

    def __init__(self) -> None:
        self._kinds: dict[str, tuple[Problem, int, list[str]]] = {}

    def add(self, sentence: str, place: str) -> None:
        """Notes something that was done at a place."""
        self.put(Problem(place, sentence, "note"))

    def put(self, problem: Problem) -> None:
        """Notes a problem."""
        first, count, places = self._kinds.get(problem.kind, (problem, 0, []))
        self._kinds[problem.kind] = first, count + 1, places if count >= _EXAMPLES else [*places, problem.place]

    def problems(self, place: str) -> list[Problem]:
        """Returns what was noted, one problem for each kind; several are at the place of all, with examples."""
        found = self._kinds.values()
        return [first if count == 1 else _several(first, count, places, place) for first, count, places in found]


def _several(first: Problem, count: int, places: list[str], place: str) -> Problem:
    where = f"{count:,} times{', such as' if count > _EXAMPLES else ':'} {', '.join(places)}"
    return replace(first, place=place, message=f"{first.message} ({where})")


@dataclass(frozen=True)
class Draft:
    """A dialogue whose speakers have names, and otherwise as a `Finding`."""

    place: str
    id: str
    lines: Sequence[Line]
    domains: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    doubts: tuple[Problem, ...] = ()
    time: str = ""


def began(said: object, day_first: bool = False) -> str:
    """Reads when a dialogue began, as ISO 8601; empty where that is no time, or seconds of a recording."""
    try:
        number = float(said)  # type: ignore[arg-type]
        return "" if number < _LONG_AGO else iso_time(number / (1000 if number > 1000 * _LONG_AGO else 1))
    except (TypeError, ValueError):
        pass
    try:
        return iso_time(said)
    except InputError:
        import pandas

        moment = pandas.to_datetime(str(said), errors="coerce", format="mixed", dayfirst=day_first)
        return "" if pandas.isna(moment) else str(moment.isoformat())


def from_drafts(drafts: Callable[[Notes], Iterable[Draft]], roles: RoleMap, notes: Notes) -> Iterator[Finding]:
    """Gives speakers their roles; what the drafts are read from is read twice, as the whole file tells who is who."""
    if REST not in roles.given:
        for draft in drafts(Notes()):
            roles.count(line.speaker for line in draft.lines)
    for draft in drafts(notes):
        finding = _from_draft(draft, roles, notes)
        if finding is not None:
            yield finding


def _from_draft(draft: Draft, roles: RoleMap, notes: Notes) -> Finding | None:
    problems, assigned = list(draft.problems), {}
    try:
        assigned = roles.assign(line.speaker for line in draft.lines)
    except TooManySpeakersError as error:
        problems.append(Problem(next(line.place for line in draft.lines if line.speaker == error.name), str(error)))
    if not draft.lines and not problems:
        message = "got no turn, expected at least one; remove the dialogue or add its turns"
        problems.append(Problem(draft.place, message))
    if problems:
        return Finding(draft.place, id=draft.id, problems=tuple(problems))
    said = [(assigned[line.speaker], line) for line in draft.lines if assigned[line.speaker] != IGNORE]
    if not said:
        notes.add("left out a dialogue in which only speakers who are ignored say something", draft.place)
        return None
    users = {line.called for role, line in said if role != ROLES[1]}
    # What both sides are called, as in a column agent_name, is the assistant's name.
    both = users & {line.called for role, line in said if role == ROLES[1]}
    named = [(role, line, "" if role != ROLES[1] and line.called in both else line.called) for role, line in said]
    turns = tuple(Turn(role, line.content, line.dialogue_acts, name=name) for role, line, name in named)
    dialogue = Dialogue(turns, draft.id, tuple(dict.fromkeys(draft.domains)), draft.time)
    return Finding(draft.place, dialogue, draft.id, doubts=draft.doubts)


def distinct(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Makes a problem of every id that an earlier dialogue has too."""
    places: dict[int, str] = {}  # by hashes: ids may be long
    for finding in findings:
        if finding.id:
            first = places.setdefault(hash(finding.id), finding.place)
            if first != finding.place:
                sentence = f"field id: got {finding.id!r}, which {first} has too; give each dialogue its own id"
                problems = (Problem(finding.place, sentence), *finding.problems)
                finding = replace(finding, dialogue=None, problems=problems)
        yield finding


def at_least_one(findings: Iterable[Finding], path: str | Path, expected: str) -> Iterator[Finding]:
    """Refuses a file without any dialogue."""
    return never_empty(findings, InputError(f"{path}: got no dialogue, expected {expected}; fill the file"))


def told(findings: Iterable[Finding], roles: RoleMap, notes: Notes, path: str | Path) -> Iterator[Finding]:
    """Tells at the end what was noted and guessed, and which given names no speaker has."""
    last = None
    for finding in findings:
        if last is not None:
            yield last
        last = finding
    if last is not None:
        yield replace(last, told=tuple(noted(roles, notes, str(path))))


def noted(roles: RoleMap, notes: Notes, place: str) -> list[Problem]:
    """Returns what was noted and guessed, and which given names no speaker has."""
    missing = [name for name in roles.given if name not in {*roles.met, REST}]
    said = [f"roles: got the name {name!r}, which no speaker has; correct it" for name in missing]
    problems = [Problem(place, sentence, "warning") for sentence in (*said, roles.guess()) if sentence]
    return problems + notes.problems(place)


def log(problems: Iterable[Problem]) -> None:
    """Logs what was noted and guessed."""
    for problem in problems:
        logger.warning("%s", problem)


def dialogues(findings: Iterable[Finding], path: str | Path, *, skip_invalid: bool) -> Iterator[Dialogue]:
    """Takes the dialogues out of findings, and logs what was noted and guessed."""

    def records() -> Iterator[tuple[str, Finding]]:
        for finding in findings:
            log(finding.told)
            yield finding.problems[0].place if finding.problems else finding.place, finding

    found = convert_records(records(), _dialogue, skip_invalid=skip_invalid)
    sentence = f"{path}: got no dialogue that is not malformed, expected at least one; repair the file"
    return never_empty(found, InputError(sentence))


@contextmanager
def text_of(path: Path, notes: Notes) -> Iterator[io.TextIOWrapper]:
    """Opens a text file, packed or not, as UTF-8, as UTF-16 where it says so, or as Windows-1252 where it is no UTF-8.

    Bytes that are neither can be reported with their line; see `is_text`.
    """
    encoding, word = _encoding_of(path)
    if encoding != "utf-8-sig":
        remedy = f'; if its letters look wrong, as in "{word}", save it as UTF-8' if word else ""
        notes.add(f"read as {encoding}, since it is not UTF-8{remedy}", str(path))
    with decompressed(path) as stream:
        errors = "replace" if encoding == "utf-16" else "surrogateescape"
        yield io.TextIOWrapper(stream, encoding, errors=errors, newline="")


def _encoding_of(path: Path) -> tuple[str, str]:
    """Guesses the encoding, and gives a word that shows whether the guess is right."""
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    foreign, word = False, ""
    with decompressed(path) as stream:
        if stream.peek(2)[:2] in (b"\xff\xfe", b"\xfe\xff"):
            return "utf-16", ""
        while block := stream.read(1 << 20):
            text = decoder.decode(block)
            if text.isascii():
                continue
            if not word and (found := _NO_ASCII.search(block)):
                word = found[0].decode("cp1252", "replace")
            foreign = True
            if any(letter > "\x7f" and not "\udc80" <= letter <= "\udcff" for letter in text):
                return "utf-8-sig", ""  # some of it is UTF-8, so that the rest is damaged
    return ("cp1252", word) if foreign else ("utf-8-sig", "")


def is_text(text: str) -> bool:
    """Says whether a string was UTF-8 in the file: bytes that were not are half characters now."""
    return re.search("[\ud800-\udfff]", text) is None


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
