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
from ..corpus import Records, Source, catalogued
from ..parsing import json_members, parse_json
from ..raw_records import MISFORMED, Raw, flattened, hashed_split
from .shapes import Labels, TurnList, split_patterns

_DIALOGUES = "dialogues/*.json"
_CHAT_FILE = "dataset.json"
_ROLES = {"User": "user", "Wizard": "assistant"}


def _is_spoken(event: Raw) -> bool:
    return event["Agent"] in _ROLES and event["Action"] in ("utter", "pick_suggestion")


def _act(event: Raw) -> Labels:
    return tuple(filter(None, [event.get("ActionLabel", "").lower()])), (), ()


_EVENTS = TurnList("Events", "Agent", "Text", _ROLES, labels=_act, is_spoken=_is_spoken)


def _records(source: Source, split: str) -> Records:
    for name, stream in source.files(_DIALOGUES):
        if hashed_split(PurePosixPath(name).stem) == split:
            record = parse_json(name, stream.read())
            with suppress(*MISFORMED):  # a malformed record is reported where it is converted
                if not _EVENTS.spoken(record):
                    continue
            yield name, record


def _dialogue(record: Raw) -> Dialogue:
    turns = list(_EVENTS.spoken(record))
    scenario = record["Scenario"]
    capabilities = scenario["WizardCapabilities"]
    if len(capabilities) == 1 and not scenario["MultiTask"]:
        task = capabilities[0]["Task"]
        first = next((place for place, turn in enumerate(turns) if turn.role == "user"), None)
        if first is not None:
            turns[first] = replace(turns[first], intents=(task,))
    domains = [domain for domain in scenario["Domains"] if domain is not None]
    identifier = f"{record['CompletionLevel']}/{record['DialogueID']}"
    return Dialogue(tuple(turns), identifier, tuple(domains))


def _chat_records(source: Source, split: str) -> Records:
    return (
        (place, (key, record))
        for place, (key, record) in json_members(source, _CHAT_FILE)
        if hashed_split(key, parts=20) == split
    )


def _chat_dialogue(key: str, record: Raw) -> Dialogue:
    messages = [
        message
        for message in map(_chat_message, flattened(record["messages"]))
        if message[1].strip()
    ]
    roles = dict(zip(dict.fromkeys(sender for sender, *_ in messages), ROLES, strict=False))
    turns = tuple(
        Turn(roles.get(sender, sender), text, time=time) for sender, text, time in messages
    )
    return Dialogue(turns, key, time=turns[0].time if turns else "")


def _chat_message(message: Raw) -> tuple[str, str, str]:
    return message["sender"], message["text"], iso_time(message["timestamp"])


CORPORA = catalogued(
    {
        "chitchat": (split_patterns(_CHAT_FILE), _chat_records, _chat_dialogue),
        "star": (split_patterns(_DIALOGUES), _records, _dialogue),
    }
)
