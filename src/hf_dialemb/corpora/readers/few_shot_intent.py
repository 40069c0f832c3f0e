"""Few-Shot-Intent-Detection: utterances with their intents, four corpora split alike for work with few examples.

Source: https://github.com/jianguoz/Few-Shot-Intent-Detection. Licences: none stated for the splits; Banking77 is CC BY
4.0, CLINC150 CC BY 3.0 and SNIPS CC0 1.0; none is stated for ATIS.
Layout: ``<corpus>/{train,valid,test}/seq.in`` and ``label``, with one utterance and its label per line; SNIPS and ATIS
have ``seq.out`` too, a tag such as ``B-city_name`` for each word. Blanks around an utterance are left out. ATIS joins
several intents of one utterance by ``#``. The samples of 5 and 10 utterances and the out-of-scope parts are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ...models.dialogue import Dialogue, Turn
from ...models.errors import InputError
from ..corpus import Corpus
from ..source.files import Source
from ..source.parsing import parallel_lines

SPLITS = {"train": "train", "dev": "valid", "test": "test"}
"""From a split to what its folder is called."""

_SOURCE = "https://github.com/jianguoz/Few-Shot-Intent-Detection"

_Record = tuple[str, tuple[str, ...]]  # an id; the utterance, its label and, where there are tags, those


def files_of(folder: str, *names: str) -> dict[str, tuple[str, ...]]:
    """Lists the files of a corpus in this layout."""
    return {split: tuple(f"{folder}/{part}/{name}" for name in names) for split, part in SPLITS.items()}


def _records(files: dict[str, tuple[str, ...]], source: Source, split: str) -> Iterator[tuple[str, _Record]]:
    for number, (place, lines) in enumerate(parallel_lines(source, files[split])):
        yield place, (f"{split}/{number}", lines)


def _dialogue(record: _Record) -> Dialogue:
    identifier, (text, label, *tags) = record
    if not label:
        raise InputError("field label: got an empty line, expected an intent; repair the line")
    slots = _slots(text.split(), tags[0].split()) if tags else ()
    return Dialogue((Turn("user", text.strip(), slots=slots, intents=tuple(label.split("#"))),), identifier)


def _slots(words: list[str], tags: list[str]) -> tuple[tuple[str, str], ...]:
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
    files = files_of(folder, "seq.in", "label", *more_files)
    return Corpus(
        name,
        files,
        partial(_records, files),
        _dialogue,
        source=_SOURCE,
        licence=f"none stated for the splits; {licence}",
        terms="research",
        kind="utterances",
        folder="few_shot_intent",
    )


CORPORA = (
    _corpus("few_shot_banking77", "BANKING77", "Banking77 is CC BY 4.0"),
    _corpus("few_shot_clinc150", "CLINC150", "CLINC150 is CC BY 3.0"),
    _corpus("few_shot_snips", "SNIPS", "SNIPS is CC0 1.0", "seq.out"),
    _corpus("few_shot_atis", "ATIS", "none stated for ATIS either", "seq.out"),
)
