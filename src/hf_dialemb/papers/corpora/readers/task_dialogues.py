"""Task dialogues and chats that only the papers use; and the intents of work with few examples."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ....data.corpus import SPLITS, Files, Reading, Records, Source, catalogued
from ....data.parsing import (
    grouped,
    hashed_by,
    json_list,
    json_members,
    named_by,
    numbered,
    out_of_all,
    parallel_lines,
    parse_json,
    text_lines,
    without_empty,
)
from ....data.raw_records import (
    Raw,
    Slots,
    convert_each,
    distinct,
    field,
    flattened,
    hashed_split,
    names,
    one_of,
    optional,
    placed,
    strings,
)
from ....data.readers.shapes import (
    USER_AND_SYSTEM,
    Labels,
    TurnList,
    only,
    split_patterns,
    utterance,
)
from ....dialogue import Dialogue, Turn
from ....errors import InputError
from .. import CATALOGUE

# DailyDialog in the form of ConvLab-3: ``data/dialogues.json``. The domain is the topic. Emotions
# are not read.

_UNIFIED = TurnList("turns", "speaker", "utterance", USER_AND_SYSTEM)
_DAILY_SPLITS = {"train": "train", "validation": "dev", "test": "test"}


def _daily_acts(turn: Raw) -> Labels:
    acts = field(field(turn, "dialogue_acts", dict), "binary", list)
    return distinct(field(act, "intent", str) for act in acts), (), ()


def _daily_topics(record: Raw) -> tuple[str, ...]:
    one_of(record, "data_split", _DAILY_SPLITS)
    return names(record, "domains")


# DSTC2: transcripts of telephone calls, ``data.json``. The system's greeting is not in the file.
# Marks of the transcribers, such as ``noise``, are kept.

_DSTC2_SPLITS = {"train": "train", "val": "dev", "test": "test"}


def _restaurant(record: Raw) -> tuple[str, ...]:
    one_of(record, "data_split", _DSTC2_SPLITS)
    return ("restaurant",)


def _of_split(
    file: str, splits: Mapping[str, str], **labels: Any
) -> tuple[Files, Reading, TurnList]:
    """Make the reading of a file in ConvLab-3's form, whose records name their split."""
    return (
        split_patterns(file),
        out_of_all(json_list, file, named_by("data_split", splits)),
        replace(_UNIFIED, **labels),
    )


# Doc2Dial: the files of the full release, which these patterns name; or the test file of the shared
# task (https://github.com/doc2dial/sharedtask-dialdoc2021), where dialogues stop anywhere and acts
# are blank or missing.

_DOC2DIAL_FILES = split_patterns("*dial_{}.json", train="train", dev="validation", test="finaltest")
_DOC2DIAL_ROLES = {"user": "user", "agent": "assistant"}


def _doc2dial_records(source: Source, split: str) -> Records:
    for place, (domain, documents) in json_members(source, _DOC2DIAL_FILES[split][0], "dial_data"):
        with placed(place):
            for document in field({domain: documents}, domain, dict):
                for number, record in enumerate(field(documents, document, list)):
                    yield f"{place}: document {document!r} record {number}", record


def _doc2dial_act(turn: Raw) -> Labels:
    return tuple(filter(None, [optional(turn, "da", str)])), (), ()


_DOC2DIAL = TurnList(
    "turns", "role", "utterance", _DOC2DIAL_ROLES, "dial_id", only("domain"), _doc2dial_act
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
        text = field(segment, "text", str)
        for annotation in field(segment, "annotations", list):
            parts = [part.strip() for part in field(annotation, "name", str).lower().split(".")]
            parts = parts[1:] if prefixed else parts
            if len(parts) > 1 and parts[-1] in ("accept", "reject"):
                parts.pop()
            if name := ".".join(filter(None, parts[:2])):
                slots[name, text] = None
    return tuple(slots)


def taskmaster_labels(turn: Raw, *, prefixed: bool = False) -> Labels:
    """Read the labels of a turn; one with slots informs, as in Dialog2Flow."""
    slots = annotated_slots(optional(turn, "segments", list), prefixed=prefixed)
    annotations = optional(turn, "annotations", list)
    calls = [
        field(call, "value", str) for call in annotations if field(call, "name", str) == "api_call"
    ]
    return ("inform",) if slots else (), slots, tuple(dict.fromkeys(calls))


TASKMASTER = TurnList(
    *(
        "utterances",
        "speaker",
        "text",
        _TASKMASTER_ROLES,
        "conversation_id",
        only("vertical"),
        taskmaster_labels,
    ),
    is_spoken=lambda turn: field(turn, "text", str) != "(deleted)",
)


def taskmaster_records(pattern: str) -> Reading:
    """Make the reading of files that a hash of the id splits."""
    return without_empty("utterances", out_of_all(json_list, pattern, hashed_by("conversation_id")))


# ABCD, customers of a shop and its agents: ``abcd_v1.1.json``, an object from split to a list of
# conversations; or ``abcd_sample.json``, such a list, as train. Rows by ``action`` are clicks of
# the agent and are left out. The slots are marks such as ``<order_id>`` in the delexicalised text,
# and the domain is the flow. A customer's turn of at least four words has the conversation's
# intent, as in Dialog2Flow.

_ABCD, _ABCD_SAMPLE = "abcd_v1.1.json", "abcd_sample.json"
_ABCD_FILES = {**split_patterns(_ABCD), "train": (_ABCD, _ABCD_SAMPLE)}
_ABCD_ROLES = {"customer": "user", "agent": "assistant"}


def abcd_slots(rows: Iterable[Raw]) -> Slots:
    """Find the slots in delexicalised rows."""
    texts = " ".join(field(row, "text", str) for row in rows)
    return tuple((name, "") for name in distinct(re.findall(r"<(\w+)>", texts)))


def abcd_intents(rows: Iterable[Raw], text: str) -> tuple[str, ...]:
    """Find the intent of a customer's turn."""
    targets = [target for row in rows for target in field(row, "targets", list)[:1] if target]
    return tuple(targets[:1]) if len(text.split(" ")) >= 4 else ()


def _abcd_records(source: Source, split: str) -> Records:
    if split == "train" and not source.holds(_ABCD):
        return json_list(source, _ABCD_SAMPLE)
    return json_list(source, _ABCD, split)


def _abcd_dialogue(record: Raw) -> Dialogue:
    rows, delexicalised = field(record, "original", list), field(record, "delexed", list)
    if len(rows) != len(delexicalised):
        got = f"{len(delexicalised)} rows, expected one for each of {len(rows)} in original"
        raise InputError(f"field delexed: got {got}")
    turns = flattened(convert_each(zip(rows, delexicalised, strict=True), "turns", _abcd_turn))
    flow = field(field(record, "scenario", dict), "flow", str)
    return Dialogue(turns, str(field(record, "convo_id", int)), (flow,))


def _abcd_turn(row: Raw, delexicalised: Raw) -> list[Turn]:
    speaker = one_of(delexicalised, "speaker", (*_ABCD_ROLES, "action"))
    if speaker == "action":
        return []
    _, text = strings(row, 2)
    intents = abcd_intents([delexicalised], text) if speaker == "customer" else ()
    return [Turn(_ABCD_ROLES[speaker], text, (), abcd_slots([delexicalised]), intents)]


# Taskmaster 1: ``TM-1-2019/{self,woz}-dialogs.json`` or, without them, the dialogue in
# ``sample.json``. The domain is the first word of the instructions. The lists in
# ``train-dev-test/*.csv`` split the written dialogues, a hash of the id the others. The sample and
# the lists alone do not make a train or test split.

_TM1 = ("TM-1-2019/self-dialogs.json", "TM-1-2019/woz-dialogs.json")
_TM1_SAMPLE, _TM1_LISTS = (
    "TM-1-2019/sample.json",
    {split: f"TM-1-2019/train-dev-test/{split}.csv" for split in SPLITS},
)
_TM1_FILES = {**dict.fromkeys(SPLITS, _TM1), "dev": (*_TM1, _TM1_SAMPLE, *_TM1_LISTS.values())}


def _tm1_records(source: Source, split: str) -> Records:
    lines = (
        (name, line) for name, file in _TM1_LISTS.items() for _, line in text_lines(source, file)
    )
    official = {line.partition(",")[0].strip(): name for name, line in lines}
    for place, record in _tm1_files(source):
        identifier = str(record.get("conversation_id")) if isinstance(record, dict) else ""
        if split == (official.get(identifier) or hashed_split(identifier)):
            yield place, record


def _tm1_files(source: Source) -> Records:
    for file in _TM1:
        yield from json_list(source, file)
    if not any(map(source.holds, _TM1)):
        for name, stream in source.files(_TM1_SAMPLE):
            yield name, parse_json(name, stream.read())


def _first_word(record: Raw) -> tuple[str, ...]:
    return (field(record, "instruction_id", str).partition("-")[0],)


_TM1_DIALOGUE = replace(
    TASKMASTER, domains=_first_word, labels=partial(taskmaster_labels, prefixed=True)
)

# DSTC2 as task 6: ``dialog-babi-task6-dstc2-{trn,dev,tst}.txt``. A line ``<number>
# user<TAB>system`` is an exchange; a line without a tab is a fact that nobody says. A user who says
# ``<SILENCE>`` or nothing is silent, and ``api_call`` is a query. The splits of the calls differ
# from those of the transcripts.

_BABI_FILES = split_patterns("dialog-babi-task6-dstc2-{}.txt", train="trn", dev="dev", test="tst")


@numbered
def _babi_records(source: Source, split: str) -> Records:
    blocks = grouped(text_lines(source, _BABI_FILES[split][0]), lambda line: bool(line[1].strip()))
    return ((place, lines) for place, lines in blocks if lines[0].strip())


def _babi_dialogue(identifier: str, lines: list[str]) -> Dialogue:
    exchanges = convert_each(enumerate(lines, start=1), "lines", _babi_exchange)
    return Dialogue(flattened(exchanges), identifier, ("restaurant",))


def _babi_exchange(expected: int, line: str) -> list[Turn]:
    number, _, content = line.partition(" ")
    if number != str(expected):
        raise InputError(
            f"got {line[:40]!r}, expected a line that begins with {expected}; get the file again"
        )
    if "\t" not in content:
        return []
    user, _, system = (part.strip() for part in content.partition("\t"))
    turns = [Turn("user", user)] if user not in ("", "<SILENCE>") else []
    return turns if system.partition(" ")[0] == "api_call" else [*turns, Turn("assistant", system)]


# Few-Shot-Intent-Detection, five corpora split alike for work with few examples:
# ``<corpus>/{train,valid,test}/seq.in`` and ``label``, an utterance and its label per line; SNIPS
# and ATIS have ``seq.out`` too, a tag such as ``B-city_name`` for each word. ATIS joins several
# intents by ``#``. The domain of HWU64 is the scenario that the label begins with. The samples of 5
# and 10 utterances and the parts out of scope are not read.

_INTENT_PARTS = {"train": "train", "dev": "valid", "test": "test"}


def _intent_dialogue(identifier: str, lines: tuple[str, ...]) -> Dialogue:
    text, label, *tags = lines
    slots = _tagged_slots(text.split(), tags[0].split()) if tags else ()
    return utterance(identifier, text.strip(), tuple(label.split("#")), slots)


def _tagged_slots(words: list[str], tags: list[str]) -> Slots:
    if len(words) != len(tags):
        raise InputError(
            f"field tags: got {len(tags)}, expected one for each of {len(words)} words; repair the "
            "line"
        )
    slots: list[tuple[str, list[str]]] = []
    inside = ""
    for word, tag in zip(words, tags, strict=True):
        position, _, name = tag.partition("-")
        if position not in ("O", "B", "I") or (position == "O") == bool(name):
            raise InputError(
                f"field tags: got {tag[:40]!r}, expected O, B-name or I-name; repair the line"
            )
        if position == "I" and name == inside:
            slots[-1][1].append(word)
        elif name:
            slots.append((name, [word]))
        inside = name
    return tuple((name.lower(), " ".join(value)) for name, value in slots)


def _scenario_dialogue(identifier: str, lines: tuple[str, str]) -> Dialogue:
    text, label = lines
    scenario, mark, _ = label.partition("_")
    if not scenario or not mark:
        raise InputError(
            f"field label: got {label[:40]!r}, expected scenario_intent; repair the line"
        )
    return utterance(identifier, text.strip(), (label,), (), scenario)


def _intents(
    folder: str, *more: str, convert: Callable[..., Dialogue] = _intent_dialogue
) -> tuple[Files, Reading, Callable[..., Dialogue]]:
    lines = ("seq.in", "label", *more)
    files = {
        split: tuple(f"{folder}/{part}/{file}" for file in lines)
        for split, part in _INTENT_PARTS.items()
    }
    return files, numbered(lambda source, split: parallel_lines(source, files[split])), convert


_TM4_FILES = "TM-4-2024/data/data_*.json"
CORPORA = catalogued(
    {
        "dailydialog": _of_split(
            "data/dialogues.json", _DAILY_SPLITS, domains=_daily_topics, labels=_daily_acts
        ),
        "dstc2": _of_split("data.json", _DSTC2_SPLITS, domains=_restaurant),
        "doc2dial": (_DOC2DIAL_FILES, _doc2dial_records, _DOC2DIAL),
        "taskmaster4": (split_patterns(_TM4_FILES), taskmaster_records(_TM4_FILES), TASKMASTER),
        "abcd": (_ABCD_FILES, _abcd_records, _abcd_dialogue),
        "taskmaster1": (_TM1_FILES, without_empty("utterances", _tm1_records), _TM1_DIALOGUE),
        "dstc2_babi": (_BABI_FILES, _babi_records, _babi_dialogue),
        "few_shot_banking77": _intents("BANKING77"),
        "few_shot_clinc150": _intents("CLINC150"),
        "few_shot_snips": _intents("SNIPS", "seq.out"),
        "few_shot_atis": _intents("ATIS", "seq.out"),
        "hwu64": _intents("HWU64", convert=_scenario_dialogue),
    },
    CATALOGUE,
)
