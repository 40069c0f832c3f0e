"""DialogStudio: many public dialogue datasets in one layout, with the annotation of each kept as it was.

Layout: ``<category>/<dataset>/{train,val,test}.json`` (or ``{train,val,test}/dialogues_*.json``), each an object from
ids such as ``KVRET--train--1`` to dialogues. Of a dataset without those files, ``converted_examples.json`` is read:
five dialogues of its train split. The data folder may be that of one dataset alone.

Every dataset found is read; the twenty that Dialog2Flow unifies get labels (see `dialogstudio_labels`), the others
none. A side of an exchange where nothing was said gives no turn. HDSA-Dialog and KETOD put another text in place of
what was said, which is taken from the annotation. Records without exchanges, and those of the category
natural-language-understanding whose "response" is the label of an utterance, are no dialogues and are left out.
"""

import json

from ...dialogue import Dialogue, Turn
from ...errors import InputError
from ..corpus import Corpus, Records, Source
from ..records import Raw, distinct, each_of, field, optional
from ..source.parsing import json_members
from .dialogstudio_labels import LABELS, Exchange, Labels

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


def _is_dialogue(raw: Raw) -> bool:
    log = raw.get("log") if isinstance(raw, dict) else None
    return log != [] and not (isinstance(log, dict) and _UTTERANCES["user"] in log)


def _dialogue(key: str, raw: Raw) -> Dialogue:
    dataset = _dataset(key)
    about = _information(raw, _ABOUT) if dataset in LABELS else {}
    turns: list[Turn] = []
    domains: dict[str, None] = {}
    before: dict[str, Raw] = {}

    def read(log: Raw) -> None:
        nonlocal before
        exchange = _exchange(dataset, log, before, about)
        for role in _UTTERANCES:
            turn, found = _turn(dataset, log, exchange, role)
            if turn:
                turns.append(turn)
                domains.update(dict.fromkeys(found))
        before = exchange.sides["user"]

    each_of(raw, "log", read)
    return Dialogue(tuple(turns), key, tuple(domains))


def _exchange(dataset: str, log: Raw, before: dict[str, Raw], about: dict[str, Raw]) -> Exchange:
    """Decodes what is known of an exchange; nothing for a dataset without labels."""
    text = field(log, _UTTERANCES["user"], str)
    if dataset not in LABELS:
        return Exchange(text, {"user": {}, "assistant": {}}, before, "", about)
    sides = {role: _information(log, name) for role, name in _SIDES.items()}
    return Exchange(text, sides, before, optional(log, "intent", str), about)


def _information(raw: Raw, name: str) -> dict[str, Raw]:
    """Side information is an object in the examples, and a string that holds its JSON in the release."""
    value = raw.get(name) if isinstance(raw, dict) else None
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise InputError(f"field {name}: broken JSON ({error}), expected an object; repair the record") from None
    return field({**raw, name: value} if isinstance(raw, dict) else raw, name, dict)


def _turn(dataset: str, log: Raw, exchange: Exchange, role: str) -> tuple[Turn | None, tuple[str, ...]]:
    text, own = field(log, _UTTERANCES[role], str), exchange.sides[role]
    said = _SAID.get(dataset, {}).get(role, "")
    if said in own:
        text = field(own, said, str)
    if not text.strip():
        return None, ()
    labels = LABELS[dataset](exchange, role) if dataset in LABELS else Labels()
    slots = dict.fromkeys((name.lower(), value) for name, value in labels.slots if name)
    intents = dict.fromkeys(filter(None, labels.intents))
    return Turn(role, text, distinct(filter(None, labels.acts)), tuple(slots), tuple(intents)), tuple(labels.domains)


CORPORA = (
    Corpus(
        "dialogstudio", _FILES, _records, _dialogue, "https://github.com/salesforce/DialogStudio",
        "Apache 2.0 for the collection; each dataset keeps its own", "research", folder="dialogstudio_samples",
        extract="5 dialogues of each of 26 datasets",
    ),
)  # fmt: skip
