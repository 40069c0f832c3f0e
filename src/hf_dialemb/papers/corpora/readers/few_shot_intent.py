"""Few-Shot-Intent-Detection: utterances with their intents, five corpora split alike for work with few examples.

Layout: ``<corpus>/{train,valid,test}/seq.in`` and ``label``, an utterance and its label per line; SNIPS and ATIS have
``seq.out`` too, a tag such as ``B-city_name`` for each word. ATIS joins several intents by ``#``. The samples of 5 and
10 utterances and the parts out of scope are not read.

HWU64, utterances to a home assistant with 64 intents, never met the real files. Its domain is the scenario that the
label begins with: ``alarm`` for ``alarm_set``.
"""

from collections.abc import Callable

from ....corpora.corpus import Corpus
from ....corpora.readers.shapes import utterance
from ....corpora.records import Slots
from ....corpora.source.parsing import numbered, parallel_lines
from ....dialogue import Dialogue
from ....errors import InputError

_SOURCE = "https://github.com/jianguoz/Few-Shot-Intent-Detection"
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


def _corpus(
    name: str, folder: str, licence: str, *more: str, convert: Callable[..., Dialogue] = _dialogue,
    source: str = _SOURCE, real: bool = True,
) -> Corpus:  # fmt: skip
    lines = ("seq.in", "label", *more)
    files = {split: tuple(f"{folder}/{part}/{file}" for file in lines) for split, part in _PARTS.items()}
    records = numbered(lambda source, split: parallel_lines(source, files[split]))
    return Corpus(name, files, records, convert, source, licence, "research", "utterances", "few_shot_intent", real)


CORPORA = (
    _corpus("few_shot_banking77", "BANKING77", "none stated for the splits; Banking77 is CC BY 4.0"),
    _corpus("few_shot_clinc150", "CLINC150", "none stated for the splits; CLINC150 is CC BY 3.0"),
    _corpus("few_shot_snips", "SNIPS", "none stated for the splits; SNIPS is CC0 1.0", "seq.out"),
    _corpus("few_shot_atis", "ATIS", "none stated for the splits; none stated for ATIS either", "seq.out"),
    _corpus(
        "hwu64", "HWU64", "CC BY 4.0 (dataset card); none stated for the splits", convert=_scenario_dialogue,
        source="https://github.com/xliuhw/NLU-Evaluation-Data", real=False,
    ),
)  # fmt: skip
