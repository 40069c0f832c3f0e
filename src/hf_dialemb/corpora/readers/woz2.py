"""WOZ 2.0 and the cleaned DSTC2: callers and visitors who look for a restaurant in Cambridge, in one layout.

Sources: https://github.com/nmrksic/neural-belief-tracker (WOZ 2.0) and https://github.com/guanlinchao/bert-dst (the
cleaned DSTC2). Licences: Apache 2.0 and GPL 3.
Layout: ``woz_{train,validate,test}_en.json`` and ``dstc2_{train,validate,test}_en.json``, each a list of dialogues.

A record's turn is what the system says, in WOZ 2.0 nothing at the start, and the user's reply. A ``turn_label`` such
as ``["request", "phone"]`` is the act request with the slot phone, any other informs of a slot; one without a slot
says nothing of any slot and is left out. A system act that is a slot's name requests it, one with a value informs. The
calls begin with the system's greeting, which the first turn of many callers only echoes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...models.dialogue import Dialogue, Turn
from ..corpus import Corpus
from ..records import convert_each, field, strings
from ..source.files import Source
from ..source.parsing import json_list

_PARTS = {"train": "train", "dev": "validate", "test": "test"}
_DOMAINS = ("restaurant",)
_REQUEST = "request"

_Label = tuple[str, str, str]  # act, slot, value


def _files(prefix: str) -> dict[str, tuple[str, ...]]:
    return {split: (f"{prefix}_{part}_en.json",) for split, part in _PARTS.items()}


def _reader(prefix: str) -> Callable[[Source, str], Iterator[tuple[str, Any]]]:
    def records(source: Source, split: str) -> Iterator[tuple[str, Any]]:
        for place, raw in json_list(source, f"{prefix}_{_PARTS[split]}_en.json"):
            yield place, (split, raw)

    return records


def _dialogue(record: tuple[str, Any]) -> Dialogue:
    split, raw = record  # DSTC2 numbers its dialogues from 0 in every file
    exchanges = list(enumerate(field(raw, "dialogue", list)))
    turns = convert_each(exchanges, "dialogue", _exchange)
    identifier = f"{split}/{field(raw, 'dialogue_idx', int)}"
    return Dialogue(tuple(turn for pair in turns for turn in pair), identifier, _DOMAINS)


def _exchange(numbered: tuple[int, Any]) -> list[Turn]:
    index, raw = numbered
    turns = []
    said = field(raw, "system_transcript", str)
    acts = convert_each(field(raw, "system_acts", list), "system_acts", _system_label)
    if index or said:
        turns.append(_labelled("assistant", said, acts))
    labels = convert_each(field(raw, "turn_label", list), "turn_label", _user_label)
    turns.append(_labelled("user", field(raw, "transcript", str), labels))
    return turns


def _labelled(role: str, text: str, labels: tuple[_Label, ...]) -> Turn:
    named = [label for label in labels if label[1]]
    acts = tuple(dict.fromkeys(act for act, _, _ in named))
    return Turn(role, text, acts, tuple((slot.lower(), value) for _, slot, value in named))


def _user_label(raw: Any) -> _Label:  # noqa: ANN401
    slot, value = strings(raw, 2)
    return (_REQUEST, value, "") if slot == _REQUEST else ("inform", slot, value)


def _system_label(raw: Any) -> _Label:  # noqa: ANN401
    if isinstance(raw, str):
        return _REQUEST, raw, ""
    slot, value = strings(raw, 2)
    return "inform", slot, value


CORPORA = (
    Corpus(
        "woz2",
        _files("woz"),
        _reader("woz"),
        _dialogue,
        source="https://github.com/nmrksic/neural-belief-tracker",
        licence="Apache 2.0",
        terms="permissive",
    ),
    Corpus(
        "dstc2_clean",
        _files("dstc2"),
        _reader("dstc2"),
        _dialogue,
        source="https://github.com/guanlinchao/bert-dst",
        licence="GPL 3",
        terms="share-alike",
        real=False,
    ),
)
