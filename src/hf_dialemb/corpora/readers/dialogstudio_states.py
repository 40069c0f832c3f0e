"""Labels of those datasets of DialogStudio that annotate a user's turn with all that the user wants so far.

What is new since the user's turn before is what the turn says. Each function takes an exchange and the role that
speaks, and follows Dialog2Flow's program; where it does not, its docstring says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ...models.errors import InputError
from ..records import field, names

Slot = tuple[str, str]
"""Name and value."""

NO_DOMAIN = ("booking", "general")
"""What stands where acts of MultiWOZ have their domain, and is none."""


class Exchange(NamedTuple):
    """What a user says and the answer, as the dataset annotated them.

    Attributes:
        text: What the user says.
        sides: The side information of both, by role.
        before: The user's side information of the exchange before; empty in the first.
        intent: DialogStudio's own field of that name: names, divided by commas.
        about: What is known of the whole dialogue.
    """

    text: str
    sides: dict[str, dict[str, Any]]
    before: dict[str, Any]
    intent: str
    about: dict[str, Any]

    @property
    def intents(self) -> tuple[str, ...]:
        """The names in `intent`."""
        return tuple(name.strip() for name in self.intent.split(","))


class Labels(NamedTuple):
    """What is known of a turn; blank names and duplicates are dropped later."""

    acts: Iterable[str] = ()
    slots: Iterable[Slot] = ()
    intents: Iterable[str] = ()
    domains: Iterable[str] = ()


def pair(value: Any) -> Slot:  # noqa: ANN401
    """Takes a list of a slot's name and its value."""
    if not isinstance(value, list) or len(value) != 2 or not isinstance(value[0], str):
        raise InputError(f"got {type(value).__name__}, expected a pair of slot and value; repair the record")
    return value[0], value[1] if isinstance(value[1], str) else str(value[1])


def asked_or_told(items: list[Any]) -> Labels:
    """Reads the system's acts in the manner of WOZ 2.0 and CamRest676."""
    acts, slots = [], []
    for item in items:
        name, value = (item, "") if isinstance(item, str) else pair(item)
        if name:
            acts.append("request" if isinstance(item, str) else "inform")
            slots.append((name, value))
    return Labels(acts, slots, (), ("restaurant",))


def gecor(exchange: Exchange, role: str) -> Labels:
    """GECOR (CamRest676): acts of the user that the turn before did not have; slots that the system asks for."""
    own = exchange.sides[role]
    if role != "user":
        return asked_or_told(field(own, "DA", list) if "DA" in own else [])
    known = exchange.before.get("slu")
    acts, slots = [], []
    for each in field(own, "slu", list) if "slu" in own else []:
        if isinstance(known, list) and each in known:
            continue
        act = field(each, "act", str)
        acts.append(act)
        for name, value in map(pair, field(each, "slots", list)):
            slots.append((value, "") if act == "request" or name == "slot" else (name, value))
    return Labels(acts, slots, (), ("restaurant",))


def hdsa(exchange: Exchange, role: str) -> Labels:
    """HDSA-Dialog: what is new in the user's state; acts such as "hotel-inform-area" of the system.

    Acts without a slot are kept, as in MultiWOZ; the program drops them, and the slots whose value is "none".
    """
    if role == "user":
        known = _wanted(exchange.before)
        new = [each for each in _wanted(exchange.sides[role]) if each not in known]
        return Labels(["inform"] if new else [], [slot for _, slot in new], (), [domain for domain, _ in new])
    acts, slots, domains = [], [], []
    for key, value in field(exchange.sides[role], "act", dict).items():
        domain, _, rest = key.partition("-")
        act, _, slot = rest.partition("-")
        acts.append("" if act == "none" else act)
        if slot != "none":
            slots.append((slot, value if isinstance(value, str) and value not in ("none", "?") else ""))
        domains += [domain] if domain not in NO_DOMAIN else []
    return Labels(acts, slots, (), domains)


def _wanted(own: dict[str, Any]) -> list[tuple[str, Slot]]:
    state = field(own, "BS", dict) if "BS" in own else {}
    return [(domain, pair(each)) for domain in state for each in field(state, domain, list)]


def multiwoz22(exchange: Exchange, role: str) -> Labels:
    """MULTIWOZ2_2: what is new in the user's state, and what the user asks for; the system's turns have no labels."""
    if role != "user":
        return Labels()
    known, found = _filled(exchange.before), _filled(exchange.sides[role])
    new = [(key, values) for key, values in found if (key, values) not in known]
    told = [(key.partition("-")[2], str(values[0]) if values else "") for key, values in new]
    asked = [
        key
        for frame in field(exchange.sides[role], "frames", list)
        for key in names(field(frame, "state", dict), "requested_slots")
    ]
    acts = ["inform"] * bool(told) + ["request"] * bool(asked)
    domains = [key.partition("-")[0] for key in [*(key for key, _ in new), *asked]]
    return Labels(acts, [*told, *((key.partition("-")[2], "") for key in asked)], exchange.intents, domains)


def _filled(own: dict[str, Any]) -> list[tuple[str, list[Any]]]:
    frames = field(own, "frames", list) if "frames" in own else []
    states = [field(field(frame, "state", dict), "slot_values", dict) for frame in frames]
    return [(key, field(state, key, list)) for state in states for key in state]


def simulated_gen(exchange: Exchange, role: str) -> Labels:
    """SimJointGEN: what is new in the user's state; acts with slots of the system.

    The program looks for the state under another name than the files have, and so leaves users without labels.
    """
    own = exchange.sides[role]
    if role == "user":
        known = exchange.before.get("dialogue_state")
        known = known.items() if isinstance(known, dict) else ()
        state = field(own, "dialogue_state", dict) if "dialogue_state" in own else {}
        slots = [(name, str(value)) for name, value in state.items() if (name, value) not in known]
        return Labels(["inform"] if slots else [], slots, (), ("movie",))
    acts, slots = [], []
    for act in field(own, "system_acts", list) if "system_acts" in own else []:
        acts.append(field(act, "name", str))
        for name, value in (field(act, "slot_values", dict) if "slot_values" in act else {}).items():
            slots.append((name, value if isinstance(value, str) and value != "REQUESTED" else ""))
    return Labels(acts, slots, (), ("movie",))
