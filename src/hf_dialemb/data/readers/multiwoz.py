"""MultiWOZ and SGD, the Schema-Guided Dialogues: task dialogues with slots.

MultiWOZ has written dialogues of visitors to Cambridge and a town clerk over seven domains.

Its layout: ``multiwoz2.1_convlab2/{val,test}.json`` (an object from id to dialogue) and
``multiwoz2.0_single_domain/dialogues/*.txt`` (one JSON object per line, one file per domain).

Dev and test are version 2.1 as in https://github.com/thu-coai/ConvLab-2. Train is the single-domain
extract of version 2.0 that came with the DSTC8 MetaLWOZ task, without any dialogue of dev or test.
The greeting that the extract opens every dialogue with is left out. An act such as ``Hotel-Inform``
becomes ``inform``, and slot names are in lower case.

SGD: ``{train,dev,test}/dialogues_*.json``. The domains are services, such as ``Restaurants_2``. Ids
repeat between the splits. Two dialogues end in a turn without text, which is left out.
"""

from collections.abc import Callable

from ...dialogue import Dialogue, Turn
from ...errors import InputError
from ..corpus import Records, Source, catalogued
from ..parsing import json_lines, json_list, json_members, split_files, with_split
from ..raw_records import Raw, Slots, distinct
from ..source import MissingFilesError
from .shapes import UPPER_CASE_ROLES, Labels, TurnList, alternating, split_patterns

HELD_OUT = {"dev": "multiwoz2.1_convlab2/val.json", "test": "multiwoz2.1_convlab2/test.json"}
"""The files of version 2.1 that say which dialogues are dev and test."""
SINGLE_DOMAIN = "multiwoz2.0_single_domain/dialogues/*.txt"
"""The files of the single-domain extract."""
NO_SLOT = "none"
"""The name of no slot."""

_FILES = {
    "train": (SINGLE_DOMAIN, *HELD_OUT.values()),
    "dev": (HELD_OUT["dev"],),
    "test": (HELD_OUT["test"],),
}
_GREETING = "Hello, how may I help you?"
_BESIDE_DOMAINS = ("message", "topic", "eod", "messageLen", "profile")  # other members of goals


def goal_and_log(key: str, record: Raw, turn: Callable[[str, Raw], Turn] | None = None) -> Dialogue:
    """Convert a dialogue in MultiWOZ's own layout.

    It is ``{"goal": {domain: {...}}, "log": [turn, ...]}``.
    """
    goal = record["goal"]
    domains = tuple(
        sorted(name for name, wanted in goal.items() if wanted and name not in _BESIDE_DOMAINS)
    )
    log = [("assistant" if number % 2 else "user", raw) for number, raw in enumerate(record["log"])]
    turns = tuple((turn or text_and_acts)(role, raw) for role, raw in log)
    return Dialogue(turns, identifier(key), domains)


def text_and_acts(role: str, turn: Raw) -> Turn:
    """Convert a turn of MultiWOZ's own layout: ``{"text": ..., "dialog_act": {...}}``."""
    return Turn(role, turn["text"], *labels(turn["dialog_act"]))


def extract_records(source: Source, split: str) -> Records:
    """Read a split of the single-domain extract.

    Dev and test are the dialogues that are so in version 2.1.
    """
    splits: dict[str, str] = {}
    for held_out, pattern in HELD_OUT.items():
        ids = {identifier(key): held_out for _, (key, _) in json_members(source, pattern)}
        if not ids:
            needs = (
                f"split {split} needs {pattern} too, which says what is {held_out}; add the file"
            )
            raise MissingFilesError(f"{source.path}: {needs}")
        splits |= ids
    for place, record in json_lines(source, SINGLE_DOMAIN):
        key = record.get("id") if isinstance(record, dict) else None
        if (splits.get(identifier(key), "train") if isinstance(key, str) else "train") == split:
            yield place, record


def extract_dialogue(record: Raw) -> Dialogue:
    """Convert a dialogue of the single-domain extract."""
    turns = tuple(record["turns"])
    annotations = record.get("annotations", [{}] * len(turns))
    if len(annotations) != len(turns):
        raise InputError(
            f"field annotations: got {len(annotations)}, expected one for each of {len(turns)} "
            "turns"
        )
    spoken = alternating(_GREETING, turns, annotations)
    annotated = tuple(Turn(role, text, *labels(annotation)) for role, text, annotation in spoken)
    return Dialogue(annotated, identifier(record["id"]), (record["domain"],))


def labels(annotation: Raw) -> tuple[tuple[str, ...], Slots]:
    """Read the acts and slots of a turn.

    They are such as ``{"Hotel-Inform": [["Area", "east"]], "general-bye": [["none", "none"]]}``.
    """
    slots = []
    for pairs in annotation.values():
        single = not isinstance(pairs, list) or (pairs and isinstance(pairs[0], str))
        for pair in [pairs] if single else pairs:
            slot, value = pair
            if slot.lower() != NO_SLOT:
                slots.append((slot.lower(), value_of(value)))
    acts = ((key.partition("-")[2] or key).lower() for key in annotation)
    return tuple(dict.fromkeys(acts)), tuple(slots)


def value_of(value: str) -> str:
    """Return the value of a slot; empty where it is requested or does not matter."""
    return "" if value in ("?", "none") else value


def identifier(key: str) -> str:
    """Return the common form of an id.

    Some releases write ``PMUL1635.json`` or another case for ``PMUL1635``.
    """
    return key.upper().removesuffix(".JSON")


def _records(source: Source, split: str) -> Records:
    return (
        extract_records(source, split)
        if split == "train"
        else json_members(source, HELD_OUT[split])
    )


def _dialogue(first: Raw, *more: Raw) -> Dialogue:
    return goal_and_log(first, *more) if more else extract_dialogue(first)


def _frame_labels(turn: Raw) -> Labels:
    """Read the labels in the frames of a turn of SGD."""
    frames = turn["frames"]
    actions = [action for frame in frames for action in frame["actions"]]
    slots = [
        (action["slot"], str(action["values"][0]) if action["values"] else "")
        for action in actions
        if action["slot"]
    ]
    intents = [frame["state"]["active_intent"] for frame in frames if "state" in frame]
    return (
        distinct(action["act"] for action in actions),
        tuple(slots),
        tuple(dict.fromkeys(intent for intent in intents if intent != "NONE")),
    )


_SCHEMA_GUIDED = TurnList(
    *(
        "turns",
        "speaker",
        "utterance",
        UPPER_CASE_ROLES,
        "dialogue_id",
        lambda record: tuple(record["services"]),
        _frame_labels,
    ),
    is_spoken=lambda turn: turn["utterance"] != "",
)
_SGD_FILES = split_patterns("{}/dialogues_*.json")
CORPORA = catalogued(
    {
        "multiwoz": (_FILES, _records, _dialogue),
        "sgd": (_SGD_FILES, with_split(split_files(json_list, _SGD_FILES)), _SCHEMA_GUIDED),
    }
)
