"""Labels of the twenty datasets of DialogStudio that Dialog2Flow unifies: acts, slots, intents and domains.

Each function takes an exchange and the role that speaks, and follows Dialog2Flow's program; where it does not, its
docstring says so. The names are as the datasets have them. What the program does to all labels alike is left to the
unified form: words are cleaned, and intents that repeat the last ones are dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..records import field, names
from . import abcd, taskmaster
from .dialogstudio_states import (
    NO_DOMAIN,
    Exchange,
    Labels,
    asked_or_told,
    gecor,
    hdsa,
    multiwoz22,
    pair,
    simulated_gen,
)
from .unmet import bitod, msdc


def _abcd(exchange: Exchange, role: str) -> Labels:
    """ABCD: marks in the delexicalised text are slots; a user's turn of at least four words has the intent."""
    rows = field(exchange.sides[role], "delexed", list)
    intents = abcd.intents_of(rows, exchange.text) if role == "user" else ()
    return Labels((), abcd.slots_of(rows), intents, (field(exchange.about, "flow", str),))


def _bitod(exchange: Exchange, role: str) -> Labels:
    """BiTOD: the actions, and the domain of the user's active intent; the program takes "chat" for a domain."""
    active = field(exchange.sides["user"], "active_intent", str)
    return Labels(*bitod.labels_of(field(exchange.sides[role], "Actions", list)), bitod.domain_of(active))


def _multiwoz(exchange: Exchange, role: str) -> Labels:
    """MultiWOZ_2.1 and Disambiguation: acts such as "Hotel-Inform" with their slots.

    Acts without a slot are kept (the program drops them), booking and general are no domains (they are in the program),
    and the intents, which are the user's acts, are not repeated for the system.
    """
    own = exchange.sides[role]
    acts, slots, domains = [], [], []
    annotated = field(own, "dialog_act", dict) if "dialog_act" in own else {}
    for key in annotated:
        domain, _, act = key.lower().rpartition("-")
        acts.append(act)
        domains += [domain] if domain not in NO_DOMAIN else []
        for slot, value in map(pair, field(annotated, key, list)):
            if slot.lower() != "none":
                slots.append((slot, "" if value == "?" else value))
    return Labels(acts, slots, exchange.intents if role == "user" else (), domains)


def _woz(exchange: Exchange, role: str) -> Labels:
    """DSTC2-Clean and WOZ2_0: slots that either side tells or asks for."""
    own = exchange.sides[role]
    if role != "user":
        return asked_or_told(field(own, "system_acts", list) if "system_acts" in own else [])
    acts, slots = [], []
    for name, value in map(pair, field(own, "turn_label", list) if "turn_label" in own else []):
        if name:
            acts.append("request" if name == "request" else "inform")
            slots.append((value, "") if name == "request" else (name, value))
    return Labels(acts, slots, (), ("restaurant",))


def _frames(exchange: Exchange, role: str) -> Labels:
    """FRAMES: one act a turn; what the user tells stands in the information of the answer.

    The program takes the name of the task, "book", for an act wherever the user tells something.
    """
    act = field(exchange.sides[role], "da_label", str)
    acts = [act] if act != "null" else []
    if role != "user":
        return Labels(acts, (), (), ("travel",))
    told = field(exchange.sides["assistant"], "slots", dict)
    return Labels(acts, [(name, str(value)) for name, value in told.items()], acts, ("travel",))


def _schema_guided(exchange: Exchange, role: str) -> Labels:
    """SGD and KETOD: the actions of all frames; an action on the slot "intent" gives an intent, and no act."""
    acts, slots, domains = [], [], []
    intents: list[str] = []
    for frame in field(exchange.sides[role], "frames", list):
        domains.append(field(frame, "service", str).lower().partition("_")[0])
        for action in field(frame, "actions", list):
            slot, values = field(action, "slot", str), names(action, "values")
            if slot == "intent":
                intents += values
                continue
            acts.append(field(action, "act", str))
            slots.append((slot, values[0] if values else ""))
    return Labels(acts, slots, intents, domains)


def _msdc(exchange: Exchange, role: str) -> Labels:
    """MS-DC: acts such as "inform(city=Oslo)"; one that gives a value informs as well (see `msdc` for the details)."""
    acts, slots = msdc.labels_of(names(exchange.sides[role], "act"))
    intents = exchange.intents if role == "user" else ()
    return Labels(acts, slots, intents, (field(exchange.about, "domain", str),))


def _muldogo(exchange: Exchange, role: str) -> Labels:
    """MulDoGO: tags of the words and intents, of customers alone; several intents of one turn are taken apart."""
    own = exchange.sides[role]
    if "slot-labels" not in own:
        return Labels((), (), (), (field(exchange.about, "domain", str),))
    tags = [tag for line in _texts(own, "slot-labels") for tag in line.split() if tag != "O"]
    intents = [intent for line in _texts(own, "intent") for intent in line.split("<div>")]
    return Labels((), [(tag, "") for tag in tags], intents, (field(exchange.about, "domain", str),))


def _texts(own: dict[str, Any], name: str) -> list[str]:
    """An empty cell of a table became a number that is none on its way here."""
    return [value for value in field(own, name, list) if isinstance(value, str)]


def _simulated(domain: str) -> Callable[[Exchange, str], Labels]:
    def labels(exchange: Exchange, role: str) -> Labels:
        """SimJointMovie and SimJointRestaurant: acts, with slots of the system; slots in the user's text."""
        own = exchange.sides[role]
        if role != "user":
            acts = field(own, "system_acts", list) if "system_acts" in own else []
            types = [field(act, "type", str) for act in acts]
            slots = [(field(act, "slot", str), str(act.get("value") or "")) for act in acts if "slot" in act]
            return Labels(types, slots, (), (domain,))
        acts = field(own, "user_acts", list) if "user_acts" in own else []
        intents = names(own, "user_intents") if own.get("user_intents") else ()
        return Labels([field(act, "type", str) for act in acts], _spans(own), intents, (domain,))

    return labels


def _spans(own: dict[str, Any]) -> list[tuple[str, str]]:
    if "user_utterance" not in own:
        return []
    utterance = field(own, "user_utterance", dict)
    tokens = names(utterance, "tokens")
    return [
        (field(span, "slot", str), " ".join(tokens[field(span, "start", int) : field(span, "exclusive_end", int)]))
        for span in field(utterance, "slots", list)
    ]


def _taskmaster(exchange: Exchange, role: str) -> Labels:
    """Taskmaster1 and Taskmaster2: annotated stretches are slots, and then the turn informs.

    Users' stretches in Taskmaster1 stand under "speaker", where the program does not look for them; an "accept" or
    "reject" at the end of a name is no part of it; and the domain is that of the instructions, which a turn without
    annotation has too (the program takes the name's first word, which also numbers hotels and flights).
    """
    own = exchange.sides[role]
    segments = own["segments"] if "segments" in own else own.get("speaker")
    found = taskmaster.slots_of(segments if isinstance(segments, list) else [], prefixed=True)
    domain = field(exchange.about, "instruction_id", str).partition("-")[0]
    return Labels(["inform"] if found else [], found, (), (domain,))


def _taskmaster3(exchange: Exchange, role: str) -> Labels:
    """Taskmaster3: as the two others, about films alone."""
    own = exchange.sides[role]
    found = taskmaster.slots_of(field(own, "segments", list) if "segments" in own else [], prefixed=False)
    return Labels(["inform"] if found else [], found, (), ("movie",))


LABELS: dict[str, Callable[[Exchange, str], Labels]] = {
    "ABCD": _abcd,
    "BiTOD": _bitod,
    "DSTC2-Clean": _woz,
    "Disambiguation": _multiwoz,
    "FRAMES": _frames,
    "GECOR": gecor,
    "HDSA-Dialog": hdsa,
    "KETOD": _schema_guided,
    "MS-DC": _msdc,
    "MULTIWOZ2_2": multiwoz22,
    "MulDoGO": _muldogo,
    "MultiWOZ_2.1": _multiwoz,
    "SGD": _schema_guided,
    "SimJointGEN": simulated_gen,
    "SimJointMovie": _simulated("movie"),
    "SimJointRestaurant": _simulated("restaurant"),
    "Taskmaster1": _taskmaster,
    "Taskmaster2": _taskmaster,
    "Taskmaster3": _taskmaster3,
    "WOZ2_0": _woz,
}
"""From the name of a dataset to what reads its labels."""
