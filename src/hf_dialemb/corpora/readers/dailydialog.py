"""DailyDialog: everyday chats in English between two people, with ten topics, four dialogue acts and seven emotions.

Source: http://yanran.li/dailydialog. Licence: CC BY-NC-SA 4.0.
Layout: ``data/dialogues.json``, a list of the dialogues of all splits, as ConvLab-3
(https://github.com/ConvLab/ConvLab-3) unified them.

The label of a dialogue is its topic, such as ``Ordinary Life``. Emotions are left out: a turn has no place for them.
"""

from __future__ import annotations

from typing import Any

from ...models.dialogue import Dialogue, Turn
from ..corpus import SPLITS, Corpus
from ..records import field, names, one_of
from ..source.parsing import json_list
from ..source.splits import named_by, out_of_all
from .turns import distinct, turns_of

_SOURCE = "http://yanran.li/dailydialog"
_DIALOGUES = "data/dialogues.json"
_SPLITS = {"train": "train", "validation": "dev", "test": "test"}
_RECORDS = out_of_all(json_list, _DIALOGUES, named_by("data_split", _SPLITS))
_ROLES = {"user": "user", "system": "assistant"}


def _dialogue(raw: Any) -> Dialogue:  # noqa: ANN401
    one_of(raw, "data_split", _SPLITS)
    return Dialogue(turns_of(raw, "turns", _turn), field(raw, "dialogue_id", str), names(raw, "domains"))


def _turn(raw: Any) -> Turn:  # noqa: ANN401
    role = _ROLES[one_of(raw, "speaker", _ROLES)]
    labels = field(field(raw, "dialogue_acts", dict), "binary", list)
    return Turn(role, field(raw, "utterance", str), distinct(field(label, "intent", str) for label in labels))


_FILES = dict.fromkeys(SPLITS, (_DIALOGUES,))
CORPORA = (Corpus("dailydialog", _FILES, _RECORDS, _dialogue, _SOURCE, "CC BY-NC-SA 4.0", "research"),)
