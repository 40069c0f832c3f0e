"""Frames: dialogues of users who plan a trip and wizards who search flights and hotels, with acts and slots.

Layout: ``frames.json``, a list of dialogues. Most of the file are database results, which are passed over.

Arguments of acts that only point to frames (``ref``, ``id``, ``read``, ``write``) are no slots, and the argument
``intent`` is an intent. There is one domain, travel, and no official split: a hash of the id decides.
"""

from ....dialogue import Dialogue, Turn
from ...corpus import SPLITS, Corpus
from ...records import Raw, distinct, each_of, field, one_of
from ...source.parsing import hashed_by, json_list, out_of_all

_SOURCE = "https://www.microsoft.com/en-us/research/project/frames-dataset"
_LICENCE = "terms of its own; may not be passed on"
_FILE = "frames.json"
_RECORDS = out_of_all(json_list, _FILE, hashed_by("id"))
_ROLES = {"user": "user", "wizard": "assistant"}
_POINTERS = ("ref", "id", "read", "write")


def _dialogue(raw: Raw) -> Dialogue:
    return Dialogue(each_of(raw, "turns", _turn), field(raw, "id", str), ("travel",))


def _turn(raw: Raw) -> Turn:
    role = _ROLES[one_of(raw, "author", _ROLES)]
    acts, arguments = [], []
    for act in field(field(raw, "labels", dict), "acts", list):
        acts.append(field(act, "name", str))
        for argument in field(act, "args", list):
            name, value = field(argument, "key", str).lower(), argument.get("val")
            if name not in _POINTERS:
                arguments.append((name, "" if value is None else str(value)))
    slots = dict.fromkeys(argument for argument in arguments if argument[0] != "intent")
    intents = dict.fromkeys(value for name, value in arguments if name == "intent" and value)
    return Turn(role, field(raw, "text", str), distinct(acts), tuple(slots), tuple(intents))


_FILES = dict.fromkeys(SPLITS, (_FILE,))
CORPORA = (Corpus("frames", _FILES, _RECORDS, _dialogue, _SOURCE, _LICENCE, "research", real=False),)
