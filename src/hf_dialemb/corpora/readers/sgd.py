"""SGD, the Schema-Guided Dialogues: ``{train,dev,test}/dialogues_*.json``.

The domains are services, such as ``Restaurants_2``. Ids repeat between the splits. Two dialogues end in a turn without
text, which is left out.
"""

from functools import partial

from ..corpus import catalogued
from ..parsing import json_list, split_files, with_split
from ..records import Raw, distinct, field, names
from .shapes import UPPER_CASE_ROLES, Labels, TurnList, split_patterns


def _labels(turn: Raw) -> Labels:
    """Read the labels in the frames of a turn."""
    acts, slots, intents = [], [], []
    for frame in field(turn, "frames", list):
        for action in field(frame, "actions", list):
            acts.append(field(action, "act", str))
            slot, values = field(action, "slot", str), field(action, "values", list)
            if slot:
                slots.append((slot, str(values[0]) if values else ""))
        if "state" in frame:
            intents.append(field(frame["state"], "active_intent", str))
    return distinct(acts), tuple(slots), tuple(dict.fromkeys(intent for intent in intents if intent != "NONE"))


_services = partial(names, name="services")
_DIALOGUE = TurnList(
    *("turns", "speaker", "utterance", UPPER_CASE_ROLES, "dialogue_id", _services, _labels),
    is_spoken=lambda turn: field(turn, "utterance", str) != "",
)
_FILES = split_patterns("{}/dialogues_*.json")
CORPORA = catalogued({"sgd": (_FILES, with_split(split_files(json_list, _FILES)), _DIALOGUE)})
