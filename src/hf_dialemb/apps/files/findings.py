"""Findings: the dialogues of your own files, good or bad.

Reading and checking agree by them on what is malformed.
"""

import logging
import pickle
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from ...data.raw_records import readable, shortened
from ...data.reading_options import ReadingOptions
from ...dialogue import ROLES, Dialogue
from ...errors import InputError
from .account import REMEDY, Account
from .cleaning import Cleaning
from .roles import IGNORE, REST, WELL_KNOWN, RoleMap
from .times import Times

logger = logging.getLogger(__name__)

Message = Mapping[str, Any]
_LONGEST_MESSAGE = 600
_QUOTED = re.compile(r"'[^']*'|[0-9][0-9,]*")
_LONG = 8 * 3600  # seconds between turns that may be of two dialogues
_EXAMPLES = 3  # places that are named of a note


@dataclass(frozen=True)
class Problem:
    """A problem in a user's data; always printable, and shortened if it quotes too much.

    Attributes:
        place: Where it is, such as "calls.csv:12".
        message: What was got and expected, and the remedy.
        severity: An "error" prevents reading, a "warning" does not; a "note" says what was done, a
            "guess" that it could have been done otherwise.
    """

    place: str
    message: str
    severity: str = "error"

    def __post_init__(self) -> None:
        message = shortened(self.message, _LONGEST_MESSAGE)
        for name, text in (("place", self.place), ("message", message)):
            object.__setattr__(self, name, text.encode("utf-8", "backslashreplace").decode())

    @property
    def kind(self) -> str:
        """The message without quotes and numbers; of a note, the whole message."""
        if self.severity == "note":
            return self.message
        return f"{self.severity} {_QUOTED.sub('', self.message)}"

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


@dataclass(frozen=True)
class Finding:
    """One dialogue of a source, or its errors; the last finding has what is noted of the source."""

    place: str  # where it begins
    dialogue: Dialogue | None = None  # if there is no problem
    id: str = ""  # as far as it is known
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class Draft:
    """A dialogue whose speakers, times and texts are as they are in the file.

    Attributes:
        place: Where it begins.
        id: Its id, which need not be a text.
        messages: Messages as `Dialogue.from_messages` takes them, perhaps with ``place`` and
            ``markup``.
        domains: Its labels.
        problems: Why it cannot be read.
        time: When it began.
        metadata: What else is known of it.
        mail: Whether quoted mail and signatures leave the texts.
        pause: The pause that ends a conversation, where the file does not say.
        is_apart: Whether others lie between its messages in the file.
    """

    place: str
    id: Any
    messages: Sequence[Message]
    domains: Any = ()
    problems: tuple[Problem, ...] = ()
    time: Any = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    mail: bool = False
    pause: timedelta | None = None
    is_apart: bool = False


class Notes:
    """What is noted of a source: who speaks when, and each kind of problem once, with examples."""

    def __init__(self, options: ReadingOptions | None = None) -> None:
        self.options = options or ReadingOptions()
        self.form = ""  # what the source is taken for
        self.roles = RoleMap(self.options.roles)
        self.account = Account()
        self._kinds: dict[str, list[Problem]] = {}  # the first problems of each
        self._counts = Counter[str]()
        self._begin()

    def _begin(self) -> None:
        self.roles.forget()
        self.times = Times(self.options.dates)
        self.cleaning = Cleaning(self.options.raw)

    def forget(self, place: str) -> None:
        """End a file of several; the next one's speakers, times and texts decide themselves."""
        noted = [("note", sentence) for sentence in self.cleaning.remarks()]
        for severity, sentence in [*self.times.remarks(), *noted]:
            self.add(sentence, place, severity)
        self._begin()

    def see(self, draft: Draft) -> None:
        """Take a dialogue into account, before any is read."""
        spoken = [message for message in draft.messages if str(message.get("content", "")).strip()]
        self.roles.count(str(message["role"]) for message in spoken)
        self.times.see(draft.time)
        for message in spoken:
            self.times.see(message.get("time"))
            self.cleaning.see(message, draft.mail)

    def add(self, sentence: str, place: str, severity: str = "note") -> None:
        """Note what was done at a place, or guessed: then the sentence names what decides."""
        self.put(Problem(place, sentence, severity))

    def put(self, problem: Problem) -> None:
        """Note a problem."""
        self._counts[problem.kind] += 1
        if self._counts[problem.kind] <= _EXAMPLES:
            self._kinds.setdefault(problem.kind, []).append(problem)

    def problems(self, place: str) -> list[Problem]:
        """Return one problem of each kind; one that came again is at ``place``, with examples."""
        problems = []
        for kind, (problem, *more) in self._kinds.items():
            if more:
                sign = ", such as" if self._counts[kind] > _EXAMPLES else ":"
                places = ", ".join(example.place for example in (problem, *more))
                message = f"{problem.message} ({self._counts[kind]:,} times{sign} {places})"
                problem = replace(problem, place=place, message=message)
            problems.append(problem)
        return problems

    def remarks(self, place: str) -> list[Problem]:
        """Return the given names that no speaker has, the guesses and the notes."""
        self.forget(place)
        sentences = [
            (f"roles: got the name {name!r}, which no speaker has; correct it", "warning")
            for name in self.roles.given.keys() - {*self.roles.met, REST}
        ]
        sentences += [(self.account.remark(), "warning"), (self.roles.guess(), "guess")]
        problems = [Problem(place, text, severity) for text, severity in sentences if text]
        return problems + self.problems(place)


Drafts = Callable[[Notes], Iterable[Draft]]
"""Reads the dialogues of a source; it may be called several times."""


def message_of(place: str, speaker: str, content: str) -> dict[str, Any]:
    """Make a message of a speaker with a name; a name that only says the role is not kept."""
    name = "" if speaker.strip().casefold() in WELL_KNOWN else speaker.strip()
    return {"role": speaker, "content": content, "name": name, "place": place}


def from_drafts(drafts: Drafts, notes: Notes, sample: Drafts | None = None) -> Iterator[Finding]:
    """Make dialogues of drafts; roles, times and texts depend on all of them, or on a ``sample``.

    Without a sample, the drafts of a file wait on disk until the last was seen.
    """
    if sample:
        for draft in sample(Notes(notes.options)):
            notes.see(draft)
        for draft in drafts(notes):
            yield from _from_draft(draft, notes)
        return
    with TemporaryFile() as waiting:
        for draft in drafts(notes):
            notes.see(draft)
            waiting.write(_packed(draft))
        pickle.dump(None, waiting)
        waiting.seek(0)
        while kept := pickle.load(waiting):
            yield from _from_draft(kept, notes)


def _packed(draft: Draft) -> bytes:
    try:
        return pickle.dumps(draft)
    except RecursionError as error:
        problem = Problem(draft.place, f"got nested values ({error}); repair the record")
        return pickle.dumps(Draft(draft.place, "", (), problems=(problem,)))


def _from_draft(draft: Draft, notes: Notes) -> Iterator[Finding]:
    if draft.problems:
        yield Finding(draft.place, id=str(draft.id), problems=draft.problems)
        return
    begun = notes.times.read(draft.time)
    parts = _by_pauses(_in_order(draft, notes), draft, notes)
    for number, messages in enumerate(parts or [[]], start=1):
        id = draft.id if number == 1 else f"{draft.id}#{number}"
        time = begun.iso if begun and number == 1 else ""
        yield from _finding(replace(draft, id=id, messages=messages, time=time), notes)


def _in_order(draft: Draft, notes: Notes) -> list[dict[str, Any]]:
    """Clean texts, read times, and sort by time; turns without one stay behind the turn before."""

    def leave(what: str, place: str) -> None:
        notes.add(f"left out {what}", place)

    messages: list[dict[str, Any]] = []
    latest = float("-inf")
    for message in notes.cleaning.turns(draft.messages, draft.mail, leave):
        moment = notes.times.read(message.get("time"))
        latest = moment.seconds if moment else latest
        time = moment.iso if moment else ""
        messages.append({**message, "time": time, "moment": moment, "key": latest})
    keys = [message["key"] for message in messages]
    if notes.times.sorts and keys != sorted(keys):
        notes.add("sorted the turns of a dialogue by time", draft.place)
        messages.sort(key=lambda message: message["key"])
    return messages


def _by_pauses(messages: list[dict[str, Any]], draft: Draft, notes: Notes) -> list[list[Message]]:
    """Split where the pause is longer than ``--gap`` says, or the form by itself."""
    pause = notes.options.pause or draft.pause
    parts: list[list[Message]] = []
    longest = 0.0
    latest = None
    for message in messages:
        moment = message["moment"]
        passed = moment.seconds - latest if moment and latest is not None else 0
        if not parts or (pause and passed > pause.total_seconds()):
            parts.append([])
        parts[-1].append(message)
        longest = max(longest, passed)
        latest = moment.seconds if moment else latest
    sentence = ""
    if len(parts) > 1:
        sentence = (
            f"split at pauses of more than {pause}; say --gap 1h, or another time, where that is "
            "wrong"
        )
    elif longest > _LONG and draft.is_apart and not draft.mail:
        sentence = (
            "took turns of one id as one dialogue, though others and more than 8 hours lie between "
            "them; if ids begin again, say --gap 4h"
        )
    if sentence and not notes.options.gap:
        notes.add(sentence, draft.place, "guess")
    return parts


def _finding(draft: Draft, notes: Notes) -> Iterator[Finding]:
    """Give the speakers of one dialogue their roles."""
    assigned = notes.roles.assign(str(message["role"]) for message in draft.messages)
    if notes.roles.sharing:
        notes.add(f"gave one role, {ROLES[-1]}, to all speakers after the fourth", draft.place)
    kept = [{**message, "role": assigned[str(message["role"])]} for message in draft.messages]
    kept = [message for message in kept if message["role"] != IGNORE]
    if not kept:
        notes.add("left out a dialogue in which nobody says anything", draft.place)
        return
    # A name that both sides have, as in a column agent_name, is the assistant's.
    assisting = {message.get("name") for message in kept if message["role"] == ROLES[1]}
    for message in kept:
        if message["role"] != ROLES[1] and message.get("name") in assisting:
            message["name"] = ""
    times = (message["time"] for message in kept if message["time"])
    record = {"id": draft.id, "messages": kept, "domains": draft.domains}
    record |= {"time": draft.time or next(times, ""), "metadata": draft.metadata}
    yield from_record(draft.place, record)


def from_record(place: str, record: Any) -> Finding:
    """Read one dialogue of chat messages."""
    try:
        dialogue = Dialogue.from_json(record)
    except (InputError, RecursionError) as error:
        fault = str(error)
        fault = fault if ";" in fault else f"{fault}; repair the record"
        return Finding(place, problems=(Problem(place, fault),))
    return Finding(place, dialogue, dialogue.id)


def distinct(
    findings: Iterable[Finding], place: str | Path, expected: str, notes: Notes
) -> Iterator[Finding]:
    """Make a problem of every id that an earlier dialogue has too.

    Refuse a source without any dialogue.
    """
    places: dict[int, str] = {}  # by hashes: ids may be long
    finding = None
    for finding in findings:
        first = places.setdefault(hash(finding.id), finding.place) if finding.id else finding.place
        if first != finding.place:
            sentence = f"field id: got {finding.id!r}, which {first} has too; give each dialogue "
            problems = (Problem(finding.place, f"{sentence}its own id"), *finding.problems)
            finding = replace(finding, dialogue=None, problems=problems)
        yield finding
    if finding is None:
        because = "".join(f" ({problem.message})" for problem in notes.problems(str(place))[:1])
        raise InputError(f"{place}: got no dialogue{because}, expected {expected}; fill the file")


def with_remarks(findings: Iterable[Finding], notes: Notes, place: str | Path) -> Iterator[Finding]:
    """End with a finding that has the remarks of the whole source; if strict, with an error."""
    yield from findings
    remarks = notes.remarks(str(place))
    for remark in remarks:
        if notes.options.strict and (remark.severity == "guess" or remark.message.endswith(REMEDY)):
            raise InputError(f"{remark}; with --strict nothing is guessed or lost")
    yield Finding(str(place), problems=tuple(remarks))


def dialogues(
    findings: Iterable[Finding],
    place: str | Path,
    notes: Notes,
    *,
    strict: bool = False,
    silent: bool = False,
) -> Iterator[Dialogue]:
    """Take the dialogues out of findings; log remarks and what was left out unless ``silent``.

    The first error ends the reading if it shall be ``strict``, or the options are.
    """

    def items() -> Iterator[Dialogue | InputError]:
        for finding in findings:
            errors = [problem for problem in finding.problems if problem.severity == "error"]
            if errors:
                yield InputError(str(errors[0]))
            elif finding.dialogue is not None:
                yield finding.dialogue
            elif not silent:
                for remark in finding.problems:
                    logger.warning("%s", remark)

    is_strict = strict or notes.options.strict
    return readable(items(), str(place), lambda: notes.form, strict=is_strict, silent=silent)
