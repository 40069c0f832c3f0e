"""DialogStudio.

Many public dialogue datasets in one layout, with the annotation of each kept as it was.

Layout: ``<category>/<dataset>/{train,val,test}.json`` (or ``{train,val,test}/dialogues_*.json``),
each an object from ids such as ``KVRET--train--1`` to dialogues. Of a dataset without those files,
``converted_examples.json`` is read: five dialogues of its train split. The data folder may be that
of a single dataset.

A side of an exchange without text gives no turn. Records without exchanges, and utterances with a
label for a response, are not dialogues and are left out. The twenty datasets that Dialog2Flow
unifies get labels as by its program, or as docstrings say. A user's turn annotated with all that
the user wants so far has what is new since the turn before.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from ....data.corpus import Records, Source, catalogued
from ....data.parsing import json_members, parse_json
from ....data.raw_records import Label, Raw, distinct, flattened
from ....data.readers.multiwoz import NO_DOMAIN, NO_SLOT, value_of
from ....dialogue import Dialogue, Turn
from .. import CATALOGUE
from ..row_forms import marked
from .exchanges import simulated_labels, system_label, user_label
from .task_dialogues import annotated_slots

_EXAMPLES = "converted_examples.json"
_FILES = {
    "train": ("train.json", "train/dialogues_*.json", _EXAMPLES),
    "dev": ("val.json", "val/dialogues_*.json"),
    "test": ("test.json", "test/dialogues_*.json"),
}
_TEXTS = {"user": "user utterance", "assistant": "system response"}
_SIDES = {"user": "original user side information", "assistant": "original system side information"}
# Where the side information has the text that its annotation describes.
_OTHER_TEXTS = {
    "HDSA-Dialog": {"user": "user_orig", "assistant": "sys_orig"},
    "KETOD": {"user": "original_utt", "assistant": "original_utt"},
}


class Exchange(NamedTuple):
    """What a user says and the answer, as the dataset annotated them."""

    text: str  # of the user
    sides: dict[str, dict[str, Raw]]  # the side information of both, by role
    before: dict[str, Raw]  # the user's side information of the exchange before; empty in the first
    intent: str  # DialogStudio's own field of that name: names, divided by commas
    about: dict[str, Raw]  # the information of the whole dialogue

    def intents(self, role: str) -> tuple[str, ...]:
        """Return the names in `intent`, which are the user's."""
        return tuple(name.strip() for name in self.intent.split(",")) if role == "user" else ()


TurnLabels = tuple[Iterable[str], Iterable[tuple[str, str]], Iterable[str], Iterable[str]]
"""Acts, slots, intents and domains; blank names and duplicates are dropped later."""


def _records(source: Source, split: str) -> Records:
    complete = set()
    for pattern in _FILES[split]:
        for place, (key, record) in json_members(source, pattern):
            dataset = key.partition("--")[0]
            if pattern != _EXAMPLES:
                complete.add(dataset)
            log = record.get("log") if isinstance(record, dict) else None
            is_dialogue = log != [] and not (isinstance(log, dict) and _TEXTS["user"] in log)
            if is_dialogue and (pattern != _EXAMPLES or dataset not in complete):
                yield place, (key, record)


def _dialogue(key: str, record: Raw) -> Dialogue:
    dataset = key.partition("--")[0]
    labels = LABELS.get(dataset)
    about = _information(record, "original dialog info") if labels else {}
    turns: list[Turn] = []
    domains: dict[str, None] = {}
    before: dict[str, Raw] = {}

    for log in record["log"]:
        sides = {role: _information(log, name) if labels else {} for role, name in _SIDES.items()}
        exchange = Exchange(log[_TEXTS["user"]], sides, before, log.get("intent") or "", about)
        before = sides["user"]
        for role, name in _TEXTS.items():
            other = _OTHER_TEXTS.get(dataset, {}).get(role)
            text = sides[role][other] if other in sides[role] else log[name]
            if text.strip():
                acts, slots, intents, topics = labels(exchange, role) if labels else ((),) * 4
                pairs = dict.fromkeys((slot.lower(), value) for slot, value in slots if slot)
                wanted = tuple(dict.fromkeys(filter(None, intents)))
                turns.append(Turn(role, text, distinct(filter(None, acts)), tuple(pairs), wanted))
                domains.update(dict.fromkeys(topics))
    return Dialogue(tuple(turns), key, tuple(domains))


def _information(record: Raw, name: str) -> dict[str, Raw]:
    """Read an object of the examples, which is a string of its JSON in the release."""
    value = record[name]
    if isinstance(value, str):
        value = parse_json(f"field {name}", value.encode(), "repair the record")
    return value  # type: ignore[no-any-return]


def _abcd(exchange: Exchange, role: str) -> TurnLabels:
    """Read ABCD: slots are marks such as ``<order_id>``, and the domain is the flow.

    A customer's turn of at least four words has the conversation's intent.
    """
    rows = exchange.sides[role]["delexed"]
    texts = " ".join(row["text"] for row in rows)
    slots = [(name, "") for name in distinct(re.findall(r"<(\w+)>", texts))]
    intents: list[str] = []
    if role == "user" and len(exchange.text.split(" ")) >= 4:
        targets = [target for row in rows for target in row["targets"][:1] if target]
        intents = targets[:1]
    return (), slots, intents, (exchange.about["flow"],)


def _bitod(exchange: Exchange, role: str) -> TurnLabels:
    """Read BiTOD, whose act "inform_intent" counts as an intent.

    The program takes "chat" for a domain.
    """
    acts, slots, intents = [], [], []
    for action in exchange.sides[role]["Actions"]:
        act, slot = action["act"], action["slot"]
        values = action["value"]
        value = str(values[0]) if values else ""
        if slot != "intent":
            acts.append(act)
            slots.append((slot, value))
        elif act == "inform_intent":
            intents.append(value.replace("_en_US", "").removesuffix("_en"))
    domain = exchange.sides["user"]["active_intent"].partition("_")[0]
    return acts, slots, intents, (domain,) if domain not in ("", "chat") else ()


def _multiwoz(exchange: Exchange, role: str) -> TurnLabels:
    """Read MultiWOZ 2.1 and Disambiguation.

    Acts without a slot are kept (the program drops them). Booking and general are not domains (they
    are in the program). The intents, which are the user's acts, are not repeated for the system.
    """
    acts, slots, domains = [], [], []
    annotated = exchange.sides[role].get("dialog_act", {})
    for key in annotated:
        domain, _, act = key.lower().rpartition("-")
        acts.append(act)
        domains += [domain] if domain not in NO_DOMAIN else []
        for slot, value in annotated[key]:
            if slot.lower() != NO_SLOT:
                slots.append((slot, "" if value == "?" else str(value)))
    return acts, slots, exchange.intents(role), domains


def _multiwoz22(exchange: Exchange, role: str) -> TurnLabels:
    """Read what is new in the user's state, and what the user asks for.

    System turns have no labels.
    """
    if role != "user":
        return (), (), (), ()
    frames = exchange.sides[role]["frames"]
    known = _filled(exchange.before.get("frames", []))
    new = [pair for pair in _filled(frames) if pair not in known]
    asked = flattened(tuple(frame["state"]["requested_slots"]) for frame in frames)
    parts = [(key.partition("-"), str(values[0]) if values else "") for key, values in new]
    parts += [(key.partition("-"), "") for key in asked]
    slots, domains = (
        [(slot, value) for (_, _, slot), value in parts],
        [domain for (domain, _, _), _ in parts],
    )
    return (
        ["inform"] * bool(new) + ["request"] * bool(asked),
        slots,
        exchange.intents(role),
        domains,
    )


def _filled(frames: list[Raw]) -> list[tuple[str, list[Raw]]]:
    states = [frame["state"]["slot_values"] for frame in frames]
    return [(key, state[key]) for state in states for key in state]


def _hdsa(exchange: Exchange, role: str) -> TurnLabels:
    """Read HDSA-Dialog.

    Acts without a slot and slots with the value "none" are kept (the program drops them).
    """
    if role == "user":
        known, state = (
            _beliefs(side.get("BS", {})) for side in (exchange.before, exchange.sides[role])
        )
        new = [pair for pair in state if pair not in known]
        return (
            ["inform"] * bool(new),
            [pair[1:] for pair in new],
            (),
            [domain for domain, *_ in new],
        )
    done = exchange.sides[role]["act"]  # such as {"hotel-inform-area": "north"}
    parts = [((*name.split("-", 2), "", "")[:3], value_of(done[name])) for name in done]
    acts = [act for (_, act, _), _ in parts if act != NO_SLOT]
    slots = [(slot, value) for (_, _, slot), value in parts if slot != NO_SLOT]
    return acts, slots, (), [domain for (domain, _, _), _ in parts if domain not in NO_DOMAIN]


def _beliefs(state: dict[str, Raw]) -> list[tuple[str, str, str]]:
    """Read a belief state: domains, slots and values."""
    pairs = [(domain, *pair) for domain in state for pair in state[domain]]
    return [(domain, slot.lower(), value) for domain, slot, value in pairs]


def _woz(exchange: Exchange, role: str) -> TurnLabels:
    label, name = (user_label, "turn_label") if role == "user" else (system_label, "system_acts")
    return _restaurant(map(label, exchange.sides[role].get(name, [])))


def _gecor(exchange: Exchange, role: str) -> TurnLabels:
    side, known = exchange.sides[role], exchange.before.get("slu") or ()
    if role != "user":
        return _restaurant(map(system_label, side.get("DA", [])))
    new = [(act["act"], act["slots"]) for act in side.get("slu", []) if act not in known]
    pairs = [(act, name, str(value)) for act, slots in new for name, value in slots]
    slots = [
        (value, "") if act == "request" or name == "slot" else (name, value)
        for act, name, value in pairs
    ]
    return [act for act, _ in new], slots, (), ("restaurant",)


def _restaurant(labels: Iterable[Label]) -> TurnLabels:
    named = [label for label in labels if label[1]]
    return [act for act, _, _ in named], [label[1:] for label in named], (), ("restaurant",)


def _frames(exchange: Exchange, role: str) -> TurnLabels:
    """Read Frames; what the user informs of stands in the information of the answer.

    The program takes the name of the task, "book", for an act wherever the user informs of
    something.
    """
    act = exchange.sides[role]["da_label"]
    acts = [act] if act != "null" else []
    if role != "user":
        return acts, (), (), ("travel",)
    slots = exchange.sides["assistant"]["slots"]
    return acts, [(name, str(value)) for name, value in slots.items()], acts, ("travel",)


def _schema_guided(exchange: Exchange, role: str) -> TurnLabels:
    """Read SGD and KETOD; an action on the slot "intent" gives an intent and not an act."""
    frames = exchange.sides[role]["frames"]
    domains = [frame["service"].lower().partition("_")[0] for frame in frames]
    actions = [action for frame in frames for action in frame["actions"]]
    values = [(action["slot"], tuple(action["values"])) for action in actions]
    acts = [action["act"] for action in actions if action["slot"] != "intent"]
    slots = [(slot, texts[0] if texts else "") for slot, texts in values if slot != "intent"]
    return (
        acts,
        slots,
        [text for slot, texts in values if slot == "intent" for text in texts],
        domains,
    )


def _msdc(exchange: Exchange, role: str) -> TurnLabels:
    """Read MS-DC's acts, such as ``inform(city=Oslo;date)``; an act with a value informs as well.

    An argument that repeats the act's name is not a slot.
    """
    acts, slots = [], []
    texts = tuple(exchange.sides[role]["act"])
    for match in filter(None, (re.match(r"\W*(\w+)\s*\((.*)", text, re.DOTALL) for text in texts)):
        act = match[1].lower()
        pairs = [pair for pair in _arguments(match[2]) if pair[0] != act]
        slots += pairs
        acts += [act, *["inform"] * any(value for _, value in pairs)]
    return acts, slots, exchange.intents(role), (exchange.about["domain"],)


def _arguments(text: str) -> Iterator[tuple[str, str]]:
    for argument in text.rstrip(' "').removesuffix(")").split(";"):
        name, _, value = (part.strip() for part in argument.partition("="))
        if re.fullmatch(r"\w+", name):
            values = (
                value[1:-1].split("#") if value.startswith("{") and value.endswith("}") else [value]
            )
            yield from ((name.lower(), part.strip()) for part in values)


def _muldogo(exchange: Exchange, role: str) -> TurnLabels:
    """Read the words' tags and the intents of customers.

    An empty cell of a table became a number on its way.
    """
    side, domains = exchange.sides[role], (exchange.about["domain"],)
    tags, intents = (
        [cell for cell in side.get(name, []) if isinstance(cell, str)]
        for name in ("slot-labels", "intent")
    )
    slots = [(tag, "") for cell in tags for tag in cell.split() if tag != "O"]
    return (), slots, [intent for cell in intents for intent in cell.split("<div>")], domains


def _simulated(exchange: Exchange, role: str, domain: str) -> TurnLabels:
    side = exchange.sides[role]
    if role != "user":
        return (*simulated_labels(side.get("system_acts", [])), (), (domain,))
    types = [act["type"] for act in side.get("user_acts", [])]
    slots = marked(side["user_utterance"]) if "user_utterance" in side else ()
    return types, slots, tuple(side["user_intents"]) if side.get("user_intents") else (), (domain,)


def _generated(exchange: Exchange, role: str) -> TurnLabels:
    """Read SimJointGEN.

    The program looks for the state under another name and leaves users without labels.
    """
    side, known = exchange.sides[role], exchange.before.get("dialogue_state") or {}
    if role == "user":
        new = [pair for pair in side.get("dialogue_state", {}).items() if pair not in known.items()]
        return ["inform"] * bool(new), [(name, str(value)) for name, value in new], (), ("movie",)
    acts, slots = side.get("system_acts", []), []
    for values in (
        act.get("slot_values", {}) for act in acts
    ):  # one that is requested has no value
        slots += [(slot, values[slot].removeprefix("REQUESTED")) for slot in values]
    return [act["name"] for act in acts], slots, (), ("movie",)


def _taskmaster(exchange: Exchange, role: str, domain: str = "") -> TurnLabels:
    """Read Taskmaster: annotated stretches are slots, and a turn with slots informs.

    Users' stretches in Taskmaster 1 stand under "speaker", where the program does not look for
    them. An "accept" or "reject" at the end of a name is no part of it. The domain is that of the
    instructions (the program takes the first word of a slot's name, which also numbers hotels and
    flights); Taskmaster 3 is about films alone.
    """
    side = exchange.sides[role]
    segments = side["segments"] if "segments" in side else side.get("speaker")
    slots = annotated_slots(segments if isinstance(segments, list) else [], prefixed=not domain)
    domain = domain or exchange.about["instruction_id"].partition("-")[0]
    return ["inform"] * bool(slots), slots, (), (domain,)


LABELS: dict[str, Callable[[Exchange, str], TurnLabels]] = {
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
    "SimJointGEN": _generated,
    "SimJointMovie": partial(_simulated, domain="movie"),
    "SimJointRestaurant": partial(_simulated, domain="restaurant"),
    "Taskmaster1": _taskmaster,
    "Taskmaster2": _taskmaster,
    "Taskmaster3": partial(_taskmaster, domain="movie"),
    "WOZ2_0": _woz,
}
"""From the name of a dataset to what reads its labels."""

CORPORA = catalogued({"dialogstudio": (_FILES, _records, _dialogue)}, CATALOGUE)
