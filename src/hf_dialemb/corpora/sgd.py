"""Schema-Guided Dialogue (SGD): task dialogues of a user and a system over many services, with acts, slots and intents.

Source: https://github.com/google-research-datasets/dstc8-schema-guided-dialogue. Licence: CC BY-SA 4.0.
Layout: ``{train,dev,test}/dialogues_*.json``, each a list of dialogues.

The label of a dialogue is its services, such as ``Restaurants_2``. Two dialogues of the test split end in a system turn
without text; nothing was said there, so that turn is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from ..models.dialogue import Dialogue, Turn
from ..models.errors import InputError
from .records import convert_each, convert_records, field, names
from .source import Source, read_json

SPLITS = ("train", "dev", "test")
FILES = {split: (f"{split}/dialogues_*.json",) for split in SPLITS}

_ROLES = {"USER": "user", "SYSTEM": "assistant"}


def read(source: Source, split: str, *, skip_invalid: bool = False) -> Iterator[Dialogue]:
    """Reads one split; ids repeat between splits in the files, so ``train/`` or the like is put before them.

    Args:
        source: The corpus's files.
        split: One of `SPLITS`.
        skip_invalid: Leave malformed records out with a warning.

    Returns:
        The dialogues, in the order of the files.

    Raises:
        InputError: A file or a record is malformed.
    """
    return convert_records(_records(source, split), partial(_dialogue, split), skip_invalid=skip_invalid)


def _records(source: Source, split: str) -> Iterator[tuple[str, Any]]:
    for pattern in FILES[split]:
        for name, stream in source.files(pattern):
            content = read_json(name, stream)
            if not isinstance(content, list):
                raise InputError(
                    f"{name}: got {type(content).__name__}, expected a list of dialogues; get the file again"
                )
            for index, raw in enumerate(content):
                yield f"{name}: record {index}", raw


def _dialogue(split: str, raw: Any) -> Dialogue:  # noqa: ANN401
    identifier = field(raw, "dialogue_id", str)
    turns = field(raw, "turns", list)
    if turns and field(turns[-1], "utterance", str) == "":
        turns = turns[:-1]
    return Dialogue(convert_each(turns, "turns", _turn), f"{split}/{identifier}", names(raw, "services"))


def _turn(raw: Any) -> Turn:  # noqa: ANN401
    speaker = field(raw, "speaker", str)
    if speaker not in _ROLES:
        raise InputError(f"field speaker: got {speaker!r}, expected USER or SYSTEM; repair the record")
    acts: list[str] = []
    slots: list[tuple[str, str]] = []
    intents: list[str] = []
    for frame in field(raw, "frames", list):
        for action in field(frame, "actions", list):
            acts.append(field(action, "act", str).lower())
            slot, values = field(action, "slot", str), field(action, "values", list)
            if slot:
                slots.append((slot, str(values[0]) if values else ""))
        if "state" in frame:
            intents.append(field(frame["state"], "active_intent", str))
    wanted = tuple(dict.fromkeys(intent for intent in intents if intent != "NONE"))
    utterance = field(raw, "utterance", str)
    return Turn(_ROLES[speaker], utterance, tuple(dict.fromkeys(acts)), tuple(slots), wanted)
