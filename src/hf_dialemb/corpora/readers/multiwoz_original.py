"""MultiWOZ 2.1 and 2.4 as their authors give them out; 2.4 corrects the belief states of dev and test, not the text.

Sources: https://github.com/budzianowski/multiwoz (``MultiWOZ_2.1.zip``) and https://github.com/smartyfh/MultiWOZ2.4.
Licence: MIT.
Layout: ``data.json`` (an object from id to ``{"goal", "log"}``), and ``valListFile.txt`` and ``testListFile.txt`` (or
``.json``; ids, a line each); what neither list names is train. Where there is no ``data.json``, ``train.json``,
``val.json`` and ``test.json`` in the same form, as in https://github.com/thu-coai/ConvLab-2.

The acts of a turn are its ``dialog_act``, which some dialogues lack. The copies from Cambridge, and 2.4, have the acts
of the system in ``dialogue_acts.json`` instead, where a turn is known by its number among the system's turns. That file
is kept in memory, as text.
"""

from __future__ import annotations

from typing import Any

from ...models.dialogue import Dialogue, Turn
from ..corpus import Corpus
from ..records import field
from ..source.files import Source
from ..source.parsing import json_members
from ..source.splits import Records
from .multiwoz import acts_by_turn, goal_and_log, identifier, labels, members_of_split, separate_acts

_LISTS = {"dev": "valListFile.*", "test": "testListFile.*"}
_ACTS = "dialogue_acts.json"
_NO_ANNOTATION = "No Annotation"

FILES = {
    split: ("data.json", *_LISTS.values(), _ACTS, single)
    for split, single in (("train", "train.json"), ("dev", "val.json"), ("test", "test.json"))
}
"""The files of either layout."""


def split_records(source: Source, split: str) -> Records:
    """Reads the dialogues of one split, from ``data.json`` or, without one, from the split's own file."""
    place, _ = next(source.files("data.json"), ("", None))
    if place:
        yield from members_of_split(source, split, "data.json", _LISTS, beside=place)
    else:
        yield from json_members(source, FILES[split][-1])


def _records(source: Source, split: str) -> Records:
    acts = separate_acts(source, _ACTS)
    for place, (key, raw) in split_records(source, split):
        yield place, (key, raw, acts.get(identifier(key)))


def _dialogue(record: tuple[str, Any, str | None]) -> Dialogue:
    key, raw, text = record
    acts = acts_by_turn(_ACTS, text)
    for number, turn in enumerate(field(raw, "log", list)[1::2], start=1):
        if isinstance(turn, dict) and str(number) in acts:
            turn.setdefault("dialog_act", acts[str(number)])
    return goal_and_log(key, raw, _turn)


def _turn(spoken: tuple[str, Any]) -> Turn:
    role, raw = spoken
    text = field(raw, "text", str)
    annotation = raw.get("dialog_act", _NO_ANNOTATION)
    acts, slots = labels({} if annotation == _NO_ANNOTATION else annotation)
    return Turn(role, text, acts, slots)


CORPORA = (
    Corpus(
        "multiwoz21", FILES, _records, _dialogue, "https://github.com/budzianowski/multiwoz", "MIT", "permissive",
        folder="multiwoz", part_of="multiwoz", shared=("dev", "test"),
        extract="dev and test, in the layout of ConvLab-2",
    ),
    Corpus(
        "multiwoz24", FILES, _records, _dialogue, "https://github.com/smartyfh/MultiWOZ2.4", "MIT", "permissive",
        part_of="multiwoz21", real=False,
    ),
)  # fmt: skip
