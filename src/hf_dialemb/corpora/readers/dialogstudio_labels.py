"""Labels of the twenty datasets of DialogStudio that Dialog2Flow unifies: acts, slots, intents and domains.

Each function takes an exchange and the role that speaks, and follows Dialog2Flow's program; where it does not, its
docstring says so. The names are as the datasets have them. What the program does to all labels alike is left to the
unified form: words are cleaned, and intents that repeat the last ones are dropped. Where a user's turn is annotated
with all that the user wants so far, what is new since the user's turn before is what the turn says.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from ...errors import InputError
from ..records import Label, Raw, field, marked, names, optional
from . import abcd, camrest, hdsa, simulated, taskmaster, woz2
from .multiwoz import NO_DOMAIN, NO_SLOT
from .unmet import bitod, msdc


class Exchange(NamedTuple):
    """What a user says and the answer, as the dataset annotated them."""

    text: str  # what the user says
    sides: dict[str, dict[str, Raw]]  # the side information of both, by role
    before: dict[str, Raw]  # the user's side information of the exchange before; empty in the first
    intent: str  # DialogStudio's own field of that name: names, divided by commas
    about: dict[str, Raw]  # what is known of the whole dialogue

    @property
    def intents(self) -> tuple[str, ...]:
        """The names in `intent`."""
        return tuple(name.strip() for name in self.intent.split(","))


class Labels(NamedTuple):
    """What is known of a turn; blank names and duplicates are dropped later."""

    acts: Iterable[str] = ()
    slots: Iterable[tuple[str, str]] = ()
    intents: Iterable[str] = ()
    domains: Iterable[str] = ()


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
    acts, slots, domains = [], [], []
    annotated = optional(exchange.sides[role], "dialog_act", dict)
    for key in annotated:
        domain, _, act = key.lower().rpartition("-")
        acts.append(act)
        domains += [domain] if domain not in NO_DOMAIN else []
        for slot, value in map(_pair, field(annotated, key, list)):
            if slot.lower() != NO_SLOT:
                slots.append((slot, "" if value == "?" else value))
    return Labels(acts, slots, exchange.intents if role == "user" else (), domains)


def _multiwoz22(exchange: Exchange, role: str) -> Labels:
    """MULTIWOZ2_2: what is new in the user's state, and what the user asks for; the system's turns have no labels."""
    if role != "user":
        return Labels()
    known = _filled(exchange.before)
    own = exchange.sides[role]
    new = [(key.partition("-"), values) for key, values in _filled(own) if (key, values) not in known]
    states = [field(frame, "state", dict) for frame in field(own, "frames", list)]
    asked = [key.partition("-") for state in states for key in names(state, "requested_slots")]
    slots = [(slot, str(values[0]) if values else "") for (_, _, slot), values in new]
    slots += [(slot, "") for _, _, slot in asked]
    domains = [domain for domain, _, _ in [*(key for key, _ in new), *asked]]
    return Labels(["inform"] * bool(new) + ["request"] * bool(asked), slots, exchange.intents, domains)


def _filled(own: dict[str, Raw]) -> list[tuple[str, list[Raw]]]:
    states = [field(field(frame, "state", dict), "slot_values", dict) for frame in optional(own, "frames", list)]
    return [(key, field(state, key, list)) for state in states for key in state]


def _hdsa(exchange: Exchange, role: str) -> Labels:
    """HDSA-Dialog: what is new in the user's state; acts such as "hotel-inform-area" of the system.

    Acts without a slot are kept, as in MultiWOZ; the program drops them, and the slots whose value is "none".
    """
    if role == "user":
        known, state = (hdsa.state_of(optional(own, "BS", dict)) for own in (exchange.before, exchange.sides[role]))
        new = [each for each in state if each not in known]
        return Labels(["inform"] if new else [], [each[1:] for each in new], (), [domain for domain, *_ in new])
    acts, slots, domains = hdsa.acts_of(field(exchange.sides[role], "act", dict))
    return Labels(acts, slots, (), [domain for domain in domains if domain not in NO_DOMAIN])


def _woz(exchange: Exchange, role: str) -> Labels:
    """DSTC2-Clean and WOZ2_0: slots that either side tells or asks for."""
    label, name = (woz2.user_label, "turn_label") if role == "user" else (woz2.system_label, "system_acts")
    return _asked_or_told(map(label, optional(exchange.sides[role], name, list)))


def _gecor(exchange: Exchange, role: str) -> Labels:
    """GECOR (CamRest676): acts of the user that the turn before did not have; slots that the system asks for."""
    own = exchange.sides[role]
    if role != "user":
        return _asked_or_told(map(camrest.system_label, optional(own, "DA", list)))
    known = exchange.before.get("slu")
    acts, slots = [], []
    for each in optional(own, "slu", list):
        if isinstance(known, list) and each in known:
            continue
        act = field(each, "act", str)
        acts.append(act)
        for name, value in map(_pair, field(each, "slots", list)):
            slots.append((value, "") if act == "request" or name == "slot" else (name, value))
    return Labels(acts, slots, (), ("restaurant",))


def _asked_or_told(labels: Iterable[Label]) -> Labels:
    named = [label for label in labels if label[1]]
    return Labels([act for act, _, _ in named], [label[1:] for label in named], (), ("restaurant",))


def _pair(value: Raw) -> tuple[str, str]:
    if not isinstance(value, list) or len(value) != 2 or not isinstance(value[0], str):
        raise InputError(f"got {type(value).__name__}, expected a pair of slot and value; repair the record")
    return value[0], str(value[1])


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
    own, domains = exchange.sides[role], (field(exchange.about, "domain", str),)
    if "slot-labels" not in own:
        return Labels(domains=domains)
    slots = [(tag, "") for line in _texts(own, "slot-labels") for tag in line.split() if tag != "O"]
    return Labels((), slots, [intent for line in _texts(own, "intent") for intent in line.split("<div>")], domains)


def _texts(own: dict[str, Raw], name: str) -> list[str]:
    """An empty cell of a table became a number that is none on its way here."""
    return [value for value in field(own, name, list) if isinstance(value, str)]


def _simulated(exchange: Exchange, role: str, domain: str) -> Labels:
    """SimJointMovie and SimJointRestaurant: acts, with slots of the system; slots in the user's text."""
    own = exchange.sides[role]
    acts = optional(own, "user_acts" if role == "user" else "system_acts", list)
    if role != "user":
        return Labels(*simulated.system_labels(acts), domains=(domain,))
    types = [field(act, "type", str) for act in acts]
    intents = names(own, "user_intents") if own.get("user_intents") else ()
    found = marked(field(own, "user_utterance", dict)) if "user_utterance" in own else ()
    return Labels(types, found, intents, (domain,))


def _simulated_gen(exchange: Exchange, role: str) -> Labels:
    """SimJointGEN: what is new in the user's state; acts with slots of the system.

    The program looks for the state under another name than the files have, and so leaves users without labels.
    """
    own = exchange.sides[role]
    if role == "user":
        known = exchange.before.get("dialogue_state")
        known = known.items() if isinstance(known, dict) else ()
        new = [pair for pair in optional(own, "dialogue_state", dict).items() if pair not in known]
        return Labels(["inform"] if new else [], [(name, str(value)) for name, value in new], (), ("movie",))
    return Labels(*simulated.generated_labels(optional(own, "system_acts", list)), domains=("movie",))


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
    found = taskmaster.slots_of(optional(exchange.sides[role], "segments", list), prefixed=False)
    return Labels(["inform"] if found else [], found, (), ("movie",))


LABELS: dict[str, Callable[[Exchange, str], Labels]] = {
    "ABCD": _abcd,
    "BiTOD": _bitod,
    "DSTC2-Clean": _woz,
    "Disambiguation": _multiwoz,
    "FRAMES": _frames,
    "GECOR": _gecor,
    "HDSA-Dialog": _hdsa,
    "KETOD": _schema_guided,
    "MS-DC": _msdc,
    "MULTIWOZ2_2": _multiwoz22,
    "MulDoGO": _muldogo,
    "MultiWOZ_2.1": _multiwoz,
    "SGD": _schema_guided,
    "SimJointGEN": _simulated_gen,
    "SimJointMovie": partial(_simulated, domain="movie"),
    "SimJointRestaurant": partial(_simulated, domain="restaurant"),
    "Taskmaster1": _taskmaster,
    "Taskmaster2": _taskmaster,
    "Taskmaster3": _taskmaster3,
    "WOZ2_0": _woz,
}
"""From the name of a dataset to what reads its labels."""
