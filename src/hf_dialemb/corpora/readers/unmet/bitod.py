"""BiTOD: task dialogues of tourists in Hong Kong and a wizard with a database; the English half.

Layout: ``en_{train,valid,test}.json``, each an object from id to dialogue. The Chinese half (``zh_*.json``) is not
read.

Only events with a text were said; queries and the knowledge base's answers are left out. An action "inform_intent"
gives an intent and no act. The labels of a dialogue are the domains of the intents that were active, without "chat".
"""

from ....dialogue import Dialogue, Turn
from ...corpus import Corpus
from ...records import Raw, Slots, distinct, each_of, field, flattened, one_of
from ...source.parsing import json_members, split_files

_SOURCE = "https://github.com/HLTCHKUST/BiToD"
_FILES = {"train": ("en_train.json",), "dev": ("en_valid.json",), "test": ("en_test.json",)}
_ROLES = {"User": "user", "Wizard": "assistant", "KnowledgeBase": ""}
_NO_DOMAIN = ("", "chat")


def labels_of(actions: list[Raw]) -> tuple[tuple[str, ...], Slots, tuple[str, ...]]:
    """Reads the labels of what is said."""
    acts, slots, intents = [], [], []
    for action in actions:
        act, slot, values = field(action, "act", str), field(action, "slot", str), field(action, "value", list)
        value = str(values[0]) if values else ""
        if slot != "intent":
            acts.append(act)
            if slot:
                slots.append((slot.lower(), value))
        elif act == "inform_intent" and value:
            intents.append(value.replace("_en_US", "").removesuffix("_en"))
    return distinct(acts), tuple(dict.fromkeys(slots)), tuple(dict.fromkeys(intents))


def domain_of(intent: str) -> tuple[str, ...]:
    """Finds the domain of an intent."""
    domain = intent.partition("_")[0]
    return () if domain in _NO_DOMAIN else (domain,)


def _dialogue(identifier: str, raw: Raw) -> Dialogue:
    turns = flattened(each_of(raw, "Events", _turns))
    intents = [field(event, "active_intent", str) for event in raw["Events"] if "active_intent" in event]
    domains = dict.fromkeys(flattened(map(domain_of, intents)))
    return Dialogue(turns, identifier, tuple(domains))


def _turns(event: Raw) -> list[Turn]:
    role = _ROLES[one_of(event, "Agent", _ROLES)]
    if not role or "Text" not in event:
        return []
    return [Turn(role, field(event, "Text", str), *labels_of(field(event, "Actions", list)))]


_RECORDS = split_files(json_members, _FILES)
CORPORA = (Corpus("bitod", _FILES, _RECORDS, _dialogue, _SOURCE, "Apache 2.0", "permissive", real=False),)
