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

from functools import partial
from typing import Any

from ...models.dialogue import Dialogue, Turn
from ..corpus import SPLITS, Corpus
from ..records import convert_each, field, names, strings
from ..source.parsing import json_list
from ..source.splits import out_of_all
from .turns import Label, labelled

_SOURCE = "https://github.com/terryqj0107/GECOR"
_DEV_START, _TEST_START = 406, 541  # an id is the position among the 676
_DOMAINS = ("restaurant",)
_REQUEST, _INFORM = "request", "inform"
_UNVALUED = "slot"  # ["slot", "phone"] is the slot phone without a value


def _split(raw: Any) -> str:  # noqa: ANN401
    """The split of a record; empty for a malformed one, which concerns every split."""
    number = raw.get("dialogue_id") if isinstance(raw, dict) else None
    if not isinstance(number, int):
        return ""
    return "train" if number < _DEV_START else "dev" if number < _TEST_START else "test"


def _dialogue(raw: Any) -> Dialogue:  # noqa: ANN401
    turns = []
    known: set[Label] = set()
    for text, labels, system in convert_each(field(raw, "dial", list), "dial", _exchange):
        turns.append(labelled("user", text, (each for each in labels if each[0] != _INFORM or each not in known)))
        turns.append(system)
        known = set(labels)
    return Dialogue(tuple(turns), str(field(raw, "dialogue_id", int)), _DOMAINS)


def _exchange(raw: Any) -> tuple[str, list[Label], Turn]:  # noqa: ANN401
    user, system = field(raw, "usr", dict), field(raw, "sys", dict)
    said = convert_each(field(user, "slu", list), "slu", _user_labels)
    asked = convert_each(field(system, "DA", list), "DA", _system_label)
    text = Turn("user", field(user, "transcript", str)).content  # refuses a blank one here, where its place is known
    return (
        text,
        [label for labels in said for label in labels],
        labelled("assistant", field(system, "sent", str), asked),
    )


def _user_labels(raw: Any) -> list[Label]:  # noqa: ANN401
    act = field(raw, "act", str).lower()
    pairs = convert_each(field(raw, "slots", list), "slots", partial(strings, count=2))
    return [(act, value, "") if slot == _UNVALUED else (act, slot, value) for slot, value in pairs]


def _system_label(raw: Any) -> Label:  # noqa: ANN401
    if isinstance(raw, str):
        return _REQUEST, raw, ""
    # One list in the files holds slot and value in a single string: ["area, centre"].
    slot, _, value = ", ".join(names({"DA": raw}, "DA")).partition(", ")
    return _INFORM, slot, value


def _corpus(name: str, file: str, licence: str, part_of: str = "") -> Corpus:
    files, records = dict.fromkeys(SPLITS, (file,)), out_of_all(json_list, file, _split)
    return Corpus(
        name, files, records, _dialogue, _SOURCE, licence, "research", folder="camrest_gecor", part_of=part_of
    )


CORPORA = (
    _corpus("camrest676", "CamRest676.json", "none stated (the repository that holds it is MIT)", "gecor"),
    _corpus("gecor", "CamRest676_annotated.json", "MIT; none stated for CamRest676 within it"),
)
