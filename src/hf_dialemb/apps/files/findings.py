"""Findings.

The dialogues of your own files, good or bad, so that reading and checking agree on what is
malformed.
"""

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from ...data.raw_records import readable, shortened
from ...data.reading_options import ReadingOptions
from ...dialogue import ROLES, Dialogue
from ...errors import InputError
from .markup import Texts
from .roles import IGNORE, REST, WELL_KNOWN, RoleMap
from .times import Times

logger = logging.getLogger(__name__)

_LONGEST_MESSAGE = 600
_QUOTED = re.compile(r"'[^']*'|[0-9][0-9,]*")
_EXAMPLES = 3  # places that are named of a note


@dataclass(frozen=True)
class Problem:
    """A problem in a user's data; always printable, and shortened if it quotes too much."""

    place: str  # such as "calls.csv:12"
    message: str  # got, expected, remedy
    # "error" prevents reading, "warning" does not; "note" says what was done, "guess" that
    severity: str = "error"
    # it could have been done otherwise

    def __post_init__(self) -> None:
        for name, text in (
            ("place", self.place),
            ("message", shortened(self.message, _LONGEST_MESSAGE)),
        ):
            object.__setattr__(self, name, text.encode("utf-8", "backslashreplace").decode())

    @property
    def kind(self) -> str:
        """The message without quotes and numbers; of a note, the whole message."""
        return (
            self.message
            if self.severity == "note"
            else f"{self.severity} {_QUOTED.sub('', self.message)}"
        )

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


@dataclass(frozen=True)
class Finding:
    """One dialogue of a source, or its problems; the last finding of a source has only remarks."""

    place: str  # where it begins
    dialogue: Dialogue | None = None  # if there is no problem
    id: str = ""  # as far as it is known
    problems: tuple[Problem, ...] = ()
    remarks: tuple[Problem, ...] = ()  # notes and guesses of the whole source


@dataclass(frozen=True)
class Draft:
    """A dialogue whose speakers have their own names, whose times and texts are as they are in the
    file.
    """

    place: str
    id: Any
    # as `Dialogue.from_messages` takes them; perhaps ``place``, ``markup``
    messages: Sequence[Mapping[str, Any]]
    domains: Any = ()
    problems: tuple[Problem, ...] = ()
    time: Any = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    mail: bool = False  # whether quoted mail and signatures leave the texts
    pause: timedelta | None = None  # that ends a conversation, where the file has none
    times: Times | None = (
        None  # of its file, where this decides by itself and the source is a folder
    )


class Notes:
    """What is noted of a source.

    Who speaks when, and each kind of problem once, counted, with examples of places.
    """

    def __init__(self, options: ReadingOptions | None = None) -> None:
        self.options = options or ReadingOptions()
        self.roles = RoleMap(self.options.roles)
        self.form = ""  # what the source is taken for
        self._kinds: dict[str, tuple[Problem, int, list[str]]] = {}
        self._begin()

    def _begin(self) -> None:
        self.times, self.texts = Times(self.options.dates), Texts(self.options.raw)

    def forget(self, place: str) -> None:
        """End a file of several.

        Speakers, times and texts of the next one are read by themselves.
        """
        for severity, sentence in [
            *self.times.remarks(),
            *(("note", sentence) for sentence in self.texts.remarks()),
        ]:
            self.put(Problem(place, sentence, severity))
        self.roles.forget()
        self._begin()

    def see(self, draft: Draft) -> None:
        """Take a dialogue into account, before any is read."""
        spoken = [message for message in draft.messages if _has_text(message)]
        self.roles.count(str(message["role"]) for message in spoken)
        for value in (draft.time, *(message.get("time") for message in spoken)):
            if value not in (None, ""):
                self.times.see(value)
        for message in spoken:
            self.texts.see(message, draft.mail)

    def add(self, sentence: str, place: str) -> None:
        """Note what was done at a place."""
        self.put(Problem(place, sentence, "note"))

    def guess(self, sentence: str, place: str) -> None:
        """Note what was taken although it could be read otherwise.

        The sentence names the option that decides.
        """
        self.put(Problem(place, sentence, "guess"))

    def put(self, problem: Problem) -> None:
        """Note a problem."""
        first, count, places = self._kinds.get(problem.kind, (problem, 0, []))
        self._kinds[problem.kind] = (
            first,
            count + 1,
            places if count >= _EXAMPLES else [*places, problem.place],
        )

    def problems(self, place: str) -> list[Problem]:
        """Return one problem for each kind.

        Those that came several times are at ``place``, with examples.
        """
        problems = []
        for first, count, places in self._kinds.values():
            where = (
                f"{count:,} times{', such as' if count > _EXAMPLES else ':'} {', '.join(places)}"
            )
            several = replace(first, place=place, message=f"{first.message} ({where})")
            problems.append(first if count == 1 else several)
        return problems

    def remarks(self, place: str) -> list[Problem]:
        """Return the given names that no speaker has, the guesses and the notes."""
        self.forget(place)
        missing = [name for name in self.roles.given if name not in {*self.roles.met, REST}]
        sentences = [
            (f"roles: got the name {name!r}, which no speaker has; correct it", "warning")
            for name in missing
        ]
        sentences += [(sentence, "guess") for sentence in filter(None, [self.roles.guess()])]
        return [Problem(place, *sentence) for sentence in sentences] + self.problems(place)


Drafts = Callable[[Notes], Iterable[Draft]]
"""Reads the dialogues of a source; it may be called several times."""


def message_of(
    place: str, speaker: str, content: str, name: str = "", acts: Sequence[str] = ()
) -> dict[str, Any]:
    """Make a message of a speaker with a name; a name that only says the role is not kept."""
    called = (name or speaker).strip()
    called = "" if called.casefold() in WELL_KNOWN else called
    return {
        "role": speaker,
        "content": content,
        "name": called,
        "dialogue_acts": acts,
        "place": place,
    }


def from_drafts(drafts: Drafts, notes: Notes) -> Iterator[Finding]:
    """Make dialogues of drafts, which are read twice.

    Roles, times and texts depend on the whole source.
    """
    for draft in drafts(Notes(notes.options)):
        notes.see(draft)
    for draft in drafts(notes):
        yield from from_draft(draft, notes)


def from_draft(draft: Draft, notes: Notes) -> Iterator[Finding]:
    """Make the dialogues of one draft.

    One, several if long pauses divide it, or none if nobody says anything.
    """
    spoken = []
    for message in draft.messages:
        if _has_text(message):
            spoken.append(message)
        else:
            notes.add("left out a turn without text", message.get("place", draft.place))
    parts = list(_by_pauses(_in_order(spoken, draft, notes), draft, notes)) or [[]]
    for number, part in enumerate(parts, start=1):
        id = draft.id if number == 1 else f"{draft.id}#{number}"
        yield from _finding(
            replace(draft, id=id, messages=part, time=draft.time if number == 1 else ""), notes
        )


def _in_order(spoken: list[Mapping[str, Any]], draft: Draft, notes: Notes) -> list[dict[str, Any]]:
    """Read times and texts.

    Sort by time, where every turn without one stays behind the turn before it.
    """
    messages, keys, latest, times = [], [], float("-inf"), draft.times or notes.times
    for message in spoken:
        content = (
            notes.texts.clean(message, draft.mail)
            if isinstance(message["content"], str)
            else message["content"]
        )
        if content == "":
            notes.add("left out a turn without text", message.get("place", draft.place))
            continue
        moment = times.read(message["time"]) if message.get("time") not in (None, "") else None
        latest = moment.seconds if moment else latest
        keys.append(latest)
        time, seconds = (moment.iso, moment.seconds) if moment else ("", None)
        messages.append({**message, "content": content, "time": time, "seconds": seconds})
    order = (
        sorted(range(len(keys)), key=keys.__getitem__) if times.sorts else list(range(len(keys)))
    )
    if order != sorted(order):
        notes.add("sorted the turns of a dialogue by time", draft.place)
    return [messages[index] for index in order]


def _by_pauses(
    messages: list[dict[str, Any]], draft: Draft, notes: Notes
) -> Iterator[list[dict[str, Any]]]:
    """Split where the pause between two turns is longer than ``--gap`` says, or the form by itself."""
    pause = notes.options.pause or draft.pause
    longest, latest, part = (
        pause.total_seconds() if pause else float("inf"),
        None,
        list[dict[str, Any]](),
    )
    for message in messages:
        seconds = message.pop("seconds")
        if part and latest is not None and seconds is not None and seconds - latest > longest:
            if not notes.options.gap:
                sentence = (
                    f"split at pauses of more than {pause}; say --gap 1h, or another time, "
                    "where that is wrong"
                )
                notes.guess(sentence, draft.place)
            yield part
            part = []
        latest = latest if seconds is None else seconds
        part.append(message)
    if part:
        yield part


def _finding(draft: Draft, notes: Notes) -> Iterator[Finding]:
    """Give the speakers of one dialogue their roles."""
    if draft.problems:
        yield Finding(draft.place, id=str(draft.id), problems=draft.problems)
        return
    spoken = draft.messages
    assigned = notes.roles.assign(str(message["role"]) for message in spoken)
    if notes.roles.sharing:
        notes.add(f"gave one role, {ROLES[-1]}, to all speakers after the fourth", draft.place)
    kept: list[dict[str, Any]] = [
        {**message, "role": assigned[str(message["role"])]} for message in spoken
    ]
    kept = [message for message in kept if message["role"] != IGNORE]
    if not kept:
        whom = "only ignored speakers say something" if spoken else "nobody says anything"
        notes.add(f"left out a dialogue in which {whom}", draft.place)
        return
    # A name that both sides have, as in a column agent_name, is the assistant's.
    assisting, others = (
        {message.get("name") for message in kept if (message["role"] == ROLES[1]) == side}
        for side in (True, False)
    )
    for message in kept:
        if message["role"] != ROLES[1] and message.get("name") in assisting & others:
            message["name"] = ""
    began = (draft.times or notes.times).read(draft.time) if draft.time not in (None, "") else None
    time = began.iso if began else next(filter(None, (message["time"] for message in kept)), "")
    fields = {
        "id": draft.id,
        "messages": kept,
        "domains": draft.domains,
        "time": time,
        "metadata": draft.metadata,
    }
    yield from_record(draft.place, fields)


def from_record(place: str, record: Any) -> Finding:
    """Read one dialogue of chat messages."""
    try:
        dialogue = Dialogue.from_json(record)
        return Finding(place, dialogue, dialogue.id)
    except InputError as error:
        faults = _faults(record) or [str(error)]
    except RecursionError:
        faults = ["got lists in lists too deep to be read, expected messages"]
    problems = (
        Problem(place, fault if ";" in fault else f"{fault}; repair the record") for fault in faults
    )
    return Finding(place, problems=tuple(problems))


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
            sentence = (
                f"field id: got {finding.id!r}, which {first} has too; give each dialogue "
                "its own id"
            )
            problems = (Problem(finding.place, sentence), *finding.problems)
            finding = replace(finding, dialogue=None, problems=problems)
        yield finding
    if finding is None:
        because = "".join(f" ({problem.message})" for problem in notes.problems(str(place))[:1])
        raise InputError(f"{place}: got no dialogue{because}, expected {expected}; fill the file")


def with_remarks(findings: Iterable[Finding], notes: Notes, place: str | Path) -> Iterator[Finding]:
    """End with a finding that has the remarks of the whole source.

    A guess is an error if it shall be strict.
    """
    yield from findings
    remarks = notes.remarks(str(place))
    if notes.options.strict:
        for guess in (remark for remark in remarks if remark.severity == "guess"):
            raise InputError(f"{guess}; with --strict nothing is guessed")
    yield Finding(str(place), remarks=tuple(remarks))


def log(problems: Iterable[Problem]) -> None:
    """Log remarks."""
    for problem in problems:
        logger.warning("%s", problem)


def dialogues(
    findings: Iterable[Finding],
    place: str | Path,
    notes: Notes,
    *,
    strict: bool = False,
    silent: bool = False,
) -> Iterator[Dialogue]:
    """Take the dialogues out of findings; log the remarks and what was left out unless ``silent``.

    The first problem is an error if it shall be ``strict``, by this argument or by the options.
    """

    def items() -> Iterator[Dialogue | InputError]:
        for finding in findings:
            log(() if silent else finding.remarks)
            if finding.problems:
                yield InputError(str(finding.problems[0]))
            elif finding.dialogue is not None:
                yield finding.dialogue

    return readable(
        items(),
        str(place),
        lambda: notes.form,
        strict=strict or notes.options.strict,
        silent=silent,
    )


def _has_text(message: Mapping[str, Any]) -> bool:
    return not isinstance(message["content"], str) or bool(message["content"].strip())


def _faults(record: Any) -> list[str]:
    """List every fault of a record: each field of each message is checked by itself."""
    if not isinstance(record, dict) or not isinstance(record.get("messages"), list):
        return []
    good = {"role": "user", "content": "text"}
    probes = [(0, {"messages": [good], field: record.get(field)}) for field in ("id", "domains")]
    for index, message in enumerate(record["messages"]):
        fields = (
            ("role", "content", "dialogue_acts", "slots", "intents")
            if isinstance(message, dict)
            else ()
        )
        parts = [{**good, field: message.get(field)} for field in fields] or [message]
        probes += [(index, {"messages": [part]}) for part in parts]
    faults = []
    for index, probe in probes:
        try:
            Dialogue.from_json(probe)
        except InputError as error:
            faults.append(str(error).replace("messages[0]:", f"messages[{index}]:", 1))
    return faults
