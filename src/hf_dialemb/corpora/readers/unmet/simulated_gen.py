"""Simulated dialogues sim-GEN: 120,000 dialogues on cinema tickets that a program put together from worded acts.

Source: https://github.com/google-research-datasets/simulated-dialogue. Licence: none stated; provided "as is".
Layout: ``{train,dev,test}.json``, each a list of dialogues, as unpacked from ``sim-GEN/data.zip``.

A record's turn is what the system says and the user's reply; a side without text said nothing. Users' acts are not
annotated: what is new in ``dialogue_state`` after a reply is what the user informed of. A slot that the system
requests has no value.
"""

from __future__ import annotations

from typing import Any

from ....models.dialogue import Dialogue, Turn
from ...corpus import SPLITS, Corpus
from ...records import field
from ...source.parsing import json_list
from ...source.splits import split_files
from ..turns import Slots, distinct, exchanges_of

_SOURCE = "https://github.com/google-research-datasets/simulated-dialogue"
_FILES = {split: (f"{split}.json",) for split in SPLITS}
_REQUESTED = "REQUESTED"


def _dialogue(raw: Any) -> Dialogue:  # noqa: ANN401
    known: dict[str, Any] = {}

    def exchange(both: Any) -> list[Turn]:  # noqa: ANN401
        nonlocal known
        said = field(both, "system_utterance", str)
        acts, slots = _system_labels(field(both, "system_acts", list))
        state = field(both, "dialogue_state", dict)
        new = tuple((slot.lower(), field(state, slot, str)) for slot in state if known.get(slot) != state[slot])
        turns = [Turn("assistant", said, acts, slots)] if said.strip() else []
        user = field(both, "user_utterance", str)
        if user.strip():
            turns.append(Turn("user", user, ("inform",) if new else (), new))
        known = state
        return turns

    return Dialogue(exchanges_of(raw, "turns", exchange), field(raw, "dialogue_id", str), ("movie",))


def _system_labels(acts: list[Any]) -> tuple[tuple[str, ...], Slots]:
    types, slots = [], []
    for act in acts:
        types.append(field(act, "name", str))
        values = field(act, "slot_values", dict) if "slot_values" in act else {}
        for slot in values:
            value = field(values, slot, str)
            slots.append((slot.lower(), "" if value == _REQUESTED else value))
    return distinct(types), tuple(slots)


_RECORDS = split_files(json_list, _FILES)
CORPORA = (Corpus("sim_gen", _FILES, _RECORDS, _dialogue, _SOURCE, "none stated", "research", real=False),)
