"""Simulated dialogues sim-M (cinema tickets) and sim-R (restaurant tables): outlines of a simulator, worded by people.

Source: https://github.com/google-research-datasets/simulated-dialogue. Licence: none stated; provided "as is".
Layout: ``sim-M/{train,dev,test}.json`` and ``sim-R/{train,dev,test}.json``, each a list of dialogues.

A record's turn is what the system says, missing at the start, and the user's reply. A system act brings its slot; a
user act seldom does, so a user's slots are those that are marked in the utterance. What the user wants, such as
``BUY_MOVIE_TICKETS``, is the intent of the first turn.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from ...models.dialogue import Dialogue, Turn
from ..corpus import SPLITS, Corpus
from ..records import field, names
from ..source.parsing import json_list
from ..source.splits import split_files
from .turns import Slots, distinct, exchanges_of, marked

_SOURCE = "https://github.com/google-research-datasets/simulated-dialogue"


def _dialogue(raw: Any, domain: str) -> Dialogue:  # noqa: ANN401
    return Dialogue(exchanges_of(raw, "turns", _exchange), field(raw, "dialogue_id", str), (domain,))


def _exchange(raw: Any) -> list[Turn]:  # noqa: ANN401
    turns = []
    utterance = field(raw, "user_utterance", dict)
    if "system_utterance" in raw:
        acts, slots = _system_labels(field(raw, "system_acts", list))
        turns.append(Turn("assistant", field(field(raw, "system_utterance", dict), "text", str), acts, slots))
    acts = distinct(field(act, "type", str) for act in field(raw, "user_acts", list))
    intents = names(raw, "user_intents") if "user_intents" in raw else ()
    turns.append(Turn("user", field(utterance, "text", str), acts, marked(utterance), intents))
    return turns


def _system_labels(acts: list[Any]) -> tuple[tuple[str, ...], Slots]:
    types, slots = [], []
    for act in acts:
        types.append(field(act, "type", str))
        if "slot" in act:
            slots.append((field(act, "slot", str).lower(), field(act, "value", str) if "value" in act else ""))
    return distinct(types), tuple(slots)


def _corpus(name: str, folder: str, domain: str, *, real: bool) -> Corpus:
    files = {split: (f"{folder}/{split}.json",) for split in SPLITS}
    records, dialogue = split_files(json_list, files), partial(_dialogue, domain=domain)
    return Corpus(name, files, records, dialogue, _SOURCE, "none stated", "research", real=real)


CORPORA = (_corpus("sim_m", "sim-M", "movie", real=True), _corpus("sim_r", "sim-R", "restaurant", real=False))
