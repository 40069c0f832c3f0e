"""BiTOD: task dialogues of tourists in Hong Kong and a wizard with a database; the English half.

Source: https://github.com/HLTCHKUST/BiToD. Licence: Apache 2.0.
Layout: ``en_{train,valid,test}.json``, each an object from id to dialogue. The Chinese half (``zh_*.json``) is not
read.

Only events with a text were said; queries and the knowledge base's answers are left out. An action "inform_intent"
gives an intent and no act. The labels of a dialogue are the domains of the intents that were active, without "chat".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...models.dialogue import Dialogue, Turn
from ..corpus import Corpus
from ..records import convert_each, field, one_of
from ..source.files import Source
from ..source.parsing import json_members

_FILES = {"train": ("en_train.json",), "dev": ("en_valid.json",), "test": ("en_test.json",)}
_ROLES = {"User": "user", "Wizard": "assistant", "KnowledgeBase": ""}
_NO_DOMAIN = ("", "chat")


def labels_of(actions: list[Any]) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Reads the labels of what is said."""
    acts, slots, intents = [], [], []
    for action in actions:
        act, slot, values = field(action, "act", str), field(action, "slot", str), field(action, "value", list)
        value = str(values[0]) if values else ""
        if slot != "intent":
            acts.append(act.lower())
            if slot:
                slots.append((slot.lower(), value))
        elif act == "inform_intent" and value:
            intents.append(value.replace("_en_US", "").removesuffix("_en"))
    return tuple(dict.fromkeys(acts)), tuple(dict.fromkeys(slots)), tuple(dict.fromkeys(intents))


def domain_of(intent: str) -> tuple[str, ...]:
    """Finds the domain of an intent."""
    domain = intent.partition("_")[0]
    return () if domain in _NO_DOMAIN else (domain,)


def _records(source: Source, split: str) -> Iterator[tuple[str, tuple[str, Any]]]:
    return json_members(source, _FILES[split][0])


def _dialogue(record: tuple[str, Any]) -> Dialogue:
    identifier, raw = record
    events = field(raw, "Events", list)
    turns = [turn for turn in convert_each(events, "Events", _turn) if turn]
    intents = [field(event, "active_intent", str) for event in events if "active_intent" in event]
    domains = dict.fromkeys(domain for intent in intents for domain in domain_of(intent))
    return Dialogue(tuple(turns), identifier, tuple(domains))


def _turn(event: Any) -> Turn | None:  # noqa: ANN401
    role = _ROLES[one_of(event, "Agent", _ROLES)]
    if not role or "Text" not in event:
        return None
    return Turn(role, field(event, "Text", str), *labels_of(field(event, "Actions", list)))


CORPORA = (
    Corpus(
        "bitod",
        _FILES,
        _records,
        _dialogue,
        source="https://github.com/HLTCHKUST/BiToD",
        licence="Apache 2.0",
        terms="permissive",
        real=False,
    ),
)
