"""STAR: task dialogues of crowd workers who play user and wizard; and a slice of it that comes with the package.

Layout: ``dialogues/<number>.json``, a dialogue each. Drafts of the wizard and instructions to the user were not said.
447 of the 6,652 dialogues broke off before anything was said and are left out. The act of a wizard's turn is its
``ActionLabel``. The only task of a dialogue, such as ``hotel_book``, is the intent of its first user turn. An id that
begins with ``Complete/`` belongs to a dialogue that did not break off. A hash of the number decides the split.

``star_small`` has the first 28 complete dialogues of each of sixteen tasks from train, and the first 11 from test, by a
digest of their ids. Its domain is the task, which clusters find better than STAR's domains. The licence is in
``star_small_licence.txt``; ``training_scripts/pack_star.py`` packs the files.
"""

import gzip
import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath

from ...dialogue import Dialogue
from ...errors import InputError
from ..corpus import Records, Source, catalogued
from ..parsing import parse_json
from ..records import Raw, field, hashed_split, names, one_of, optional
from .shapes import Labels, TurnList, split_patterns

SIZES = {"train": 28, "test": 11}  # how many dialogues of each task a split of the slice has
_DIALOGUES = "dialogues/*.json"
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


def packed(split: str) -> Path:
    """Return the path of a split of the slice, a dialogue a line."""
    return Path(__file__).with_name(f"star_small_{split}.jsonl.gz")


def _packed_records(source: object, split: str) -> Records:
    with gzip.open(packed(split), "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            yield f"star_small {split}:{number}", json.loads(line)


def _packed_dialogue(record: Raw) -> Dialogue:
    dialogue = Dialogue.from_json(record)
    return replace(dialogue, domains=dialogue.turns[0].intents)


CORPORA = catalogued(
    {
        "star": (split_patterns(_DIALOGUES), _records, _dialogue),
        "star_small": (dict.fromkeys(SIZES, ()), _packed_records, _packed_dialogue),
    }
)
