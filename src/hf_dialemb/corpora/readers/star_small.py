"""A slice of STAR that comes with the package: 448 dialogues to train on and 176 held out, of sixteen tasks.

The licence is in ``star_small_licence.txt``. Of each task that has so many complete
dialogues of one domain, the first 28 of STAR's training split and the first 11 of its test split, by a digest of their
ids; ``training_scripts/pack_star.py`` packs them. Their label is the task, as ``hotel_book``: most of STAR's domains
hold two tasks that have little in common, and clusters find these.
"""

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...dialogue import Dialogue
from ..corpus import Corpus, Records

SIZES = {"train": 28, "test": 11}  # how many dialogues of each task a split has


def packed(split: str) -> Path:
    """The file of a split, a dialogue a line."""
    return Path(__file__).with_name(f"star_small_{split}.jsonl.gz")


def _records(source: object, split: str) -> Records:
    with gzip.open(packed(split), "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            yield f"star_small {split}:{number}", json.loads(line)


def _dialogue(raw: Any) -> Dialogue:  # noqa: ANN401
    dialogue = Dialogue.from_json(raw)
    return replace(dialogue, domains=dialogue.turns[0].intents)


_SOURCE = "https://github.com/RasaHQ/STAR"
CORPORA = (
    Corpus(
        "star_small", dict.fromkeys(SIZES, ()), _records, _dialogue, _SOURCE, "MIT", "permissive", part_of="star",
        extract="a slice, which comes with the package",
    ),
)  # fmt: skip
