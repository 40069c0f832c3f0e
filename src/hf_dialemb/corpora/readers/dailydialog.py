"""DailyDialog: everyday chats in English between two people, with ten topics, four dialogue acts and seven emotions.

Source: http://yanran.li/dailydialog. Licence: CC BY-NC-SA 4.0.
Layout: ``data/dialogues.json``, a list of the dialogues of all splits, as ConvLab-3
(https://github.com/ConvLab/ConvLab-3) unified them.

The label of a dialogue is its topic, such as ``Ordinary Life``. Emotions are left out: a turn has no place for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...models.dialogue import Dialogue, Turn
from ..corpus import SPLITS, Corpus
from ..records import convert_each, field, names, one_of
from ..source.files import Source
from ..source.parsing import json_list

_FILES = {split: ("data/dialogues.json",) for split in SPLITS}
_SPLITS = {"train": "train", "dev": "validation", "test": "test"}
_ROLES = {"user": "user", "system": "assistant"}


def _records(source: Source, split: str) -> Iterator[tuple[str, Any]]:
    others = tuple(name for other, name in _SPLITS.items() if other != split)
    for place, raw in json_list(source, _FILES[split][0]):
        # What names no split is malformed, whichever split is read.
        if not isinstance(raw, dict) or raw.get("data_split") not in others:
            yield place, raw


def _dialogue(raw: Any) -> Dialogue:  # noqa: ANN401
    one_of(raw, "data_split", _SPLITS.values())
    turns = convert_each(field(raw, "turns", list), "turns", _turn)
    return Dialogue(turns, field(raw, "dialogue_id", str), names(raw, "domains"))


def _turn(raw: Any) -> Turn:  # noqa: ANN401
    role = _ROLES[one_of(raw, "speaker", _ROLES)]
    labels = field(field(raw, "dialogue_acts", dict), "binary", list)
    acts = dict.fromkeys(field(label, "intent", str).lower() for label in labels)
    return Turn(role, field(raw, "utterance", str), tuple(acts))


CORPORA = (
    Corpus(
        "dailydialog",
        _FILES,
        _records,
        _dialogue,
        source="http://yanran.li/dailydialog",
        licence="CC BY-NC-SA 4.0",
        terms="research",
    ),
)
