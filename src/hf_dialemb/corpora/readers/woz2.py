"""WOZ 2.0 and the cleaned DSTC2: callers and visitors who look for a restaurant in Cambridge, in one layout.

Layout: ``woz_{train,validate,test}_en.json`` and ``dstc2_{train,validate,test}_en.json``, each a list of dialogues.

A record's turn is what the system says, in WOZ 2.0 nothing at the start, and the user's reply. A ``turn_label`` such
as ``["request", "phone"]`` is the act request with the slot phone, any other informs of a slot; one without a slot
says nothing of any slot and is left out. A system act that is a slot's name requests it, one with a value informs. The
calls begin with the system's greeting, which the first turn of many callers only echoes.
"""

from ...dialogue import Dialogue, Turn
from ..corpus import Corpus
from ..records import Label, Raw, convert_each, each_of, field, flattened, labelled, strings
from ..source.parsing import json_list, split_files, with_split

_PARTS = {"train": "train", "dev": "validate", "test": "test"}
_REQUEST = "request"


def _dialogue(split: str, raw: Raw) -> Dialogue:
    exchanges = convert_each(enumerate(field(raw, "dialogue", list)), "dialogue", _exchange)
    identifier = f"{split}/{field(raw, 'dialogue_idx', int)}"  # DSTC2 numbers its dialogues from 0 in every file
    return Dialogue(flattened(exchanges), identifier, ("restaurant",))


def _exchange(index: int, raw: Raw) -> list[Turn]:
    said = field(raw, "system_transcript", str)
    acts = each_of(raw, "system_acts", system_label)
    turns = [labelled("assistant", said, acts)] if index or said else []
    labels = each_of(raw, "turn_label", user_label)
    return [*turns, labelled("user", field(raw, "transcript", str), labels)]


def user_label(raw: Raw) -> Label:
    """Reads a ``turn_label``."""
    slot, value = strings(raw, 2)
    return (_REQUEST, value, "") if slot == _REQUEST else ("inform", slot, value)


def system_label(raw: Raw) -> Label:
    """Reads a system act."""
    if isinstance(raw, str):
        return _REQUEST, raw, ""
    slot, value = strings(raw, 2)
    return "inform", slot, value


def _corpus(name: str, prefix: str, repository: str, licence: str, terms: str, *, real: bool) -> Corpus:
    files = {split: (f"{prefix}_{part}_en.json",) for split, part in _PARTS.items()}
    records, source = with_split(split_files(json_list, files)), f"https://github.com/{repository}"
    return Corpus(name, files, records, _dialogue, source, licence, terms, real=real)


CORPORA = (
    _corpus("woz2", "woz", "nmrksic/neural-belief-tracker", "Apache 2.0", "permissive", real=True),
    _corpus("dstc2_clean", "dstc2", "guanlinchao/bert-dst", "GPL 3", "share-alike", real=False),
)
