"""KVRET, also called the Stanford multi-domain set (SMD): drivers who ask an assistant in the car.

Layout: ``kvret_{train,dev,test}_public.json``, each a list of dialogues.

The label of a dialogue is its task: navigate, schedule or weather. The assistant's first turn after a driver's turn
carries what the driver said in it: values in ``slots``, and ``requested`` with a flag for every slot that was touched.
So the driver informs of the slots whose value is new, and requests those that are flagged and have no value yet. 10
turns have no text and are left out, as is the one dialogue that has no turn.
"""

from ...dialogue import Dialogue, Turn
from ..corpus import SPLITS, Corpus
from ..records import Raw, each_of, field, one_of
from ..source.parsing import json_list, split_files, without_empty

_SOURCE = "https://nlp.stanford.edu/blog/a-new-multi-turn-multi-domain-task-oriented-dialogue-dataset"
_FILES = {split: (f"kvret_{split}_public.json",) for split in SPLITS}
_RECORDS = without_empty("dialogue", split_files(json_list, _FILES))
_ROLES = {"driver": "user", "assistant": "assistant"}

_Said = tuple[str, str, dict[str, str], list[str]]  # role, text, values, flagged slots


def _dialogue(raw: Raw) -> Dialogue:
    scenario = field(raw, "scenario", dict)
    turns = _turns(each_of(raw, "dialogue", _said))
    intent = field(field(scenario, "task", dict), "intent", str)
    return Dialogue(tuple(turns), field(scenario, "uuid", str), (intent,))


def _said(raw: Raw) -> _Said:
    role = _ROLES[one_of(raw, "turn", _ROLES)]
    data = field(raw, "data", dict)
    text = field(data, "utterance", str)
    if role == "user":
        return role, text, {}, []
    slots, requested = field(data, "slots", dict), field(data, "requested", dict)
    values = {slot: field(slots, slot, str).strip() for slot in slots}
    return role, text, values, [slot for slot in requested if field(requested, slot, bool)]


def _turns(said: tuple[_Said, ...]) -> list[Turn]:
    turns: list[Turn] = []
    known: dict[str, str] = {}
    asker = ""  # what the driver has just said
    for role, text, values, flagged in said:
        if role == "user":
            asker = text.strip()
        else:
            if asker:
                turns[-1] = _labelled(turns[-1], values, flagged, known)
            known.update((slot, value.lower()) for slot, value in values.items())
            asker = ""
        if text.strip():
            turns.append(Turn(role, text))
    return turns


def _labelled(turn: Turn, values: dict[str, str], flagged: list[str], known: dict[str, str]) -> Turn:
    informed = [(slot.lower(), value) for slot, value in values.items() if known.get(slot) != value.lower()]
    requested = [(slot.lower(), "") for slot in flagged if slot not in values and slot not in known]
    acts = ["inform"] * bool(informed) + ["request"] * bool(requested)
    return Turn(turn.role, turn.content, tuple(acts), (*informed, *requested))


CORPORA = (Corpus("kvret", _FILES, _RECORDS, _dialogue, _SOURCE, "none stated", "research"),)
