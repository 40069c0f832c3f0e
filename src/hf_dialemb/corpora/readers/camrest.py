"""CamRest676 and GECOR: written dialogues of visitors who look for a restaurant in Cambridge, with slots.

GECOR has the same dialogues with corrected spelling and annotated ellipses and co-references.
Layout: ``CamRest676.json`` and ``CamRest676_annotated.json``, each a list of 676 dialogues.

A user's turn lists all that was informed of so far, so what a turn informs of is what the turn before it did not list.
Requests are not carried along: one that is listed again was made again. The slots in ``DA`` are those that the system
asks for; one with a value is put to the user, as ``inform``. There is no official split; as in papers, the first three
fifths of the file are train, the next is dev, the last test. In GECOR the text is what the user wrote, not the
rewritings.
"""

from functools import partial

from ...dialogue import Dialogue, Turn
from ..corpus import SPLITS, Corpus
from ..records import Label, Raw, each_of, field, labelled, names, strings
from ..source.parsing import json_list, out_of_all

_SOURCE, _FOLDER = "https://github.com/terryqj0107/GECOR", "camrest_gecor"
_DEV_START, _TEST_START = 406, 541  # an id is the position among the 676
_REQUEST, _INFORM = "request", "inform"
_UNVALUED = "slot"  # ["slot", "phone"] is the slot phone without a value


def _split(raw: Raw) -> str:
    """The split of a record; empty for a malformed one, which concerns every split."""
    number = raw.get("dialogue_id") if isinstance(raw, dict) else None
    if not isinstance(number, int):
        return ""
    return "train" if number < _DEV_START else "dev" if number < _TEST_START else "test"


def _dialogue(raw: Raw) -> Dialogue:
    turns = []
    known: set[Label] = set()
    for text, labels, system in each_of(raw, "dial", _exchange):
        turns.append(labelled("user", text, (each for each in labels if each[0] != _INFORM or each not in known)))
        turns.append(system)
        known = set(labels)
    return Dialogue(tuple(turns), str(field(raw, "dialogue_id", int)), ("restaurant",))


def _exchange(raw: Raw) -> tuple[str, list[Label], Turn]:
    user, system = field(raw, "usr", dict), field(raw, "sys", dict)
    said = each_of(user, "slu", _user_labels)
    asked = each_of(system, "DA", system_label)
    text = Turn("user", field(user, "transcript", str)).content  # refuses a blank one here, where its place is known
    labels = [label for labels in said for label in labels]
    return text, labels, labelled("assistant", field(system, "sent", str), asked)


def _user_labels(raw: Raw) -> list[Label]:
    act = field(raw, "act", str).lower()
    pairs = each_of(raw, "slots", partial(strings, count=2))
    return [(act, value, "") if slot == _UNVALUED else (act, slot, value) for slot, value in pairs]


def system_label(raw: Raw) -> Label:
    """Reads a system act."""
    if isinstance(raw, str):
        return _REQUEST, raw, ""
    # One list in the files holds slot and value in a single string: ["area, centre"].
    slot, _, value = ", ".join(names({"DA": raw}, "DA")).partition(", ")
    return _INFORM, slot, value


def _corpus(name: str, file: str, licence: str, part_of: str = "") -> Corpus:
    reading = (dict.fromkeys(SPLITS, (file,)), out_of_all(json_list, file, _split), _dialogue)
    return Corpus(name, *reading, _SOURCE, licence, "research", folder=_FOLDER, part_of=part_of)


CORPORA = (
    _corpus("camrest676", "CamRest676.json", "none stated (the repository that holds it is MIT)", "gecor"),
    _corpus("gecor", "CamRest676_annotated.json", "MIT; none stated for CamRest676 within it"),
)
