"""The corpora that come with the package: a made-up sample, and a slice of STAR.

``sample`` is SYNTHETIC; nobody ever said these dialogues. They have 6 to 16 turns over ten domains,
one domain each, with acts, slots and intents. Use them to try, test and teach; results on them mean
nothing for real conversations. ``training_scripts/make_sample.py`` makes the files.

``star_small`` has the first 28 complete dialogues of each of sixteen tasks from STAR's train, and
the first 11 from its test, by a digest of their ids. Its domain is the task, which clusters find
better than STAR's domains. The licence is in ``star_small_licence.txt``;
``training_scripts/pack_star.py`` packs the files.
"""

import gzip
import json
from dataclasses import replace
from pathlib import Path

from ...dialogue import Dialogue
from ..corpus import SPLITS, Reading, Records, catalogued
from ..raw_records import Raw


def packed(name: str, split: str) -> Path:
    """Return the path of a split of a corpus, a dialogue a line."""
    return Path(__file__).with_name(f"{name}_{split}.jsonl.gz")


def _lines_of(name: str) -> Reading:
    def records(_: object, split: str) -> Records:
        with gzip.open(packed(name, split), "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                yield f"{name} {split}:{number}", json.loads(line)

    return records


def _with_task(record: Raw) -> Dialogue:
    dialogue = Dialogue.from_json(record)
    return replace(dialogue, domains=dialogue.turns[0].intents)


CORPORA = catalogued(
    {
        "sample": (dict.fromkeys(SPLITS, ()), _lines_of("sample"), Dialogue.from_json),
        "star_small": (dict.fromkeys(("train", "test"), ()), _lines_of("star_small"), _with_task),
    }
)
