"""DialogStudio: many public dialogue datasets in one layout, with the annotation of each kept as it was.

Layout: ``<category>/<dataset>/{train,val,test}.json`` (or ``{train,val,test}/dialogues_*.json``), each an object from
ids such as ``KVRET--train--1`` to dialogues. Of a dataset without those files, ``converted_examples.json`` is read:
five dialogues of its train split. The data folder may be that of a single dataset.

Every dataset is read; the twenty that Dialog2Flow unifies get labels (see `dialogstudio_labels`). A side of an exchange
without text gives no turn. HDSA-Dialog and KETOD put another text in place of the utterance, which is taken from the
annotation. Records without exchanges, and utterances with a label for a response, are not dialogues and are left out.
"""

import json

from ....corpora.corpus import Records, Source, catalogued
from ....corpora.parsing import json_members
from ....corpora.records import Raw, distinct, each_of, field
from ....dialogue import Dialogue, Turn
from ....errors import InputError
from .. import CATALOGUE
from .dialogstudio_labels import LABELS, Exchange

_EXAMPLES = "converted_examples.json"
_FILES = {
    "train": ("train.json", "train/dialogues_*.json", _EXAMPLES),
    "dev": ("val.json", "val/dialogues_*.json"),
    "test": ("test.json", "test/dialogues_*.json"),
}
_TEXTS = {"user": "user utterance", "assistant": "system response"}
_SIDES = {"user": "original user side information", "assistant": "original system side information"}
# Where the side information has the text that its annotation describes.
_OTHER_TEXTS = {
    "HDSA-Dialog": {"user": "user_orig", "assistant": "sys_orig"},
    "KETOD": {"user": "original_utt", "assistant": "original_utt"},
}


def _records(source: Source, split: str) -> Records:
    complete = set()
    for pattern in _FILES[split]:
        for place, (key, record) in json_members(source, pattern):
            dataset = key.partition("--")[0]
            if pattern != _EXAMPLES:
                complete.add(dataset)
            if (pattern != _EXAMPLES or dataset not in complete) and _is_dialogue(record):
                yield place, (key, record)


def _is_dialogue(record: Raw) -> bool:
    log = record.get("log") if isinstance(record, dict) else None
    return log != [] and not (isinstance(log, dict) and _TEXTS["user"] in log)


def _dialogue(key: str, record: Raw) -> Dialogue:
    dataset = key.partition("--")[0]
    about = _information(record, "original dialog info") if dataset in LABELS else {}
    turns: list[Turn] = []
    domains: dict[str, None] = {}
    before: dict[str, Raw] = {}

    def read(log: Raw) -> None:
        nonlocal before
        sides = {role: _information(log, name) if dataset in LABELS else {} for role, name in _SIDES.items()}
        exchange = Exchange(field(log, _TEXTS["user"], str), sides, before, log.get("intent") or "", about)
        before = sides["user"]
        for role, name in _TEXTS.items():
            other = _OTHER_TEXTS.get(dataset, {}).get(role)
            text = field(sides[role], other, str) if other in sides[role] else field(log, name, str)
            if text.strip():
                acts, slots, intents, topics = LABELS[dataset](exchange, role) if dataset in LABELS else ((),) * 4
                pairs = dict.fromkeys((slot.lower(), value) for slot, value in slots if slot)
                wanted = tuple(dict.fromkeys(filter(None, intents)))
                turns.append(Turn(role, text, distinct(filter(None, acts)), tuple(pairs), wanted))
                domains.update(dict.fromkeys(topics))

    each_of(record, "log", read)
    return Dialogue(tuple(turns), key, tuple(domains))


def _information(record: Raw, name: str) -> dict[str, Raw]:
    """Read an object of the examples, which is a string of its JSON in the release."""
    value = record.get(name) if isinstance(record, dict) else None
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise InputError(f"field {name}: broken JSON ({error}), expected an object; repair the record") from None
    return field({name: value}, name, dict)


CORPORA = catalogued({"dialogstudio": (_FILES, _records, _dialogue)}, CATALOGUE)
