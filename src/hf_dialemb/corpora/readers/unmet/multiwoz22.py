"""MultiWOZ 2.2: MultiWOZ in the layout of SGD, with belief states, requested slots and intents of the user.

Layout: ``{train,dev,test}/dialogues_*.json``, each a list of dialogues, and ``dialog_acts.json`` with the acts of all
splits, which is kept in memory, as text; it may be missing.

A user turn informs of the slots whose values changed since the last user turn, and requests its requested slots, as in
Dialog2Flow; to that come those acts of ``dialog_acts.json`` that the belief state cannot show, such as ``thank``. Acts
and slots of a system turn are those of ``dialog_acts.json``. Slots stand without their domain. Ids are as in the other
versions; SNG01862 was taken out of this one.
"""

from ....dialogue import Dialogue, Turn
from ...corpus import SPLITS, Corpus, Records, Source
from ...records import Raw, each_of, field, names, one_of
from ...source.parsing import json_list
from ..multiwoz import acts_by_turn, identifier, labels, separate_acts

_SOURCE = "https://github.com/budzianowski/multiwoz/tree/master/data/MultiWOZ_2.2"
_ACTS = "dialog_acts.json"
_FILES = {split: (f"{split}/dialogues_*.json", _ACTS) for split in SPLITS}
_ROLES = {"USER": "user", "SYSTEM": "assistant"}
_NO_INTENT = "NONE"
_State = dict[str, tuple[str, ...]]


def _records(source: Source, split: str) -> Records:
    acts = separate_acts(source, _ACTS)
    for place, raw in json_list(source, _FILES[split][0]):
        key = raw.get("dialogue_id") if isinstance(raw, dict) else None
        yield place, (raw, acts.get(identifier(key)) if isinstance(key, str) else None)


def _dialogue(raw: Raw, text: str | None) -> Dialogue:
    acts, state = acts_by_turn(_ACTS, text), _State()

    def turn(spoken: Raw) -> Turn:
        nonlocal state
        role = _ROLES[one_of(spoken, "speaker", _ROLES)]
        utterance = field(spoken, "utterance", str)
        number = field(spoken, "turn_id", str)
        done, slots = labels(field(acts[number], "dialog_act", dict)) if number in acts else ((), ())
        if role == "assistant":
            return Turn(role, utterance, done, slots)
        before = state
        state, requested, intents = _user_frames(field(spoken, "frames", list))
        informed = [(name, values) for name, values in state.items() if before.get(name) != values]
        shown = [name for name, found in (("inform", informed), ("request", requested)) if found]
        slots = tuple((_slot(name), values[0] if values else "") for name, values in informed)
        slots += tuple((_slot(name), "") for name in requested)
        return Turn(role, utterance, tuple(dict.fromkeys((*shown, *done))), slots, intents)

    turns = each_of(raw, "turns", turn)
    return Dialogue(turns, identifier(field(raw, "dialogue_id", str)), names(raw, "services"))


def _user_frames(frames: list[Raw]) -> tuple[_State, tuple[str, ...], tuple[str, ...]]:
    """Puts the frames of all services together: the values of slots, the requested slots, the intents."""
    states = [field(frame, "state", dict) for frame in frames]
    values = [field(state, "slot_values", dict) for state in states]
    slots = {name: names(each, name) for each in values for name in each}
    requested = dict.fromkeys(name for state in states for name in names(state, "requested_slots"))
    intents = dict.fromkeys(field(state, "active_intent", str) for state in states)
    return slots, tuple(requested), tuple(intent for intent in intents if intent != _NO_INTENT)


def _slot(name: str) -> str:
    return (name.partition("-")[2] or name).lower()


CORPORA = (Corpus("multiwoz22", _FILES, _records, _dialogue, _SOURCE, "MIT", "permissive", real=False),)
