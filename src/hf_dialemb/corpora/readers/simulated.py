"""Simulated dialogues: outlines of a simulator on cinema tickets and restaurant tables, worded by people or a program.

Layout: ``sim-M/{train,dev,test}.json`` (cinema) and ``sim-R/{train,dev,test}.json`` (restaurants), which people worded;
for sim-GEN (cinema), 120,000 dialogues that a program put together from worded acts, ``{train,dev,test}.json`` as
unpacked from ``sim-GEN/data.zip``. Each is a list of dialogues.

A record's turn is what the system says, missing at the start, and the user's reply. A system act brings its slot; a
user act seldom does, so a user's slots are those that are marked in the utterance. What the user wants, such as
``BUY_MOVIE_TICKETS``, is the intent of the first turn.

In sim-GEN a side without text said nothing, and users' acts are not annotated: what is new in ``dialogue_state`` after
a reply is what the user informed of. A slot that the system requests has no value.
"""

from functools import partial

from ...dialogue import Dialogue, Turn
from ..corpus import SPLITS, Corpus
from ..records import Raw, Slots, distinct, each_of, field, flattened, marked, names, optional
from ..source.parsing import json_list, split_files

_SOURCE, _TERMS = "https://github.com/google-research-datasets/simulated-dialogue", ("none stated", "research")
_REQUESTED = "REQUESTED"


def _dialogue(raw: Raw, domain: str) -> Dialogue:
    return Dialogue(flattened(each_of(raw, "turns", _exchange)), field(raw, "dialogue_id", str), (domain,))


def _exchange(raw: Raw) -> list[Turn]:
    turns = []
    utterance = field(raw, "user_utterance", dict)
    if "system_utterance" in raw:
        said = field(field(raw, "system_utterance", dict), "text", str)
        turns.append(Turn("assistant", said, *system_labels(field(raw, "system_acts", list))))
    acts = distinct(field(act, "type", str) for act in field(raw, "user_acts", list))
    intents = names(raw, "user_intents") if "user_intents" in raw else ()
    turns.append(Turn("user", field(utterance, "text", str), acts, marked(utterance), intents))
    return turns


def system_labels(acts: list[Raw]) -> tuple[tuple[str, ...], Slots]:
    """Reads what the system does in sim-M and sim-R."""
    types, slots = [], []
    for act in acts:
        types.append(field(act, "type", str))
        if "slot" in act:
            slots.append((field(act, "slot", str).lower(), optional(act, "value", str)))
    return distinct(types), tuple(slots)


def _generated_dialogue(raw: Raw) -> Dialogue:
    known: dict[str, Raw] = {}

    def exchange(both: Raw) -> list[Turn]:
        nonlocal known
        said = field(both, "system_utterance", str)
        acts, slots = generated_labels(field(both, "system_acts", list))
        state = field(both, "dialogue_state", dict)
        new = tuple((slot.lower(), field(state, slot, str)) for slot in state if known.get(slot) != state[slot])
        turns = [Turn("assistant", said, acts, slots)] if said.strip() else []
        user = field(both, "user_utterance", str)
        if user.strip():
            turns.append(Turn("user", user, ("inform",) if new else (), new))
        known = state
        return turns

    return Dialogue(flattened(each_of(raw, "turns", exchange)), field(raw, "dialogue_id", str), ("movie",))


def generated_labels(acts: list[Raw]) -> tuple[tuple[str, ...], Slots]:
    """Reads what the system does in sim-GEN."""
    types, slots = [], []
    for act in acts:
        types.append(field(act, "name", str))
        values = optional(act, "slot_values", dict)
        for slot in values:
            value = field(values, slot, str)
            slots.append((slot.lower(), "" if value == _REQUESTED else value))
    return distinct(types), tuple(slots)


def _corpus(name: str, folder: str, domain: str, *, real: bool) -> Corpus:
    files = {split: (f"{folder}/{split}.json",) for split in SPLITS}
    dialogue = partial(_dialogue, domain=domain)
    return Corpus(name, files, split_files(json_list, files), dialogue, _SOURCE, *_TERMS, real=real)


_GENERATED = {split: (f"{split}.json",) for split in SPLITS}
_READING = (_GENERATED, split_files(json_list, _GENERATED), _generated_dialogue)
CORPORA = (
    _corpus("sim_m", "sim-M", "movie", real=True),
    _corpus("sim_r", "sim-R", "restaurant", real=False),
    Corpus("sim_gen", *_READING, _SOURCE, *_TERMS, real=False),
)
