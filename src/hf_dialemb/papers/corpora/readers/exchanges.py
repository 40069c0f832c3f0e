"""Corpora whose records pair what two sides say.

WOZ 2.0, CamRest676, GECOR, the simulated Sim-M, and KVRET.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import starmap

from ....data.corpus import Files, Reading, catalogued
from ....data.parsing import json_list, split_files, with_split
from ....data.raw_records import Raw, Slots, distinct, flattened
from ....data.readers.shapes import split_patterns
from ....dialogue import Dialogue, Turn
from .. import CATALOGUE
from ..row_forms import Label, labelled, marked, out_of_all, without_empty

# WOZ 2.0: ``woz_{train,validate,test}_en.json``. An exchange is what the system says, first
# nothing, and the user's reply. ``["request", "phone"]`` requests the slot phone, any other pair
# informs; labels without a slot are left out. A system act that is a slot's name requests it, a
# pair informs.


def _woz_dialogue(split: str, record: Raw) -> Dialogue:
    """Convert a record of WOZ 2.0, whose numbers repeat between the splits."""
    exchanges = starmap(_woz_exchange, enumerate(record["dialogue"]))
    return Dialogue(flattened(exchanges), f"{split}/{record['dialogue_idx']}", ("restaurant",))


def _woz_exchange(number: int, exchange: Raw) -> list[Turn]:
    text = exchange["system_transcript"]
    acts = tuple(map(system_label, exchange["system_acts"]))
    turns = [labelled("assistant", text, acts)] if number or text else []
    reply = labelled("user", exchange["transcript"], tuple(map(user_label, exchange["turn_label"])))
    return [*turns, reply]


def user_label(pair: Raw) -> Label:
    """Read a pair of slot and value of a user's turn."""
    slot, value = pair
    return ("request", value, "") if slot == "request" else ("inform", slot, value)


def system_label(act: Raw) -> Label:
    """Read a system act: a slot, or a pair of slot and value."""
    if isinstance(act, str):
        return "request", act, ""
    # One list in CamRest676 holds slot and value in a single string: ["area, centre"].
    slot, _, value = ", ".join(act).partition(", ")
    return "inform", slot, value


_WOZ_FILES = split_patterns("woz_{}_en.json", train="train", dev="validate", test="test")

# CamRest676, ``CamRest676.json``, and GECOR, the same dialogues with corrected spelling and
# annotated ellipses, which are not read, ``CamRest676_annotated.json``. A user's turn lists all
# that was informed of so far: it informs of what the turn before did not list. There is no official
# split; as in papers, it is 3:1:1 in the order of the file.

_DEV_START = 406
_TEST_START = 541


def _camrest_split(record: Raw) -> str:
    number = record.get("dialogue_id") if isinstance(record, dict) else None
    if not isinstance(number, int):
        return ""
    if number < _DEV_START:
        return "train"
    return "dev" if number < _TEST_START else "test"


def _camrest_dialogue(record: Raw) -> Dialogue:
    turns = []
    known: set[Label] = set()
    for text, labels, system in map(_camrest_exchange, record["dial"]):
        turns += [
            labelled(
                "user",
                text,
                (label for label in labels if label[0] != "inform" or label not in known),
            ),
            system,
        ]
        known = set(labels)
    return Dialogue(tuple(turns), str(record["dialogue_id"]), ("restaurant",))


def _camrest_exchange(exchange: Raw) -> tuple[str, tuple[Label, ...], Turn]:
    user = exchange["usr"]
    system = exchange["sys"]
    labels = flattened(map(camrest_labels, user["slu"]))
    # refuses a blank text where its place is known
    text = Turn("user", user["transcript"]).content
    return (
        text,
        labels,
        labelled("assistant", system["sent"], tuple(map(system_label, system["DA"]))),
    )


def camrest_labels(act: Raw) -> list[Label]:
    """Read an act of the user, such as inform with pairs of slot and value."""
    name = act["act"].lower()
    pairs = act["slots"]
    return [(name, value, "") if slot == "slot" else (name, slot, value) for slot, value in pairs]


def _camrest(file: str) -> tuple[Files, Reading, Callable[..., Dialogue]]:
    return split_patterns(file), out_of_all(json_list, file, _camrest_split), _camrest_dialogue


# Sim-M, cinema tickets: outlines of a simulator that people worded,
# ``sim-M/{train,dev,test}.json``. An exchange is what the system says, first nothing, and the
# user's reply. A user's slots are those marked in the text.


def _sim_m_dialogue(record: Raw) -> Dialogue:
    return Dialogue(flattened(map(_simulated, record["turns"])), record["dialogue_id"], ("movie",))


def _simulated(exchange: Raw) -> list[Turn]:
    utterance = exchange["user_utterance"]
    turns = []
    if "system_utterance" in exchange:
        text = exchange["system_utterance"]["text"]
        turns = [Turn("assistant", text, *simulated_labels(exchange["system_acts"]))]
    acts = distinct(act["type"] for act in exchange["user_acts"])
    intents = tuple(exchange["user_intents"]) if "user_intents" in exchange else ()
    return [*turns, Turn("user", utterance["text"], acts, marked(utterance), intents)]


def simulated_labels(acts: list[Raw]) -> tuple[tuple[str, ...], Slots]:
    """Read the system's acts in Sim-M and Sim-R."""
    slots = [(act["slot"].lower(), act.get("value", "")) for act in acts if "slot" in act]
    return distinct(act["type"] for act in acts), tuple(slots)


_SIM_M_FILES = split_patterns("sim-M/{}.json")

# KVRET, also called SMD: ``kvret_{train,dev,test}_public.json``. The domain is the task. The
# assistant's first turn after a driver's turn carries the driver's labels: values in ``slots``, and
# in ``requested`` a flag for every slot that was touched. The driver informs of new values, and
# requests flagged slots that have none. Ten turns without text and the dialogue without turns are
# left out.

_KVRET_FILES = split_patterns("kvret_{}_public.json")
_KVRET_ROLES = {"driver": "user", "assistant": "assistant"}


def _kvret_dialogue(record: Raw) -> Dialogue:
    scenario = record["scenario"]
    turns: list[Turn] = []
    known: dict[str, str] = {}
    follows_driver = False
    for role, text, values, flagged in map(_kvret_turn, record["dialogue"]):
        if role == "assistant":
            if follows_driver:
                turns[-1] = _with_kvret_labels(turns[-1], values, flagged, known)
            known.update((slot, value.lower()) for slot, value in values.items())
        follows_driver = role == "user" and bool(text.strip())
        if text.strip():
            turns.append(Turn(role, text))
    intent = scenario["task"]["intent"]
    return Dialogue(tuple(turns), scenario["uuid"], (intent,))


def _kvret_turn(turn: Raw) -> tuple[str, str, dict[str, str], list[str]]:
    """Read the role, the text, and what the driver said.

    Values by slot, and the slots with a flag.
    """
    role = _KVRET_ROLES[turn["turn"]]
    data = turn["data"]
    text = data["utterance"]
    if role == "user":
        return role, text, {}, []
    slots = data["slots"]
    requested = data["requested"]
    values = {slot: slots[slot].strip() for slot in slots}
    return role, text, values, [slot for slot in requested if requested[slot]]


def _with_kvret_labels(
    turn: Turn, values: dict[str, str], flagged: list[str], known: dict[str, str]
) -> Turn:
    informed = [
        (slot.lower(), value) for slot, value in values.items() if known.get(slot) != value.lower()
    ]
    requested = [(slot.lower(), "") for slot in flagged if slot not in values and slot not in known]
    acts = {"inform": informed, "request": requested}
    named = tuple(act for act, slots in acts.items() if slots)
    return replace(turn, dialogue_acts=named, slots=(*informed, *requested))


CORPORA = catalogued(
    {
        "woz2": (_WOZ_FILES, with_split(split_files(json_list, _WOZ_FILES)), _woz_dialogue),
        "camrest676": _camrest("CamRest676.json"),
        "gecor": _camrest("CamRest676_annotated.json"),
        "sim_m": (_SIM_M_FILES, split_files(json_list, _SIM_M_FILES), _sim_m_dialogue),
        "kvret": (
            _KVRET_FILES,
            without_empty("dialogue", split_files(json_list, _KVRET_FILES)),
            _kvret_dialogue,
        ),
    },
    CATALOGUE,
)
