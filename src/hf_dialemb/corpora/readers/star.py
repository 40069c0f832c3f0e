"""STAR: task dialogues of crowd workers who play user and wizard; the wizard mostly picks replies that are suggested.

Layout: ``dialogues/<number>.json``, a dialogue each.

What is said are the events of ``User`` and ``Wizard`` whose action is ``utter`` or ``pick_suggestion``; the wizard's
drafts (``request_suggestions``) and the instructions to the user are not. 447 of the 6,652 dialogues broke off before
anything was said; they are left out. The dialogue act of a wizard's turn is its ``ActionLabel``.

The labels of a dialogue are its domains; 145 dialogues on trivia name none. Where there is one task, such as
``hotel_book``, it is the intent of the first user turn, since one task is one thing that the user wants. An id begins
with the dialogue's ``CompletionLevel``: one that starts with ``Complete/`` did not break off. There is no official
split; the number decides.
"""

from dataclasses import replace
from pathlib import PurePosixPath

from ...dialogue import Dialogue, Turn
from ...errors import InputError
from ..corpus import SPLITS, Corpus, Records, Source
from ..records import Raw, convert_each, each_of, field, hashed_split, one_of, optional
from ..source.parsing import parse_json

_SOURCE = "https://github.com/RasaHQ/STAR"
_DIALOGUES = "dialogues/*.json"
_ROLES = {"User": "user", "Wizard": "assistant"}
_AGENTS = (*_ROLES, "UserGuide", "KnowledgeBase")
_SAID = ("utter", "pick_suggestion")


def _records(source: Source, split: str) -> Records:
    for name, stream in source.files(_DIALOGUES):
        if hashed_split(PurePosixPath(name).stem) == split:
            raw = parse_json(name, stream.read())
            if not _is_silent(raw):
                yield name, raw


def _is_silent(raw: Raw) -> bool:
    try:
        return not _said(raw)
    except InputError:
        return False


def _said(raw: Raw) -> list[tuple[str, Raw]]:
    """The events that are utterances, each with its role."""
    events = each_of(raw, "Events", _event)
    return [(_ROLES[agent], event) for agent, action, event in events if agent in _ROLES and action in _SAID]


def _event(raw: Raw) -> tuple[str, str, Raw]:
    return one_of(raw, "Agent", _AGENTS), field(raw, "Action", str), raw


def _dialogue(raw: Raw) -> Dialogue:
    turns = list(convert_each(_said(raw), "utterances", _turn))
    scenario = field(raw, "Scenario", dict)
    capabilities = field(scenario, "WizardCapabilities", list)
    if len(capabilities) == 1 and not field(scenario, "MultiTask", bool):
        task = field(capabilities[0], "Task", str)
        first = next((index for index, turn in enumerate(turns) if turn.role == "user"), None)
        if first is not None:
            turns[first] = replace(turns[first], intents=(task,))
    identifier = f"{field(raw, 'CompletionLevel', str)}/{field(raw, 'DialogueID', int)}"
    return Dialogue(tuple(turns), identifier, _domains(scenario))


def _turn(role: str, raw: Raw) -> Turn:
    label = optional(raw, "ActionLabel", str)
    return Turn(role, field(raw, "Text", str), (label.lower(),) if label else ())


def _domains(scenario: Raw) -> tuple[str, ...]:
    named = [name for name in field(scenario, "Domains", list) if name is not None]
    for name in named:
        if not isinstance(name, str):
            got = type(name).__name__
            raise InputError(f"field Domains: got {got} in the list, expected strings or null; repair the record")
    return tuple(named)


_FILES = dict.fromkeys(SPLITS, (_DIALOGUES,))
CORPORA = (Corpus("star", _FILES, _records, _dialogue, _SOURCE, "MIT", "permissive"),)
