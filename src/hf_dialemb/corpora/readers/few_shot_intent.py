"""Few-Shot-Intent-Detection: utterances with their intents, four corpora split alike for work with few examples.

Source: https://github.com/jianguoz/Few-Shot-Intent-Detection. Licences: none stated for the splits; Banking77 is CC BY
4.0, CLINC150 CC BY 3.0 and SNIPS CC0 1.0; none is stated for ATIS.
Layout: ``<corpus>/{train,valid,test}/seq.in`` and ``label``, with one utterance and its label per line; SNIPS and ATIS
have ``seq.out`` too, a tag such as ``B-city_name`` for each word. Blanks around an utterance are left out. ATIS joins
several intents of one utterance by ``#``. The samples of 5 and 10 utterances and the out-of-scope parts are not read.
"""

from __future__ import annotations

from ...models.dialogue import Dialogue, Turn
from ...models.errors import InputError
from ..corpus import Corpus
from ..source.parsing import parallel_lines
from ..source.splits import Files, Reading, numbered
from .turns import Slots

_SOURCE = "https://github.com/jianguoz/Few-Shot-Intent-Detection"
_PARTS = {"train": "train", "dev": "valid", "test": "test"}
FOLDER = "few_shot_intent"
"""Where these corpora lie."""


def reading(folder: str, *names: str) -> tuple[Files, Reading]:
    """Gives the files of a corpus in this layout, and what reads their lines."""
    files = {split: tuple(f"{folder}/{part}/{name}" for name in names) for split, part in _PARTS.items()}
    return files, numbered(lambda source, split: parallel_lines(source, files[split]))


def _dialogue(record: tuple[str, tuple[str, ...]]) -> Dialogue:
    identifier, (text, label, *tags) = record
    if not label:
        raise InputError("field label: got an empty line, expected an intent; repair the line")
    slots = _slots(text.split(), tags[0].split()) if tags else ()
    return Dialogue((Turn("user", text.strip(), slots=slots, intents=tuple(label.split("#"))),), identifier)


def _slots(words: list[str], tags: list[str]) -> Slots:
    if len(words) != len(tags):
        raise InputError(f"field tags: got {len(tags)}, expected one for each of {len(words)} words; repair the line")
    found: list[tuple[str, list[str]]] = []
    inside = ""
    for word, tag in zip(words, tags, strict=True):
        position, _, name = tag.partition("-")
        if position not in ("O", "B", "I") or (position == "O") == bool(name):
            raise InputError(f"field tags: got {tag[:40]!r}, expected O, B-name or I-name; repair the line")
        if position == "I" and name == inside:
            found[-1][1].append(word)
        elif name:
            found.append((name, [word]))
        inside = name
    return tuple((name.lower(), " ".join(value)) for name, value in found)


def _corpus(name: str, folder: str, licence: str, *more_files: str) -> Corpus:
    files, records = reading(folder, "seq.in", "label", *more_files)
    licence = f"none stated for the splits; {licence}"
    return Corpus(name, files, records, _dialogue, _SOURCE, licence, "research", kind="utterances", folder=FOLDER)


CORPORA = (
    _corpus("few_shot_banking77", "BANKING77", "Banking77 is CC BY 4.0"),
    _corpus("few_shot_clinc150", "CLINC150", "CLINC150 is CC BY 3.0"),
    _corpus("few_shot_snips", "SNIPS", "SNIPS is CC0 1.0", "seq.out"),
    _corpus("few_shot_atis", "ATIS", "none stated for ATIS either", "seq.out"),
)
