"""Taskmaster 1 to 4: users who order, book and look for things with an assistant, spoken and written.

Layout: ``TM-1-2019/{self,woz}-dialogs.json``, ``TM-2-2020/data/<domain>.json``, ``TM-3-2020/data/data_*.json`` and
``TM-4-2024/data/data_*.json``, each a list of dialogues. Where TM-1's files are missing, its ``sample.json`` is read.

Annotations name slots, such as ``pizza_ordering.name.pizza.accept``; the status at the end is no part of the name. A
turn with slots informs (the rule of Dialog2Flow): there are no other acts. TM-4 annotates calls of an interface
instead; they are the intents of the turn that they answer. Labels of dialogues: the first word of TM-1's instructions
(its six domains), the file of TM-2, the vertical of TM-3 and TM-4.

Dialogues without turns and turns that say "(deleted)" are left out. The split of TM-1's written dialogues is the
official one, ``TM-1-2019/train-dev-test/*.csv``; that of the others is by a hash of the id: TM-3's splits are of
training examples.
"""

from functools import partial

from ...dialogue import Dialogue, Turn
from ..corpus import SPLITS, Corpus, Files, Reading, Records, Source
from ..records import Raw, Slots, each_of, field, flattened, hashed_split, one_of, optional
from ..source.parsing import hashed_by, json_list, out_of_all, parse_json, text_lines, without_empty

_FIRST = ("TM-1-2019/self-dialogs.json", "TM-1-2019/woz-dialogs.json")
_SAMPLE = "TM-1-2019/sample.json"
_OFFICIAL = {split: f"TM-1-2019/train-dev-test/{split}.csv" for split in SPLITS}
# The sample and the lists alone do not make a train or test split.
_FIRST_FILES = {**dict.fromkeys(SPLITS, _FIRST), "dev": (*_FIRST, _SAMPLE, *_OFFICIAL.values())}
_SECOND, _THIRD, _FOURTH = "TM-2-2020/data/*.json", "TM-3-2020/data/data_*.json", "TM-4-2024/data/data_*.json"

_ROLES = {"USER": "user", "ASSISTANT": "assistant", "user": "user", "assistant": "assistant"}
_NOT_SAID = "(deleted)"
_STATUS = ("accept", "reject")
_CALL = "api_call"


def slots_of(segments: list[Raw], *, prefixed: bool) -> Slots:
    """Reads the slots of annotated stretches of text."""
    slots: dict[tuple[str, str], None] = {}
    for segment in segments:
        text = field(segment, "text", str)
        for annotation in field(segment, "annotations", list):
            parts = [part.strip() for part in field(annotation, "name", str).lower().split(".")]
            if prefixed:
                parts = parts[1:]
            if len(parts) > 1 and parts[-1] in _STATUS:
                parts.pop()
            name = ".".join(filter(None, parts[:2]))
            if name:
                slots[name, text] = None
    return tuple(slots)


def _first_records(source: Source, split: str) -> Records:
    official = {
        line.partition(",")[0].strip(): listed
        for listed, pattern in _OFFICIAL.items()
        for _, line in text_lines(source, pattern)
    }
    for place, raw in _first_files(source):
        identifier = str(raw.get("conversation_id")) if isinstance(raw, dict) else ""
        if split == (official.get(identifier) or hashed_split(identifier)):
            yield place, raw


def _first_files(source: Source) -> Records:
    for pattern in _FIRST:
        yield from json_list(source, pattern)
    if not any(map(source.holds, _FIRST)):
        for name, stream in source.files(_SAMPLE):
            yield name, parse_json(name, stream.read())


def _second_records(source: Source, split: str) -> Records:
    for place, raw in _hashed(_SECOND)(source, split):
        yield place, (raw, place.rpartition(": record ")[0].rpartition("/")[2].removesuffix(".json"))


def _hashed(pattern: str) -> Reading:
    return without_empty("utterances", out_of_all(json_list, pattern, hashed_by("conversation_id")))


def _first_dialogue(raw: Raw) -> Dialogue:
    return _dialogue(raw, field(raw, "instruction_id", str).partition("-")[0])


def _later_dialogue(raw: Raw) -> Dialogue:
    return _dialogue(raw, field(raw, "vertical", str), prefixed=False)


def _dialogue(raw: Raw, domain: str, *, prefixed: bool = True) -> Dialogue:
    turns = flattened(each_of(raw, "utterances", partial(_turns, prefixed=prefixed)))
    return Dialogue(turns, field(raw, "conversation_id", str), (domain,))


def _turns(raw: Raw, *, prefixed: bool) -> list[Turn]:
    text = field(raw, "text", str)
    if text == _NOT_SAID:
        return []
    slots = slots_of(optional(raw, "segments", list), prefixed=prefixed)
    calls = [
        field(annotation, "value", str)
        for annotation in optional(raw, "annotations", list)
        if field(annotation, "name", str) == _CALL
    ]
    acts = ("inform",) if slots else ()
    return [Turn(_ROLES[one_of(raw, "speaker", _ROLES)], text, acts, slots, tuple(dict.fromkeys(calls)))]


def _corpus(number: int, files: Files, records: Reading, convert: Raw, **more: Raw) -> Corpus:
    source, name = "https://github.com/google-research-datasets/Taskmaster", f"taskmaster{number}"
    return Corpus(name, files, records, convert, source, "CC BY 4.0", "permissive", folder="taskmaster", **more)


def _of_files(pattern: str) -> Files:
    return dict.fromkeys(SPLITS, (pattern,))


_FIRST_READING = (_FIRST_FILES, without_empty("utterances", _first_records), _first_dialogue)
CORPORA = (
    _corpus(1, *_FIRST_READING, extract="the sample of one dialogue"),
    _corpus(2, _of_files(_SECOND), _second_records, _dialogue, real=False),
    _corpus(3, _of_files(_THIRD), _hashed(_THIRD), _later_dialogue, real=False),
    _corpus(4, _of_files(_FOURTH), _hashed(_FOURTH), _later_dialogue, extract="710 of the 6,500 dialogues"),
)
