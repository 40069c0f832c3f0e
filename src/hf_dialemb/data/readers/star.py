"""STAR and Chit-Chat: task dialogues of crowd workers, and small talk of strangers.

Neither has official splits.

STAR's layout: ``dialogues/<number>.json``, a dialogue each. Drafts of the wizard and instructions
to the user were not said. 447 of the 6,652 dialogues broke off before anything was said and are
left out. The act of a wizard's turn is its ``ActionLabel``. The only task of a dialogue, such as
``hotel_book``, is the intent of its first user turn. An id that begins with ``Complete/`` belongs
to a dialogue that did not break off. A hash of the number decides the split.

Chit-Chat's layout: ``dataset.json``, an object from id to conversation, as in the package
``chitchat-dataset``. Its messages lie in lists, each of one sender; every message is a turn. Who
speaks first is the user. 33 messages without text are left out. A hash of the id decides the split:
90 % train, 5 % dev, 5 % test.
"""

from contextlib import suppress
from dataclasses import replace
from pathlib import PurePosixPath

from ...dialogue import ROLES, Dialogue, Turn, iso_time
from ...errors import InputError
from ..corpus import Records, Source, catalogued
from ..parsing import json_members, parse_json
from ..raw_records import (
    Raw,
    convert_each,
    each_of,
    field,
    flattened,
    hashed_split,
    names,
    one_of,
    optional,
)
from .shapes import Labels, TurnList, split_patterns

_DIALOGUES = "dialogues/*.json"
_CHAT_FILE = "dataset.json"
_ROLES = {"User": "user", "Wizard": "assistant"}
_AGENTS = (*_ROLES, "UserGuide", "KnowledgeBase")


def _is_spoken(event: Raw) -> bool:
    agent, action = one_of(event, "Agent", _AGENTS), field(event, "Action", str)
    return agent in _ROLES and action in ("utter", "pick_suggestion")


def _act(event: Raw) -> Labels:
    return tuple(filter(None, [optional(event, "ActionLabel", str).lower()])), (), ()


_EVENTS = TurnList("Events", "Agent", "Text", _ROLES, labels=_act, is_spoken=_is_spoken)


def _records(source: Source, split: str) -> Records:
    for name, stream in source.files(_DIALOGUES):
        if hashed_split(PurePosixPath(name).stem) == split:
            record = parse_json(name, stream.read())
            with suppress(InputError):  # a malformed record is reported where it is converted
                if not _EVENTS.spoken(record):
                    continue
            yield name, record


def _dialogue(record: Raw) -> Dialogue:
    turns = list(_EVENTS.spoken(record))
    scenario = field(record, "Scenario", dict)
    capabilities = field(scenario, "WizardCapabilities", list)
    if len(capabilities) == 1 and not field(scenario, "MultiTask", bool):
        task = field(capabilities[0], "Task", str)
        first = next((place for place, turn in enumerate(turns) if turn.role == "user"), None)
        if first is not None:
            turns[first] = replace(turns[first], intents=(task,))
    domains = [domain for domain in field(scenario, "Domains", list) if domain is not None]
    identifier = f"{field(record, 'CompletionLevel', str)}/{field(record, 'DialogueID', int)}"
    return Dialogue(tuple(turns), identifier, names({"Domains": domains}, "Domains"))


def _chat_records(source: Source, split: str) -> Records:
    members = json_members(source, _CHAT_FILE)
    return (
        (place, (key, record))
        for place, (key, record) in members
        if hashed_split(key, parts=20) == split
    )


def _chat_dialogue(key: str, record: Raw) -> Dialogue:
    messages = [
        message
        for message in flattened(each_of(record, "messages", _chat_messages))
        if message[1].strip()
    ]
    roles = dict(zip(dict.fromkeys(sender for sender, *_ in messages), ROLES, strict=False))
    turns = tuple(
        Turn(roles.get(sender, sender), text, time=time) for sender, text, time in messages
    )
    return Dialogue(turns, key, time=turns[0].time if turns else "")


def _chat_messages(block: Raw) -> tuple[tuple[str, str, str], ...]:
    """Return sender, text and time of the messages that a sender wrote in a row."""
    return convert_each(field({"block": block}, "block", list), "block", _chat_message)


def _chat_message(message: Raw) -> tuple[str, str, str]:
    return (
        field(message, "sender", str),
        field(message, "text", str),
        iso_time(field(message, "timestamp", str)),
    )


CORPORA = catalogued(
    {
        "chitchat": (split_patterns(_CHAT_FILE), _chat_records, _chat_dialogue),
        "star": (split_patterns(_DIALOGUES), _records, _dialogue),
    }
)
