"""A slice of STAR that comes with the package: 440 dialogues to train on and 220 held out, of eleven domains.

Source: https://github.com/RasaHQ/STAR. Licence: MIT, ``star_small_licence.txt``. Of each domain that has so many
complete dialogues of one domain, the first 40 of STAR's training split and the first 20 of its test split, by a digest
of their ids; ``training_scripts/pack_star.py`` packs them.
"""

import gzip
import json
from pathlib import Path
from typing import Any

from ...models.dialogue import Dialogue
from ..corpus import Corpus, Records

SIZES = {"train": 40, "test": 20}
"""How many dialogues of each domain a split has."""


def packed(split: str) -> Path:
    """The file of a split, a dialogue a line."""
    return Path(__file__).with_name(f"star_small_{split}.jsonl.gz")


def _records(source: object, split: str) -> Records:
    with gzip.open(packed(split), "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            yield f"star_small {split}:{number}", json.loads(line)


def _dialogue(raw: Any) -> Dialogue:  # noqa: ANN401
    return Dialogue.from_json(raw)


_SOURCE = "https://github.com/RasaHQ/STAR"
CORPORA = (
    Corpus("star_small", dict.fromkeys(SIZES, ()), _records, _dialogue, _SOURCE, "MIT", "permissive", part_of="star"),
)
