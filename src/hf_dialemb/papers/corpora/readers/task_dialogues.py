"""Task dialogues, chats and intents that only the papers use."""

from collections.abc import Mapping
from typing import Any

from ....data.corpus import Files, Reading, Records, Source, catalogued
from ....data.parsing import json_list, json_members, numbered
from ....data.raw_records import Raw, Slots, distinct
from ....data.readers.shapes import Labels, TurnList, split_patterns, utterance
from ....dialogue import Dialogue
from ....errors import InputError
from .. import CATALOGUE
from ..row_forms import (
    USER_AND_SYSTEM,
    hashed_by,
    named_by,
    out_of_all,
    parallel_lines,
    without_empty,
)

# DailyDialog in the form of ConvLab-3: ``data/dialogues.json``. The domain is the topic. Emotions
# are not read.

_DAILY_SPLITS = {"train": "train", "validation": "dev", "test": "test"}


def _daily_acts(turn: Raw) -> Labels:
    acts = turn["dialogue_acts"]["binary"]
    return distinct(act["intent"] for act in acts), (), ()


# DSTC2: transcripts of telephone calls, ``data.json``. The system's greeting is not in the file.
# Marks of the transcribers, such as ``noise``, are kept.

_DSTC2_SPLITS = {"train": "train", "val": "dev", "test": "test"}


def _of_split(
    file: str, splits: Mapping[str, str], **labels: Any
) -> tuple[Files, Reading, TurnList]:
    """Make the reading of a file in ConvLab-3's form, whose records name their split."""
    return (
        split_patterns(file),
        out_of_all(json_list, file, named_by("data_split", splits)),
        TurnList("turns", "speaker", "utterance", USER_AND_SYSTEM, **labels),
    )


# Doc2Dial: the files of the full release, which these patterns name; or the test file of the shared
# task (https://github.com/doc2dial/sharedtask-dialdoc2021), where dialogues stop anywhere and acts
# are blank or missing.

_DOC2DIAL_FILES = split_patterns("*dial_{}.json", train="train", dev="validation", test="finaltest")


def _doc2dial_records(source: Source, split: str) -> Records:
    for place, (_, documents) in json_members(source, _DOC2DIAL_FILES[split][0], "dial_data"):
        for document, records in documents.items():
            for number, record in enumerate(records):
                yield f"{place}: document {document!r} record {number}", record


_DOC2DIAL = TurnList(
    "turns",
    "role",
    "utterance",
    {"user": "user", "agent": "assistant"},
    id="dial_id",
    domains=lambda record: (record["domain"],),
    labels=lambda turn: (tuple(filter(None, [turn.get("da", "")])), (), ()),
)

# Taskmaster 4: ``TM-4-2024/data/data_*.json``, split by a hash of the id. Calls of an interface are
# intents of the turn that they answer. Dialogues without turns and turns that say "(deleted)" are
# left out.

_TASKMASTER_ROLES = {
    "USER": "user",
    "ASSISTANT": "assistant",
    "user": "user",
    "assistant": "assistant",
}


def annotated_slots(segments: list[Raw], *, prefixed: bool) -> Slots:
    """Read the slots of annotated stretches of text, such as ``pizza_ordering.name.pizza.accept``.

    The status at the end is not part of the name, and neither is the domain that prefixed names
    begin with.
    """
    slots: dict[tuple[str, str], None] = {}
    for segment in segments:
        text = segment["text"]
        for annotation in segment["annotations"]:
            parts = [part.strip() for part in annotation["name"].lower().split(".")]
            parts = parts[1:] if prefixed else parts
            if len(parts) > 1 and parts[-1] in ("accept", "reject"):
                parts.pop()
            if name := ".".join(filter(None, parts[:2])):
                slots[name, text] = None
    return tuple(slots)


def _taskmaster_labels(turn: Raw) -> Labels:
    """Read the labels of a turn; one with slots informs, as in Dialog2Flow."""
    slots = annotated_slots(turn.get("segments", []), prefixed=False)
    annotations = turn.get("annotations", [])
    calls = [call["value"] for call in annotations if call["name"] == "api_call"]
    return ("inform",) if slots else (), slots, tuple(dict.fromkeys(calls))


_TM4_FILES = "TM-4-2024/data/data_*.json"
_TASKMASTER = TurnList(
    "utterances",
    "speaker",
    "text",
    _TASKMASTER_ROLES,
    id="conversation_id",
    domains=lambda record: (record["vertical"],),
    labels=_taskmaster_labels,
    is_spoken=lambda turn: turn["text"] != "(deleted)",
)


# HWU64, utterances to a home assistant, of Few-Shot-Intent-Detection:
# ``HWU64/{train,valid,test}/seq.in`` and ``label``, an utterance and its label per line. The domain
# is the scenario that the label begins with. The samples of 5 and 10 utterances are not read.

_HWU64_FILES = {
    split: (f"HWU64/{part}/seq.in", f"HWU64/{part}/label")
    for split, part in (("train", "train"), ("dev", "valid"), ("test", "test"))
}
_HWU64_RECORDS = numbered(lambda source, split: parallel_lines(source, _HWU64_FILES[split]))


def _scenario_dialogue(identifier: str, lines: tuple[str, str]) -> Dialogue:
    text, label = lines
    scenario, mark, _ = label.partition("_")
    if not scenario or not mark:
        raise InputError(
            f"field label: got {label[:40]!r}, expected scenario_intent; repair the line"
        )
    return utterance(identifier, text.strip(), (label,), (), scenario)


CORPORA = catalogued(
    {
        "dailydialog": _of_split(
            "data/dialogues.json",
            _DAILY_SPLITS,
            domains=lambda record: tuple(record["domains"]),
            labels=_daily_acts,
        ),
        "dstc2": _of_split("data.json", _DSTC2_SPLITS, domains=lambda record: ("restaurant",)),
        "doc2dial": (_DOC2DIAL_FILES, _doc2dial_records, _DOC2DIAL),
        "taskmaster4": (
            split_patterns(_TM4_FILES),
            without_empty(
                "utterances", out_of_all(json_list, _TM4_FILES, hashed_by("conversation_id"))
            ),
            _TASKMASTER,
        ),
        "hwu64": (_HWU64_FILES, _HWU64_RECORDS, _scenario_dialogue),
    },
    CATALOGUE,
)
