"""DailyDialog: everyday chats in English between two people, with ten topics, four dialogue acts and seven emotions.

Layout: ``data/dialogues.json``, a list of the dialogues of all splits, as ConvLab-3
(https://github.com/ConvLab/ConvLab-3) unified them.

The label of a dialogue is its topic, such as ``Ordinary Life``. Emotions are left out: a turn has no place for them.
"""

from ...dialogue import Dialogue, Turn
from ..corpus import SPLITS, Corpus
from ..records import Raw, distinct, each_of, field, names, one_of
from ..source.parsing import json_list, named_by, out_of_all

_SOURCE = "http://yanran.li/dailydialog"
_DIALOGUES = "data/dialogues.json"
_SPLITS = {"train": "train", "validation": "dev", "test": "test"}
_RECORDS = out_of_all(json_list, _DIALOGUES, named_by("data_split", _SPLITS))
_ROLES = {"user": "user", "system": "assistant"}


def _dialogue(raw: Raw) -> Dialogue:
    one_of(raw, "data_split", _SPLITS)
    return Dialogue(each_of(raw, "turns", _turn), field(raw, "dialogue_id", str), names(raw, "domains"))


def _turn(raw: Raw) -> Turn:
    role = _ROLES[one_of(raw, "speaker", _ROLES)]
    labels = field(field(raw, "dialogue_acts", dict), "binary", list)
    return Turn(role, field(raw, "utterance", str), distinct(field(label, "intent", str) for label in labels))


_FILES = dict.fromkeys(SPLITS, (_DIALOGUES,))
CORPORA = (Corpus("dailydialog", _FILES, _RECORDS, _dialogue, _SOURCE, "CC BY-NC-SA 4.0", "research"),)
