"""Schema-Guided Dialogue (SGD): task dialogues of a user and a system over many services, with acts, slots and intents.

Layout: ``{train,dev,test}/dialogues_*.json``, each a list of dialogues; of KETOD ``{train,dev,test}.json``, written by
the authors' ``gen_ketod_data.py``.

The label of a dialogue is its services, such as ``Restaurants_2``. Two dialogues of the test split end in a system turn
without text; nothing was said there, so that turn is left out.

KETOD are 5,324 of these dialogues, by the same ids, if not always in the same split. Some replies of the system were
enriched with chat about what was mentioned (``enriched_utter``); that is not read, but SGD's text (``utterance``), to
which the acts belong, as in Dialog2Flow. The dialogues do not list their services: their domains are those of turns.
"""

from ...dialogue import Dialogue, Turn
from ..corpus import SPLITS, Corpus
from ..records import Raw, convert_each, distinct, each_of, field, flattened, names, one_of
from ..source.parsing import json_list, split_files, with_split

_EXTRACT = "14,734 of the 16,142 dialogues of train"
_ROLES = {"USER": "user", "SYSTEM": "assistant"}


def _dialogue(split: str, raw: Raw) -> Dialogue:
    identifier = field(raw, "dialogue_id", str)  # repeats between the splits
    turns = field(raw, "turns", list)
    if turns and field(turns[-1], "utterance", str) == "":
        turns = turns[:-1]
    return Dialogue(convert_each(turns, "turns", _turn), f"{split}/{identifier}", names(raw, "services"))


def _turn(raw: Raw) -> Turn:
    role = _ROLES[one_of(raw, "speaker", _ROLES)]
    acts: list[str] = []
    slots: list[tuple[str, str]] = []
    intents: list[str] = []
    for frame in field(raw, "frames", list):
        for action in field(frame, "actions", list):
            acts.append(field(action, "act", str))
            slot, values = field(action, "slot", str), field(action, "values", list)
            if slot:
                slots.append((slot, str(values[0]) if values else ""))
        if "state" in frame:
            intents.append(field(frame["state"], "active_intent", str))
    wanted = tuple(dict.fromkeys(intent for intent in intents if intent != "NONE"))
    return Turn(role, field(raw, "utterance", str), distinct(acts), tuple(slots), wanted)


def _ketod_dialogue(split: str, raw: Raw) -> Dialogue:
    services = dict.fromkeys(flattened(each_of(raw, "turns", _services)))
    return _dialogue(split, {**raw, "services": list(services)})


def _services(turn: Raw) -> list[str]:
    return [field(frame, "service", str) for frame in field(turn, "frames", list)]


_FILES = {split: (f"{split}/dialogues_*.json",) for split in SPLITS}
_KETOD_FILES = {split: (f"{split}.json",) for split in SPLITS}
CORPORA = (
    Corpus(
        "sgd", _FILES, with_split(split_files(json_list, _FILES)), _dialogue,
        "https://github.com/google-research-datasets/dstc8-schema-guided-dialogue", "CC BY-SA 4.0", "share-alike",
        extract=_EXTRACT,
    ),
    Corpus(
        "ketod", _KETOD_FILES, with_split(split_files(json_list, _KETOD_FILES)), _ketod_dialogue,
        "https://github.com/facebookresearch/ketod", "MIT; the dialogues are SGD's, CC BY-SA 4.0", "share-alike",
        real=False,
    ),
)  # fmt: skip
