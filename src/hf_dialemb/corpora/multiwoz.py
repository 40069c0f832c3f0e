"""MultiWOZ: written dialogues of visitors to Cambridge and a town clerk, over seven domains, with acts and slots.

Sources: https://github.com/budzianowski/multiwoz; version 2.1 as in https://github.com/thu-coai/ConvLab-2; the
single-domain extract of version 2.0 that came with the DSTC8 MetaLWOZ task. Licences: MIT; the extract CC BY 4.0.
Layout: ``multiwoz2.1_convlab2/{val,test}.json`` (an object from id to dialogue) and
``multiwoz2.0_single_domain/dialogues/*.txt`` (one JSON object per line, one file per domain).

Dev and test are version 2.1. Train is the single-domain extract without any dialogue that dev or test holds. An act
such as ``Hotel-Inform`` becomes ``inform`` and slot names are lower-cased, so that both are as in the other corpora.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..models.dialogue import Dialogue, Turn
from ..models.errors import InputError
from .records import convert_each, convert_records, field, names
from .source import Source, parse_json, read_json

SPLITS = ("train", "dev", "test")
_HELD_OUT = {"dev": "multiwoz2.1_convlab2/val.json", "test": "multiwoz2.1_convlab2/test.json"}
_SINGLE_DOMAIN = "multiwoz2.0_single_domain/dialogues/*.txt"
FILES = {"train": (_SINGLE_DOMAIN, *_HELD_OUT.values()), "dev": (_HELD_OUT["dev"],), "test": (_HELD_OUT["test"],)}

# The extract begins every dialogue with this one system turn; in MultiWOZ itself the user begins. Dropping it makes the
# roles and the first turns of all splits alike.
_GREETING = "Hello, how may I help you?"
_NO_DOMAIN = ("message", "topic")  # what a goal holds besides its domains
_NO_SLOT, _NO_VALUE = "none", "?"


def read(source: Source, split: str, *, skip_invalid: bool = False) -> Iterator[Dialogue]:
    """Reads one split.

    Args:
        source: The corpus's files.
        split: One of `SPLITS`.
        skip_invalid: Leave malformed records out with a warning.

    Returns:
        The dialogues, in the order of the files.

    Raises:
        InputError: A file or a record is malformed, or train is wanted where the files of dev and test are missing.
    """
    if split == "train":
        return convert_records(_extract_records(source), _extract_dialogue, skip_invalid=skip_invalid)
    records = _records(source, _HELD_OUT[split])
    return convert_records(records, _dialogue, skip_invalid=skip_invalid)


def _records(source: Source, pattern: str) -> Iterator[tuple[str, tuple[str, Any]]]:
    for name, stream in source.files(pattern):
        content = read_json(name, stream)
        if not isinstance(content, dict):
            raise InputError(
                f"{name}: got {type(content).__name__}, expected an object of dialogues; get the file again"
            )
        for key, raw in content.items():
            yield f"{name}: record {key}", (_identifier(key), raw)


def _dialogue(record: tuple[str, Any]) -> Dialogue:
    identifier, raw = record
    goal = field(raw, "goal", dict)
    domains = tuple(sorted(name for name, wanted in goal.items() if wanted and name not in _NO_DOMAIN))
    log = [("assistant" if index % 2 else "user", turn) for index, turn in enumerate(field(raw, "log", list))]
    return Dialogue(convert_each(log, "log", _turn), identifier, domains)


def _turn(spoken: tuple[str, Any]) -> Turn:
    role, raw = spoken
    acts, slots = _labels(field(raw, "dialog_act", dict))
    return Turn(role, field(raw, "text", str), acts, slots)


def _extract_records(source: Source) -> Iterator[tuple[str, Any]]:
    held_out: set[str] = set()
    for pattern in _HELD_OUT.values():
        found = {identifier for _, (identifier, _) in _records(source, pattern)}
        if not found:
            raise InputError(
                f"{source.path}: split train needs {pattern} too, to leave its dialogues out; add the file"
            )
        held_out |= found
    for name, stream in source.files(_SINGLE_DOMAIN):
        for number, line in enumerate(stream, start=1):
            place = f"{name}:{number}"
            raw = parse_json(place, line, "the file is damaged or incomplete: get it again")
            identifier = raw.get("id") if isinstance(raw, dict) else None
            if not isinstance(identifier, str) or _identifier(identifier) not in held_out:
                yield place, raw


def _extract_dialogue(raw: Any) -> Dialogue:  # noqa: ANN401
    turns = names(raw, "turns")
    annotations = field(raw, "annotations", list) if "annotations" in raw else [{}] * len(turns)
    if len(annotations) != len(turns):
        raise InputError(f"field annotations: got {len(annotations)}, expected one for each of {len(turns)} turns")
    spoken = [
        ("user" if index % 2 else "assistant", *both) for index, both in enumerate(zip(turns, annotations, strict=True))
    ]
    if turns and turns[0] == _GREETING:
        spoken = spoken[1:]
    domain = field(raw, "domain", str)
    identifier = _identifier(field(raw, "id", str))
    return Dialogue(convert_each(spoken, "turns", _extract_turn), identifier, (domain,))


def _extract_turn(spoken: tuple[str, str, Any]) -> Turn:
    role, text, annotation = spoken
    acts, slots = _labels(annotation)
    return Turn(role, text, acts, slots)


def _labels(annotation: Any) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:  # noqa: ANN401
    """Reads ``{"Hotel-Inform": [["Area", "east"]]}`` as acts and slots; a requested slot has no value."""
    if not isinstance(annotation, dict):
        raise InputError(f"field dialog_act: got {type(annotation).__name__}, expected an object; repair the record")
    slots = []
    for pairs in annotation.values():
        for pair in pairs if isinstance(pairs, list) else [pairs]:
            if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(part, str) for part in pair):
                raise InputError(
                    f"field dialog_act: got {pair!r}, expected a pair of slot and value; repair the record"
                )
            name, value = pair
            if name.lower() != _NO_SLOT:
                slots.append((name.lower(), "" if value == _NO_VALUE else value))
    return tuple(dict.fromkeys(key.rpartition("-")[2].lower() for key in annotation)), tuple(slots)


def _identifier(key: str) -> str:
    """The one form of an id: some releases write ``PMUL1635.json`` or another case for ``PMUL1635``."""
    return key.upper().removesuffix(".JSON")
