"""Simulated dialogues sim-GEN: 120,000 dialogues on cinema tickets that a program put together from worded acts.

Source: https://github.com/google-research-datasets/simulated-dialogue. Licence: none stated; provided "as is".
Layout: ``{train,dev,test}.json``, each a list of dialogues, as unpacked from ``sim-GEN/data.zip``.

A record's turn is what the system says and the user's reply; a side without text said nothing. Users' acts are not
annotated: what is new in ``dialogue_state`` after a reply is what the user informed of. A slot that the system
requests has no value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...models.dialogue import Dialogue, Turn
from ..corpus import SPLITS, Corpus
from ..records import convert_each, field
from ..source.files import Source
from ..source.parsing import json_list

_FILES = {split: (f"{split}.json",) for split in SPLITS}
_REQUESTED = "REQUESTED"
_DOMAINS = ("movie",)


def _records(source: Source, split: str) -> Iterator[tuple[str, Any]]:
    return json_list(source, _FILES[split][0])


def _dialogue(raw: Any) -> Dialogue:  # noqa: ANN401
    turns = []
    known: dict[str, Any] = {}
    for system, user, state in convert_each(field(raw, "turns", list), "turns", _exchange):
        if system:
            turns.append(system)
        if user:
            new = tuple((slot.lower(), value) for slot, value in state.items() if known.get(slot) != value)
            turns.append(Turn("user", user, ("inform",) if new else (), new))
        known = state
    return Dialogue(tuple(turns), field(raw, "dialogue_id", str), _DOMAINS)


def _exchange(raw: Any) -> tuple[Turn | None, str, dict[str, str]]:  # noqa: ANN401
    said = field(raw, "system_utterance", str)
    acts, slots = _system_labels(field(raw, "system_acts", list))
    state = field(raw, "dialogue_state", dict)
    for slot in state:
        field(state, slot, str)
    system = Turn("assistant", said, acts, slots) if said.strip() else None
    user = field(raw, "user_utterance", str)
    return system, user if user.strip() else "", state


def _system_labels(acts: list[Any]) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    types, slots = [], []
    for act in acts:
        types.append(field(act, "name", str).lower())
        values = field(act, "slot_values", dict) if "slot_values" in act else {}
        for slot in values:
            value = field(values, slot, str)
            slots.append((slot.lower(), "" if value == _REQUESTED else value))
    return tuple(dict.fromkeys(types)), tuple(slots)


CORPORA = (
    Corpus(
        "sim_gen",
        _FILES,
        _records,
        _dialogue,
        source="https://github.com/google-research-datasets/simulated-dialogue",
        licence="none stated",
        terms="research",
        real=False,
    ),
)
