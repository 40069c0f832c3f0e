"""Schema-Guided Dialogue (SGD): task dialogues of a user and a system over many services, with acts, slots and intents.

Source: https://github.com/google-research-datasets/dstc8-schema-guided-dialogue. Licence: CC BY-SA 4.0.
Layout: ``{train,dev,test}/dialogues_*.json``, each a list of dialogues.

The label of a dialogue is its services, such as ``Restaurants_2``. Two dialogues of the test split end in a system turn
without text; nothing was said there, so that turn is left out.
"""

from __future__ import annotations

from typing import Any

from ...models.dialogue import Dialogue, Turn
from ..corpus import SPLITS, Corpus
from ..records import convert_each, field, names, one_of
from ..source.parsing import json_list
from ..source.splits import split_files, with_split
from .turns import distinct

_SOURCE = "https://github.com/google-research-datasets/dstc8-schema-guided-dialogue"
_FILES = {split: (f"{split}/dialogues_*.json",) for split in SPLITS}
_RECORDS = with_split(split_files(json_list, _FILES))
_EXTRACT = "14,734 of the 16,142 dialogues of train"
_ROLES = {"USER": "user", "SYSTEM": "assistant"}


def dialogue_of(record: tuple[str, Any]) -> Dialogue:
    """Converts a dialogue and its split; ids repeat between the splits."""
    split, raw = record
    identifier = field(raw, "dialogue_id", str)
    turns = field(raw, "turns", list)
    if turns and field(turns[-1], "utterance", str) == "":
        turns = turns[:-1]
    return Dialogue(convert_each(turns, "turns", _turn), f"{split}/{identifier}", names(raw, "services"))


def _turn(raw: Any) -> Turn:  # noqa: ANN401
    speaker = one_of(raw, "speaker", _ROLES)
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
    return Turn(_ROLES[speaker], field(raw, "utterance", str), distinct(acts), tuple(slots), wanted)


CORPORA = (Corpus("sgd", _FILES, _RECORDS, dialogue_of, _SOURCE, "CC BY-SA 4.0", "share-alike", extract=_EXTRACT),)
