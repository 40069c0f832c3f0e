"""KETOD: 5,324 dialogues of SGD in which some replies of the system were enriched with chat about what was mentioned.

Source: https://github.com/facebookresearch/ketod. Licence: MIT; the dialogues themselves are SGD's, CC BY-SA 4.0.
Layout: ``{train,dev,test}.json``, written by the authors' ``gen_ketod_data.py``: lists of dialogues as in SGD.

The text is SGD's (``utterance``), to which the acts belong, as in Dialog2Flow; the enriched replies
(``enriched_utter``) are not read. So these dialogues are also in SGD, by the same ids, if not always in the same split.
They do not list their services here; their domains are the services of their turns.
"""

from __future__ import annotations

from typing import Any

from ....models.dialogue import Dialogue
from ...corpus import SPLITS, Corpus
from ...records import convert_each, field
from ...source.parsing import json_list
from ...source.splits import split_files, with_split
from ..sgd import dialogue_of

_SOURCE, _LICENCE = "https://github.com/facebookresearch/ketod", "MIT; the dialogues are SGD's, CC BY-SA 4.0"
_FILES = {split: (f"{split}.json",) for split in SPLITS}
_RECORDS = with_split(split_files(json_list, _FILES))


def _dialogue(record: tuple[str, Any]) -> Dialogue:
    split, raw = record
    services = convert_each(field(raw, "turns", list), "turns", _services)
    domains = list(dict.fromkeys(service for of_turn in services for service in of_turn))
    return dialogue_of((split, {**raw, "services": domains}))


def _services(turn: Any) -> list[str]:  # noqa: ANN401
    return [field(frame, "service", str) for frame in field(turn, "frames", list)]


CORPORA = (Corpus("ketod", _FILES, _RECORDS, _dialogue, _SOURCE, _LICENCE, "share-alike", real=False),)
