"""CamRest676 and GECOR: written dialogues of visitors who look for a restaurant in Cambridge, with slots.

Source: https://github.com/terryqj0107/GECOR, which holds CamRest676 and, for GECOR, the same dialogues with corrected
spelling and annotated ellipses and co-references. Licence: MIT; of CamRest676 itself none is stated there.
Layout: ``CamRest676.json`` and ``CamRest676_annotated.json``, each a list of 676 dialogues.

A user's turn lists all that was informed of so far, so what a turn informs of is what the turn before it did not list.
Requests are not carried along: one that is listed again was made again. The slots in ``DA`` are those that the system
asks for; one with a value is put to the user, as ``inform``. There is no official split; as in papers, the first three
fifths of the file are train, the next is dev, the last test. In GECOR the text is what the user wrote, not the
rewritings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from ...models.dialogue import Dialogue, Turn
from ..corpus import SPLITS, Corpus
from ..records import convert_each, field, names, strings
from ..source.files import Source
from ..source.parsing import json_list

_DEV_START, _TEST_START = 406, 541  # an id is the position among the 676
_DOMAINS = ("restaurant",)
_REQUEST, _INFORM = "request", "inform"
_UNVALUED = "slot"  # ["slot", "phone"] is the slot phone without a value

_Label = tuple[str, str, str]  # act, slot, value


def _reader(file: str) -> Callable[[Source, str], Iterator[tuple[str, Any]]]:
    def records(source: Source, split: str) -> Iterator[tuple[str, Any]]:
        for place, raw in json_list(source, file):
            if _split(raw) in (split, ""):
                yield place, raw

    return records


def _split(raw: Any) -> str:  # noqa: ANN401
    """The split of a record; empty for a malformed one, which concerns every split."""
    number = raw.get("dialogue_id") if isinstance(raw, dict) else None
    if not isinstance(number, int):
        return ""
    return "train" if number < _DEV_START else "dev" if number < _TEST_START else "test"


def _dialogue(raw: Any) -> Dialogue:  # noqa: ANN401
    turns = []
    known: set[_Label] = set()
    for text, labels, system in convert_each(field(raw, "dial", list), "dial", _exchange):
        turns.append(_labelled("user", text, (each for each in labels if each[0] != _INFORM or each not in known)))
        turns.append(system)
        known = set(labels)
    return Dialogue(tuple(turns), str(field(raw, "dialogue_id", int)), _DOMAINS)


def _exchange(raw: Any) -> tuple[str, list[_Label], Turn]:  # noqa: ANN401
    user, system = field(raw, "usr", dict), field(raw, "sys", dict)
    said = convert_each(field(user, "slu", list), "slu", _user_labels)
    asked = convert_each(field(system, "DA", list), "DA", _system_label)
    text = Turn("user", field(user, "transcript", str)).content  # refuses a blank one here, where its place is known
    return (
        text,
        [label for labels in said for label in labels],
        _labelled("assistant", field(system, "sent", str), asked),
    )


def _labelled(role: str, text: str, labels: Iterable[_Label]) -> Turn:
    named = [label for label in labels if label[1]]
    acts = tuple(dict.fromkeys(act for act, _, _ in named))
    return Turn(role, text, acts, tuple((slot.lower(), value) for _, slot, value in named))


def _user_labels(raw: Any) -> list[_Label]:  # noqa: ANN401
    act = field(raw, "act", str).lower()
    labels = []
    for slot, value in convert_each(field(raw, "slots", list), "slots", partial(strings, count=2)):
        labels.append((act, value, "") if slot == _UNVALUED else (act, slot, value))
    return labels


def _system_label(raw: Any) -> _Label:  # noqa: ANN401
    if isinstance(raw, str):
        return _REQUEST, raw, ""
    # One list in the files holds slot and value in a single string: ["area, centre"].
    slot, _, value = ", ".join(names({"DA": raw}, "DA")).partition(", ")
    return _INFORM, slot, value


def _corpus(name: str, file: str, licence: str, terms: str, part_of: str = "") -> Corpus:
    return Corpus(
        name,
        {split: (file,) for split in SPLITS},
        _reader(file),
        _dialogue,
        source="https://github.com/terryqj0107/GECOR",
        licence=licence,
        terms=terms,
        folder="camrest_gecor",
        part_of=part_of,
    )


CORPORA = (
    _corpus("camrest676", "CamRest676.json", "none stated (the repository that holds it is MIT)", "research", "gecor"),
    _corpus("gecor", "CamRest676_annotated.json", "MIT; none stated for CamRest676 within it", "research"),
)
