"""Few-Shot-Intent-Detection: utterances with their intents, five corpora split alike for work with few examples.

Layout: ``<corpus>/{train,valid,test}/seq.in`` and ``label``, an utterance and its label per line; SNIPS and ATIS have
``seq.out`` too, a tag such as ``B-city_name`` for each word. ATIS joins several intents by ``#``. The samples of 5 and
10 utterances and the parts out of scope are not read.

HWU64, utterances to a home assistant with 64 intents, never met the real files. Its domain is the scenario that the
label begins with: ``alarm`` for ``alarm_set``.
"""

from collections.abc import Callable

from ....corpora.corpus import Files, Reading, catalogued
from ....corpora.parsing import numbered, parallel_lines
from ....corpora.readers.shapes import utterance
from ....corpora.records import Slots
from ....dialogue import Dialogue
from ....errors import InputError
from .. import CATALOGUE

_PARTS = {"train": "train", "dev": "valid", "test": "test"}


def _dialogue(identifier: str, lines: tuple[str, ...]) -> Dialogue:
    text, label, *tags = lines
    slots = _slots(text.split(), tags[0].split()) if tags else ()
    return utterance(identifier, text.strip(), tuple(label.split("#")), slots)


def _slots(words: list[str], tags: list[str]) -> Slots:
    if len(words) != len(tags):
        raise InputError(f"field tags: got {len(tags)}, expected one for each of {len(words)} words; repair the line")
    slots: list[tuple[str, list[str]]] = []
    inside = ""
    for word, tag in zip(words, tags, strict=True):
        position, _, name = tag.partition("-")
        if position not in ("O", "B", "I") or (position == "O") == bool(name):
            raise InputError(f"field tags: got {tag[:40]!r}, expected O, B-name or I-name; repair the line")
        if position == "I" and name == inside:
            slots[-1][1].append(word)
        elif name:
            slots.append((name, [word]))
        inside = name
    return tuple((name.lower(), " ".join(value)) for name, value in slots)


def _scenario_dialogue(identifier: str, lines: tuple[str, str]) -> Dialogue:
    text, label = lines
    scenario, mark, _ = label.partition("_")
    if not scenario or not mark:
        raise InputError(f"field label: got {label[:40]!r}, expected scenario_intent; repair the line")
    return utterance(identifier, text.strip(), (label,), (), scenario)


def _reading(
    folder: str, *more: str, convert: Callable[..., Dialogue] = _dialogue
) -> tuple[Files, Reading, Callable[..., Dialogue]]:
    lines = ("seq.in", "label", *more)
    files = {split: tuple(f"{folder}/{part}/{file}" for file in lines) for split, part in _PARTS.items()}
    return files, numbered(lambda source, split: parallel_lines(source, files[split])), convert


CORPORA = catalogued(
    {
        "few_shot_banking77": _reading("BANKING77"),
        "few_shot_clinc150": _reading("CLINC150"),
        "few_shot_snips": _reading("SNIPS", "seq.out"),
        "few_shot_atis": _reading("ATIS", "seq.out"),
        "hwu64": _reading("HWU64", convert=_scenario_dialogue),
    },
    CATALOGUE,
)
