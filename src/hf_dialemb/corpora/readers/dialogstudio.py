"""DialogStudio: many public dialogue datasets in one layout, with the annotation of each kept as it was.

Source: https://github.com/salesforce/DialogStudio. Licence: Apache 2.0 for the collection; each dataset keeps its own.
Layout: ``<category>/<dataset>/{train,val,test}.json`` (or ``{train,val,test}/dialogues_*.json``), each an object from
ids such as ``KVRET--train--1`` to dialogues. Of a dataset without those files, ``converted_examples.json`` is read:
five dialogues of its train split. The data folder may be that of one dataset alone.

Every dataset found is read; the twenty that Dialog2Flow unifies get labels (see `dialogstudio_labels`), the others
none. A side of an exchange where nothing was said gives no turn. HDSA-Dialog and KETOD put another text in place of
what was said, which is taken from the annotation. Records without exchanges, and those of the category
natural-language-understanding whose "response" is the label of an utterance, are no dialogues and are left out.
"""

from __future__ import annotations

import json
from typing import Any

from ...models.dialogue import Dialogue, Turn
from ...models.errors import InputError
from ..corpus import Corpus
from ..records import field
from ..source.files import Source
from ..source.parsing import json_members
from ..source.splits import Records
from .dialogstudio_labels import LABELS
from .dialogstudio_states import Exchange, Labels

_EXAMPLES = "converted_examples.json"
_FILES = {
    "train": ("train.json", "train/dialogues_*.json", _EXAMPLES),
    "dev": ("val.json", "val/dialogues_*.json"),
    "test": ("test.json", "test/dialogues_*.json"),
}
_UTTERANCES = {"user": "user utterance", "assistant": "system response"}
_SIDES = {"user": "original user side information", "assistant": "original system side information"}
_ABOUT = "original dialog info"
# These two print a delexicalised and an embellished text; what the annotation describes stands in the side information.
_SAID = {
    "HDSA-Dialog": {"user": "user_orig", "assistant": "sys_orig"},
    "KETOD": {"user": "original_utt", "assistant": "original_utt"},
}


def _records(source: Source, split: str) -> Records:
    complete = set()
    for pattern in _FILES[split]:
        for place, (key, raw) in json_members(source, pattern):
            dataset = _dataset(key)
            if pattern != _EXAMPLES:
                complete.add(dataset)
            elif dataset in complete:
                continue
            if _is_dialogue(raw):
                yield place, (key, raw)


def _dataset(key: str) -> str:
    return key.partition("--")[0]


def _is_dialogue(raw: Any) -> bool:  # noqa: ANN401
    log = raw.get("log") if isinstance(raw, dict) else None
    return log != [] and not (isinstance(log, dict) and _UTTERANCES["user"] in log)


def _dialogue(record: tuple[str, Any]) -> Dialogue:
    key, raw = record
    dataset = _dataset(key)
    about = _information(raw, _ABOUT) if dataset in LABELS else {}
    turns: list[Turn] = []
    domains: dict[str, None] = {}
    before: dict[str, Any] = {}
    for index, log in enumerate(field(raw, "log", list)):
        try:
            exchange = _exchange(dataset, log, before, about)
            for role in _UTTERANCES:
                turn, found = _turn(dataset, log, exchange, role)
                if turn:
                    turns.append(turn)
                    domains.update(dict.fromkeys(found))
        except InputError as error:
            raise InputError(f"log[{index}]: {error}") from None
        before = exchange.sides["user"]
    return Dialogue(tuple(turns), key, tuple(domains))


def _exchange(dataset: str, log: Any, before: dict[str, Any], about: dict[str, Any]) -> Exchange:  # noqa: ANN401
    """Decodes what is known of an exchange; nothing for a dataset without labels."""
    text = field(log, _UTTERANCES["user"], str)
    if dataset not in LABELS:
        return Exchange(text, {"user": {}, "assistant": {}}, before, "", about)
    sides = {role: _information(log, name) for role, name in _SIDES.items()}
    return Exchange(text, sides, before, field(log, "intent", str) if "intent" in log else "", about)


def _information(raw: Any, name: str) -> dict[str, Any]:  # noqa: ANN401
    """Side information is an object in the examples, and a string that holds its JSON in the release."""
    value = raw.get(name) if isinstance(raw, dict) else None
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise InputError(f"field {name}: broken JSON ({error}), expected an object; repair the record") from None
    return field({**raw, name: value} if isinstance(raw, dict) else raw, name, dict)


def _turn(dataset: str, log: Any, exchange: Exchange, role: str) -> tuple[Turn | None, tuple[str, ...]]:  # noqa: ANN401
    text, own = field(log, _UTTERANCES[role], str), exchange.sides[role]
    said = _SAID.get(dataset, {}).get(role, "")
    if said in own:
        text = field(own, said, str)
    if not text.strip():
        return None, ()
    labels = LABELS[dataset](exchange, role) if dataset in LABELS else Labels()
    acts = dict.fromkeys(act.lower() for act in labels.acts if act)
    slots = dict.fromkeys((name.lower(), value) for name, value in labels.slots if name)
    intents = dict.fromkeys(intent for intent in labels.intents if intent)
    return Turn(role, text, tuple(acts), tuple(slots), tuple(intents)), tuple(labels.domains)


CORPORA = (
    Corpus(
        "dialogstudio", _FILES, _records, _dialogue, "https://github.com/salesforce/DialogStudio",
        "Apache 2.0 for the collection; each dataset keeps its own", "research", folder="dialogstudio_samples",
        extract="5 dialogues of each of 26 datasets",
    ),
)  # fmt: skip
