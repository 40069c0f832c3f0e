"""Frames: dialogues of users who plan a trip and wizards who search flights and hotels, with acts and slots.

Source: https://www.microsoft.com/en-us/research/project/frames-dataset. Licence: terms of its own; it may not be
passed on.
Layout: ``frames.json``, a list of dialogues. Most of the file are database results, which are passed over.

Arguments of acts that only point to frames (``ref``, ``id``, ``read``, ``write``) are no slots, and the argument
``intent`` is an intent. There is one domain, travel, and no official split: a hash of the id decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...models.dialogue import Dialogue, Turn
from ..corpus import SPLITS, Corpus
from ..records import convert_each, field, hashed_split, one_of
from ..source.files import Source
from ..source.parsing import json_list

_FILE = "frames.json"
_ROLES = {"user": "user", "wizard": "assistant"}
_POINTERS = ("ref", "id", "read", "write")


def _records(source: Source, split: str) -> Iterator[tuple[str, Any]]:
    for place, raw in json_list(source, _FILE):
        identifier = str(raw.get("id")) if isinstance(raw, dict) else ""
        if split == hashed_split(identifier):
            yield place, raw


def _dialogue(raw: Any) -> Dialogue:  # noqa: ANN401
    turns = convert_each(field(raw, "turns", list), "turns", _turn)
    return Dialogue(turns, field(raw, "id", str), ("travel",))


def _turn(raw: Any) -> Turn:  # noqa: ANN401
    role = _ROLES[one_of(raw, "author", _ROLES)]
    acts, slots, intents = [], [], []
    for act in field(field(raw, "labels", dict), "acts", list):
        acts.append(field(act, "name", str).lower())
        for argument in field(act, "args", list):
            name = field(argument, "key", str).lower()
            if name in _POINTERS:
                continue
            value = argument.get("val")
            text = "" if value is None else str(value)
            if name != "intent":
                slots.append((name, text))
            elif text:
                intents.append(text)
    return Turn(
        role,
        field(raw, "text", str),
        tuple(dict.fromkeys(acts)),
        tuple(dict.fromkeys(slots)),
        tuple(dict.fromkeys(intents)),
    )


CORPORA = (
    Corpus(
        "frames",
        dict.fromkeys(SPLITS, (_FILE,)),
        _records,
        _dialogue,
        source="https://www.microsoft.com/en-us/research/project/frames-dataset",
        licence="terms of its own; may not be passed on",
        terms="research",
        real=False,
    ),
)
