"""Dialogues of records: messages of what was found in them, grouped, joined and without repeats."""

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import cache, partial, reduce
from html import unescape
from itertools import islice
from pathlib import Path
from typing import Any

from ...errors import InputError
from .columns import name_rank
from .evidence import EARLIER, KINDS, Layout, Record, flattened, is_known, is_program
from .findings import Draft, Notes, Problem
from .joining import joined, spaced
from .message_parts import beside, kind_of, parts
from .record_tables import Conversations, Unit, description_of, first_text, opened, pair_of
from .roles import WELL_KNOWN
from .transcripts import draft_of_text

Message = dict[str, Any]
Read = Callable[[], Iterable[tuple[str, Any]]]
"""Reads the records of a file, each with its place; an `InputError` is a damaged one."""

_SURVEYED = 1000  # records that show what fields are
_LONGEST_VALUE, _MOST_FIELDS = 1000, 50  # of metadata
_PAUSE = timedelta(hours=4)  # that ends a conversation of people who have names
_PRIVATE = re.compile(r"\b(note|private|internal|whisper|supervisor)|_(note|private)", re.IGNORECASE)
_NOTICE = re.compile(
    r"system|service|event|join|leave|left\b|member|status|change|lineitem|\bmeta|trace|moment|"
    r"ai_|call|activit|tombstone|notif|topic|bot_|summary|snapshot|delete|pinned|recipientadd|"
    r"^uj$|^ul$|^au$|^ru$",
    re.IGNORECASE,
)
_GONE = re.compile(r"(.*/)?\w*(delet|redact|unsent|revoked)\w*", re.IGNORECASE)
_TICKET = re.compile(r"subject|priority|requester\w*|ticket\w*")
_AGENT_NOTICE = re.compile(
    r"\s*(<(command|local-command|environment|user_instructions|user_shell|system-reminder|"
    r"turn_aborted|bash-)|# AGENTS\.md instructions|\[Request interrupted|Caveat: )"
)
_MOJIBAKE = re.compile("[\xc2-\xf4][\x80-\xbf]")
_MARK = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")  # of Slack: <@U01>, <http://x|label>
_PERSON_IDS = {"id", "_id", "ID", "user_id", "userId", "ParticipantId", "participantId"}
_NO_NAME = re.compile(r"[\W\d]*|[0-9a-fA-F-]{24,}")  # numbers and UUIDs
_OF_MODELS = {"human": "user", "ai": "assistant", "gpt": "assistant", "model": "assistant"}
_LABELS = ("dialogue_acts", "slots", "intents")
ONE_TALK = (
    "a message does not say of which conversation it is: taken as one with those around it; say "
    "which field tells conversations apart with --columns 'id=FIELD,role=FIELD,content=FIELD'"
)
IN_TURN = (
    "a list of texts without speakers: taken as said in turn by 'first' and 'second'; say who they "
    "are with --roles 'first=user,second=assistant'"
)


class RecordDrafts:
    """Makes dialogues of the records of a file, which is looked at first."""

    def __init__(self, read: Read, columns: str | None = None, *, is_cell: bool = False) -> None:
        self._read = read
        rows = system_rows()
        self.header = [] if is_cell else _header_of_flat(read)
        if self.header:
            return
        sample = (record for _, record in islice(read(), _SURVEYED))
        self.tables = Conversations(
            (record for record in sample if not isinstance(record, InputError)), rows
        )
        self._sizes = Counter[int]()  # by the hash of what records of a dialogue share
        for _, _, key in self._found(None):
            self._sizes[hash(key)] += 1

    def __call__(self, notes: Notes) -> Iterator[Draft]:
        """Make the dialogues."""
        groups: dict[str, list[tuple[str, Unit]]] = {}
        for place, unit, key in self._found(notes):
            if isinstance(unit, Problem):
                yield Draft(place, "", (), problems=(unit,))
                continue
            members = groups.setdefault(key, [])
            members.append((place, unit))
            if len(members) >= self._sizes[hash(key)]:
                yield from self._drafts(groups.pop(key), notes)
        for members in groups.values():
            yield from self._drafts(members, notes)

    def _found(self, notes: Notes | None) -> Iterator[tuple[str, Unit | Problem, str]]:
        """Yield places, conversations, and what the records of one dialogue share."""
        run = ""
        for place, record in self._read():
            if isinstance(record, InputError):
                yield place, Problem(place, str(record)), place
                continue
            units = self.tables.find(record)
            if not units and notes is not None:
                self._unread(place, record, notes)
            units = _versions(units)
            for number, unit in enumerate(units, start=1):
                where = place if len(units) == 1 else f"{place}: dialogue {number}"
                key = _shared(unit)
                if unit.is_row and self._stands_alone(unit):
                    key = ""
                elif unit.is_row and not key:
                    run = run or where
                    key = run
                elif unit.is_row:
                    run = key
                yield where, unit, key or where

    def _stands_alone(self, unit: Unit) -> bool:
        """Return whether a row has its own answers, as posts with replies have."""
        row = {path for path, value in flattened(unit.items[0]) if isinstance(value, list)}
        inner = (f"{unit.path}.{path.replace('/', '.')}[]" for path in row)
        return any(at in self.tables.paths and self.tables.speaks(at) for at in inner)

    def _unread(self, place: str, record: Any, notes: Notes) -> None:
        empty = record in ({}, [], None)
        what = "that is empty" if empty else "in which nobody says anything"
        notes.add(f"left out a record {what}", place)

    def _drafts(self, members: list[tuple[str, Unit]], notes: Notes) -> Iterator[Draft]:
        place, first = members[0]
        if first.is_row:
            places = {id(unit.items[0]): where for where, unit in members}
            items = [unit.items[0] for _, unit in members]
            members = [(place, replace(first, items=items, places=places))]
            first = members[0][1]
        messages: list[Message] = []
        for where, unit in members:
            try:
                latest = list(self._messages(unit, notes, where))
            except (AttributeError, LookupError, TypeError, ValueError) as error:
                problem = Problem(where, f"cannot be read ({error}); repair the record")
                yield Draft(where, "", (), problems=(problem,))
                continue
            time = _first("time", _fields(unit))[0] if len(members) > 1 and not unit.is_row else ""
            for message in latest:
                message.setdefault("place", where)
                if time:
                    message.setdefault("time", time)
            for other in unit.more:
                notes.add(f"left out another version of a dialogue ({other.path})", where)
            messages = latest if not messages else continued(messages, latest)
        spoken: dict[str, list[Message]] = {}
        for message in messages:
            if "left_out" in message:
                notes.add(f"left out {message['left_out']}", message["place"])
            else:
                spoken.setdefault(message.pop("group", ""), []).append(message)
        if not any(spoken.values()):
            notes.add("left out a dialogue in which nobody says anything", place)
            return
        yield from self._divided(place, first, spoken, notes)

    def _divided(
        self, place: str, unit: Unit, spoken: Mapping[str, list[Message]], notes: Notes
    ) -> Iterator[Draft]:
        context = _fields(unit)
        id, id_path = _id(unit, context)
        time, time_path = _first("time", context)
        domains = context.get("domains")
        metadata = _metadata(context, (id_path, time_path, "domains"))
        named = not any(is_known(str(m["role"])) for turns in spoken.values() for m in turns)
        is_ticket = any(_TICKET.fullmatch(path) for path in context)
        for key, turns in spoken.items():
            is_thread = any("Thread" in str(context.get(at)) for at in ("type", "channel/type"))
            is_ticket = is_ticket or is_thread
            divides = named and not key and not is_ticket and not unit.layout.start
            yield Draft(
                place,
                key or id,
                joined(place, turns, notes) if unit.layout.start else turns,
                domains if isinstance(domains, list | tuple) else (),
                time=time,
                metadata=metadata,
                mail=is_ticket or any(turn.get("markup") for turn in turns),
                pause=_PAUSE if divides else None,
            )

    def _messages(self, unit: Unit, notes: Notes, place: str) -> Iterator[Message]:
        if unit.kind == "transcript":
            draft = draft_of_text(place, str(unit.items[0]).splitlines(), notes)
            yield from (dict(message) for message in draft.messages)
        elif unit.kind == "texts":
            yield from _in_turn(unit, notes, place)
        elif unit.kind == "pair":
            yield from self._sides(unit.context[-1], unit.items, unit.path, notes, place)
        elif unit.kind == "exchanges":
            for item in unit.items:
                names = ("user", "assistant") if "user" in item and "assistant" in item else ()
                yield from self._sides(item, pair_of(item) or names, unit.path, notes, place)
        else:
            yield from self._listed(unit)

    def _sides(
        self, value: Record, sides: Sequence[str], path: str, notes: Notes, place: str
    ) -> Iterator[Message]:
        messages: list[Message] = []
        history = value.get("history")
        for exchange in history if isinstance(history, list) else ():
            for said, side in zip(exchange, ("user", "assistant"), strict=False):
                messages.append({"role": side, "content": str(said), "name": ""})
        time = _first("time", dict(flattened(value)))[0]
        for name, side in zip(sides, ("user", "assistant"), strict=True):
            said = opened(value[name])
            if name == "input" and isinstance(value.get("instruction"), str):
                said = "\n".join(filter(None, (value["instruction"], said)))
            latest = list(self._under(said, side, f"{path}.{name}", notes, place))
            if time:
                for message in latest:
                    message.setdefault("time", time)
            messages = continued(messages, latest) if messages else latest
        yield from messages

    def _under(
        self, value: Any, side: str, path: str, notes: Notes, place: str
    ) -> Iterator[Message]:
        """Yield what is said in a side of a pair."""
        value = opened(value)
        if isinstance(value, str):
            yield {"role": side, "content": value, "name": ""}
        elif isinstance(value, list) and all(isinstance(item, str) for item in value):
            yield {"role": side, "content": " ".join(value), "name": ""}
        elif units := self.tables.units(value, path, [], ""):
            for unit in units:
                yield from self._messages(unit, notes, place)
        elif isinstance(value, Mapping):
            layout = self.tables.layout(path, [value])
            if layout.text:
                flat = dict(flattened(value))
                role = next((flat[at] for at in layout.role if is_known(str(flat.get(at)))), side)
                yield from _said(value, str(role), flat, layout)
                return
            for name, inner in value.items():
                if isinstance(inner, list | Mapping) or str(name) in (
                    "output", "answer", "response", "input", "question", "query", "prompt", "text"
                ):
                    yield from self._under(inner, side, f"{path}.{name}", notes, place)

    def _listed(self, unit: Unit) -> Iterator[Message]:
        layout = unit.layout
        people = _people(unit)
        items = [item for item in unit.items if isinstance(item, Mapping)]
        if len(items) < len(unit.items):
            yield {"left_out": "a message that is no object"}
        last = next((at["current_node"] for at in unit.context if "current_node" in at), None)
        last = last or next((at["currentId"] for at in unit.context if "currentId" in at), None)
        programs = [item for item in items if str(dict(flattened(item)).get(next(iter(layout.role), ""))).lower() == "system"]
        keeps_system = len(programs) > 1 and len(programs) * 3 > len(items)
        threads = Counter(str(_value(dict(flattened(item)), layout.thread)) for item in items)
        for item in on_path(items, layout, last):
            if "left_out" in item:
                yield dict(item)
                continue
            yield from self._with_replies(item, unit, people, keeps_system, threads)

    def _with_replies(
        self, item: Record, unit: Unit, people: Mapping[str, Record], keeps: bool, threads: Counter[str]
    ) -> Iterator[Message]:
        flat = dict(flattened(item))
        layout = unit.layout
        replies = [inner for name, inner in flat.items() if self._are_replies(inner, unit, name)]
        group = _value(flat, layout.group) if layout.group else None
        thread = _value(flat, layout.thread) if layout.thread else None
        if thread is not None and threads[str(thread)] > 1:
            group = thread
        if replies and group is None:
            group = _value(flat, ("id", "post/id")) or f"{unit.path}{id(item)}"
        group = str(group).rpartition("/conversations/")[2] if group is not None else None
        beside = {} if group is None or (unit.is_row and group != str(thread)) else {"group": group}
        if id(item) in unit.places:
            beside["place"] = unit.places[id(item)]
        for message in _message(item, flat, layout, people, keeps):
            yield {**message, **beside}
        for inner in replies:
            for reply in inner:
                flat = dict(flattened(reply))
                ends = {end: at for at in flat if (end := at.rpartition("/")[2])}
                near = Layout(
                    **{
                        name: [ends[at.rpartition("/")[2]] for at in getattr(layout, name) if at.rpartition("/")[2] in ends]
                        for name in ("role", "name", "text", "time")
                    }
                )
                for message in _message(reply, flat, near, people, keeps):
                    yield {**message, **beside}

    def _are_replies(self, value: Any, unit: Unit, name: str) -> bool:
        if not isinstance(value, list) or not value or not isinstance(value[0], Mapping):
            return False
        ends = {at.rpartition("/")[2] for at in (*unit.layout.text,)}
        roles = {at.rpartition("/")[2] for at in unit.layout.role}
        fields = {at.rpartition("/")[2] for at, _ in flattened(value[0])}
        if EARLIER.search(name):
            return False
        return name not in unit.layout.text and bool(ends & fields) and bool(roles & fields)


@cache
def system_rows() -> list[dict[str, Any]]:
    """Return the rows of systems whose own words say too little."""
    text = Path(__file__).with_name("systems.toml").read_text(encoding="utf-8")
    return list(tomllib.loads(text)["systems"])


def _header_of_flat(read: Read) -> list[str]:
    """Return the fields of records that are rows of a table; none if they hold anything."""
    fields: dict[str, None] = {}
    for _, record in islice(read(), _SURVEYED):
        if isinstance(record, InputError):
            continue
        if not isinstance(record, Mapping) or not all(map(_is_cell, record.values())):
            return []
        if pair_of(record) or description_of(record) or {"start", "end"} <= record.keys():
            return []
        fields |= dict.fromkeys(record)
    return list(fields)


def _is_cell(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(item, str | int | float) for item in value) and len(value) < 2
    is_json = isinstance(value, str) and value[:2] in ('{"', "[{", "{'")
    return not isinstance(value, Mapping) and not is_json


def _value(flat: Record, paths: Sequence[str]) -> Any:
    return next((flat[at] for at in paths if flat.get(at) not in (None, "", [])), None)


def _message(
    item: Record, flat: Record, layout: Layout, people: Mapping[str, Record], keeps: bool
) -> Iterator[Message]:
    """Yield what is left out of one message, then what it says."""
    if why := _left_out(flat, layout):
        yield {"left_out": why}
        return
    role = _value(flat, layout.role)
    name = _value(flat, layout.name)
    person = people.get(str(role)) or people.get(str(name)) or {}
    role = _value(person, ("role", "ParticipantRole", "type", "user_type")) or role
    name = _person_name(person) or name
    roles = layout.row.get("roles", {})
    if str(role).isdecimal() and roles and str(role) not in roles:
        yield {"left_out": f"a message whose {layout.role[0]} is {role!r}"}
        return
    role = roles.get(str(role).lower(), role)
    for path, true in layout.flags.items():
        if role is None and isinstance(flat.get(path), bool):
            role = true if flat[path] else {"user": "assistant", "assistant": "user"}[true]
    if layout.start and role is None:
        role = "None"
    if role is None:
        if _value(flat, layout.text) is not None:
            yield {"left_out": "a message without a speaker"}
        return
    if str(role).lower() == "supervisor":
        yield {"left_out": "a private note"}
        return
    kind = next(iter(layout.role), "")
    if kind.rpartition("/")[2] in ("type", "event") and role == flat.get(kind) and not is_known(str(role)):
        yield {"left_out": f"a message whose {kind} is {str(role)[:40]!r}"}
        return
    if any(flat.get(path) for path in layout.row.get("notices", ())):
        yield {"left_out": "a notice"}
        return
    if is_program(str(role)) and not (keeps and str(role).lower() == "system"):
        yield {"left_out": f"a message of the role {role}"}
        return
    role = _repaired(str(role))
    role = _OF_MODELS.get(role.lower(), role)
    name = _repaired(str(name)) if name is not None else role
    name = "" if name == "None" else name
    message = {"role": role, "name": _called(name)}
    yield from _said(item, str(role), flat, layout, message, people)


def _said(
    item: Record,
    role: str,
    flat: Record,
    layout: Layout,
    message: Message | None = None,
    people: Mapping[str, Record] | None = None,
) -> Iterator[Message]:
    message = message or {"role": role, "name": ""}
    path, content = "", ""
    left: list[str] = []
    for at in layout.text:
        pieces = list(parts(flat.get(at)))
        left = left or [kind for kind, _ in pieces if kind]
        texts = [text for kind, text in pieces if not kind and text]
        if texts:
            path = at
            texts = list(map(_repaired, texts))
            if layout.row.get("marks"):
                texts = [unescape(_MARK.sub(partial(_shown, people or {}), text)) for text in texts]
            has_spaces = any(text[:1].isspace() or text[-1:].isspace() for text in texts)
            content = "".join(texts) if has_spaces else reduce(spaced, texts)
            left = [kind for kind, _ in pieces if kind]
            break
    left += beside({**item, **{at.rpartition("/")[2]: value for at, value in flat.items()}})
    yield from ({"left_out": kind} for kind in left)
    if _AGENT_NOTICE.match(content):
        yield {"left_out": "a notice to an agent"}
        return
    if content.strip() or not left:
        message |= {field: item[field] for field in _LABELS if _are_labels(item.get(field))}
        if (time := _value(flat, layout.time)) is not None:
            message["time"] = time
        if layout.start:
            message["start"] = _value(flat, layout.start)
            message["channel"] = _value(flat, layout.channel)
            message["speaker"] = None if role == "None" else role
        is_markup = re.search("html|rich", path.lower()) or re.search(r"</\w+>|<br\b", content)
        plain = "plain" in path.lower() or str(flat.get("body/contentType")) == "text"
        yield {**message, "content": content, "markup": bool(is_markup) and not plain}


def _shown(people: Mapping[str, Record], mark: re.Match[str]) -> str:
    """Return a mark of Slack as people see it: a name, a channel, or the label of a link."""
    kind, target, text = mark.groups()
    if kind == "@":
        return str(_person_name(people.get(target, {})) or text or target)
    return text or f"{kind.strip('!')}{target}"


def _person_name(person: Record) -> Any:
    flat = dict(flattened(person))
    return _value(flat, ("profile/real_name", "real_name", "user_profile/real_name", "profile/display_name", "name"))


def _repaired(text: str) -> str:
    """Return a text whose UTF-8 was read as Latin-1 as it was."""
    if _MOJIBAKE.search(text):
        with suppress(UnicodeError):
            return text.encode("latin-1").decode()
    return text


def _are_labels(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, str) or (isinstance(item, Mapping) and {"name", "value"} <= item.keys())
        for item in value
    )


def _left_out(flat: Record, layout: Layout) -> str:
    for path, value in flat.items():
        if value and _GONE.fullmatch(path) and not isinstance(value, list | Mapping):
            return "a deleted message"
    for path in layout.hidden:
        if flat.get(path) is True:
            return "a call" if path.endswith(("call", "missed")) else "a private note"
    if any(flat.get(path) is False for path in layout.published):
        return "a private note"
    for path, value in flat.items():
        if path.endswith("recipient") and isinstance(value, str) and value != "all" and "/" in path:
            return "a call of a tool"
    wanted = layout.row.get("hidden", {})
    if any(str(flat.get(path)).lower() in values for path, values in wanted.items()):
        return "a private note"
    for path in layout.kinds:
        end = path.rpartition("/")[2]
        value = flat.get(path)
        if not isinstance(value, str) or (path in layout.role) or is_known(value):
            continue
        if end.lower() == "visibility":
            if value.lower() not in ("all", "public", "everyone"):
                return "a private note"
            continue
        if end in ("source", "src", "direction", "purpose"):
            continue
        if _PRIVATE.search(value):
            return "a private note"
        if kind := kind_of(value):
            return kind
        if _NOTICE.search(value):
            return f"a message whose {end} is {value[:40]!r}"
    state = str(flat.get("message_state", "")).lower()
    return "a deleted message" if state == "deleted" else ""


def _called(speaker: str) -> str:
    name = speaker.strip()
    return "" if name.casefold() in WELL_KNOWN or _NO_NAME.fullmatch(name) else name


def _in_turn(unit: Unit, notes: Notes, place: str) -> Iterator[Message]:
    speakers = unit.context[-1].get("speakers")
    if isinstance(speakers, list) and len(speakers) == len(unit.items):
        for who, text in zip(speakers, unit.items, strict=True):
            yield {"role": str(who), "content": text, "name": _called(str(who))}
        return
    notes.guess(IN_TURN, place)
    for number, text in enumerate(unit.items):
        yield {"role": ("first", "second")[number % 2], "content": text, "name": ""}


def on_path(items: Sequence[Record], layout: Layout, last: Any = None) -> Iterator[Record]:
    """Yield the messages that lead to the last one where there are branches, else all of them."""
    nodes: dict[str, Record] = {}
    if layout.parent:
        for item in items:
            nodes[str(_value(item, ("id", "uuid", "messageId", "message_id")))] = item
    parents = {name: str(item.get(layout.parent)) for name, item in nodes.items()}
    children = Counter(parent for parent in parents.values() if parent in nodes)
    has_branches = last is not None or max(children.values(), default=0) > 1
    if not has_branches or "None" in nodes or len(nodes) < len(items):
        yield from items
        return
    place = str(last) if last else next(reversed(nodes))
    path: list[str] = []
    while place in nodes and place not in path:
        path.append(place)
        place = parents[place]
    for name in reversed(path):
        yield nodes[name]
    for _ in nodes.keys() - set(path):
        yield {"left_out": "a message of a branch that was abandoned"}


def _people(unit: Unit) -> dict[str, Record]:
    """Return the persons that lists beside the messages name, by their ids."""
    people: dict[str, Record] = {}
    for item in unit.items:
        if isinstance(item, Mapping) and isinstance(item.get("user_profile"), Mapping):
            people[str(item.get("user"))] = {"user_profile": item["user_profile"]}
    for around in unit.context:
        for inner in around.values():
            for person in inner if isinstance(inner, list) else ():
                if not isinstance(person, Mapping) or len(person) > 40:
                    continue
                for name, value in person.items():
                    if name in _PERSON_IDS and isinstance(value, str | int) and not person.keys().isdisjoint(
                        ("name", "role", "type", "ParticipantRole", "real_name")
                    ) and person.keys().isdisjoint(("text", "body", "content", "Content", "author_id")):
                        people[str(value)] = person
        requester = _value(dict(flattened(around)), ("requester_id", "requester/id", "ticket/requester_id"))
        if requester is not None:
            people.setdefault(str(requester), {"role": "requester"})
            people[str(requester)] = {"role": "requester", **people[str(requester)]}
    return people


def continued(before: list[Message], latest: list[Message]) -> list[Message]:
    """Return messages and those after them, which may begin with a history of earlier ones."""
    def keys(messages: list[Message]) -> list[Any]:
        return [
            tuple(str(message.get(field)) for field in ("role", "content", "left_out"))
            for message in messages
        ]

    old, new = keys(before), keys(latest)
    if new == old[: len(new)]:
        return before
    said = [key for key in old if key[2] == "None"]
    places = [place for place, key in enumerate(new) if key[2] == "None"]
    if said and said == [new[place] for place in places[: len(said)]]:
        return before + latest[places[len(said) - 1] + 1 :]
    later = [new[place] for place in places]
    if later and later == said[: len(later)]:
        return before
    sizes = range(min(len(old), len(new)), 0, -1)
    shared = next((size for size in sizes if old[-size:] == new[:size]), 0)
    return before + latest[shared:]


def _versions(units: list[Unit]) -> list[Unit]:
    """Keep one of several versions of a conversation in a record, such as two answers."""
    first: dict[Any, Unit] = {}
    kept = []
    for unit in units if len(units) > 1 else ():
        opening = first_text(unit)
        id = _id(unit, _fields(unit))[0]
        key = (opening, str(id)) if id != "" else (opening, _place_of(unit))
        if opening and key in first:
            first[key].more.append(unit)
            continue
        first[key] = unit
        kept.append(unit)
    return kept or units


def _place_of(unit: Unit) -> int:
    return id(unit.context[-1]) if unit.context else 0


def _shared(unit: Unit) -> str:
    """Return what records of one dialogue share: the id of a session, a thread or the like."""
    if unit.is_row:
        flat = dict(flattened(unit.items[0]))
        value = _value(flat, unit.layout.group)
        return "" if value is None else str(value).rpartition("/conversations/")[2]
    ranked = _ranked(_fields(unit), "group")
    return str(ranked[0][1]) if ranked else ""


def _fields(unit: Unit) -> dict[str, Any]:
    """Return the scalars around a conversation, the innermost first."""
    around = list(reversed(unit.context))
    fields: dict[str, Any] = {}
    if unit.is_row:
        rows = [dict(flattened(item)) for item in unit.items]
        taken = {*unit.layout.role, *unit.layout.text, *unit.layout.name, *unit.layout.time}
        for path, value in rows[0].items():
            if path not in taken and all(row.get(path) == value for row in rows):
                fields[path] = value
        for row in rows:
            if _value(row, unit.layout.text) is None and _value(row, unit.layout.role) is None:
                for path, value in row.items():
                    fields.setdefault(path, value)
    for level in around:
        for path, value in flattened(opened(level) if not isinstance(opened(level), list) else {}):
            if isinstance(value, str | int | float | list):
                fields.setdefault(path, value)
    if unit.kind == "pair":
        for side in unit.items:
            for path in [path for path in fields if path.split("/")[0] == side]:
                del fields[path]
    return fields


def _ranked(fields: Record, kind: str) -> list[tuple[str, Any]]:
    ranks = [
        (rank, path, value)
        for path, value in fields.items()
        if isinstance(value, str | int | float) and not isinstance(value, bool) and value != ""
        and (rank := name_rank(kind, path)) is not None
    ]
    return [(path, value) for _, path, value in sorted(ranks, key=lambda part: part[0])]


def _first(kind: str, fields: Record) -> tuple[Any, str]:
    ranked = _ranked(fields, kind)
    return (ranked[0][1], ranked[0][0]) if ranked else ("", "")


def _id(unit: Unit, context: Record) -> tuple[Any, str]:
    ranked = _ranked(context, "group") or _ranked(context, "id")
    if ranked:
        path, value = ranked[0]
        if isinstance(value, str):
            value = value.rpartition("/conversations/")[2]
        return value, path
    for path, value in context.items():
        if isinstance(value, str) and "/conversations/" in value:
            return value.rpartition("/conversations/")[2], path
    key = context.get("", "") or (unit.key if unit.kind == "messages" and re.search(r"[\d@]", unit.key) else "")
    return key, ""


def _metadata(context: Record, used: Sequence[str]) -> dict[str, Any]:
    """Return texts, numbers and lists of texts that lie around the messages."""
    kept: dict[str, Any] = {}
    for path, value in context.items():
        if path in used or path == "" or len(kept) >= _MOST_FIELDS:
            continue
        name = path.rpartition("/")[2]
        name = path if name in kept or not name else name
        small = _small(value)
        if small not in (None, "", []):
            kept[name] = small
    return kept


def _small(value: Any) -> Any:
    """Return a value of metadata: a short text, a number, or a list of texts; else None."""
    if isinstance(value, list):
        texts = [str(item) for item in value if isinstance(item, str | int)]
        if value and all(isinstance(item, Mapping) and len(item) < 4 for item in value):
            texts = [str(item["name" if "name" in item else "tag"]) for item in value if not item.keys().isdisjoint(("name", "tag"))]
        return texts if sum(map(len, texts)) <= _LONGEST_VALUE else None
    if isinstance(value, str):
        return value if len(value) <= _LONGEST_VALUE else None
    return value
