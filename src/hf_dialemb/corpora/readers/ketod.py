"""KETOD: 5,324 dialogues of SGD in which some replies of the system were enriched with chat about what was mentioned.

Source: https://github.com/facebookresearch/ketod. Licence: MIT; the dialogues themselves are SGD's, CC BY-SA 4.0.
Layout: ``{train,dev,test}.json``, written by the authors' ``gen_ketod_data.py``: lists of dialogues as in SGD.

The text is SGD's (``utterance``), to which the acts belong, as in Dialog2Flow; the enriched replies
(``enriched_utter``) are not read. So these dialogues are also in SGD, by the same ids, if not always in the same split.
They do not list their services here; their domains are the services of their turns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...models.dialogue import Dialogue
from ..corpus import SPLITS, Corpus
from ..records import convert_each, field
from ..source.files import Source
from ..source.parsing import json_list
from .sgd import CORPORA as _SGD

_FILES = {split: (f"{split}.json",) for split in SPLITS}


def _records(source: Source, split: str) -> Iterator[tuple[str, tuple[str, Any]]]:
    for place, raw in json_list(source, _FILES[split][0]):
        yield place, (split, raw)


def _dialogue(record: tuple[str, Any]) -> Dialogue:
    split, raw = record
    services = convert_each(field(raw, "turns", list), "turns", _services)
    domains = list(dict.fromkeys(service for of_turn in services for service in of_turn))
    dialogue: Dialogue = _SGD[0].convert((split, {**raw, "services": domains}))
    return dialogue


def _services(turn: Any) -> list[str]:  # noqa: ANN401
    return [field(frame, "service", str) for frame in field(turn, "frames", list)]


CORPORA = (
    Corpus(
        "ketod",
        _FILES,
        _records,
        _dialogue,
        source="https://github.com/facebookresearch/ketod",
        licence="MIT; the dialogues are SGD's, CC BY-SA 4.0",
        terms="share-alike",
        real=False,
    ),
)
