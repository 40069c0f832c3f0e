"""MultiWOZ: written dialogues of visitors to Cambridge and a town clerk, over seven domains, with acts and slots.

Layout: ``multiwoz2.1_convlab2/{val,test}.json`` (an object from id to dialogue) and
``multiwoz2.0_single_domain/dialogues/*.txt`` (one JSON object per line, one file per domain).

Dev and test are version 2.1 as in https://github.com/thu-coai/ConvLab-2. Train is the single-domain extract of version
2.0 that came with the DSTC8 MetaLWOZ task, without any dialogue that dev or test holds. An act such as ``Hotel-Inform``
becomes ``inform`` and slot names are lower-cased, so that both are as in the other corpora; an act without a slot
stays. What the other readers of corpora in this layout share lies here too.
"""

import json
import reprlib
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath

from ...dialogue import Dialogue, Turn
from ...errors import InputError
from ..corpus import Corpus, Records, Source
from ..records import Raw, Slots, convert_each, field, names
from ..source.files import MissingFilesError
from ..source.parsing import json_lines, json_members, parse_json, text_lines

# The files of version 2.1 that say which dialogues are dev and test.
HELD_OUT = {"dev": "multiwoz2.1_convlab2/val.json", "test": "multiwoz2.1_convlab2/test.json"}
SINGLE_DOMAIN = "multiwoz2.0_single_domain/dialogues/*.txt"  # the files of the single-domain extract
NO_DOMAIN = ("booking", "general")  # what stands where acts have their domain, and is none
NO_SLOT = "none"  # what stands where acts have their slot, and is none

_FILES = {"train": (SINGLE_DOMAIN, *HELD_OUT.values()), "dev": (HELD_OUT["dev"],), "test": (HELD_OUT["test"],)}

# The extract begins every dialogue with this one system turn; in MultiWOZ itself the user begins. Dropping it makes the
# roles and the first turns of all splits alike.
_GREETING = "Hello, how may I help you?"
_BESIDE_DOMAINS = ("message", "topic", "eod", "messageLen", "profile")  # what else goals hold


def _records(source: Source, split: str) -> Records:
    return extract_records(source, split) if split == "train" else json_members(source, HELD_OUT[split])


def _dialogue(first: Raw, *raw: Raw) -> Dialogue:
    return goal_and_log(first, *raw) if raw else extract_dialogue(first)


def goal_and_log(key: str, raw: Raw, turn: Callable[[str, Raw], Turn] | None = None) -> Dialogue:
    """Converts a dialogue in MultiWOZ's own layout: ``{"goal": {domain: {...}}, "log": [turn, ...]}``."""
    goal = field(raw, "goal", dict)
    domains = tuple(sorted(name for name, wanted in goal.items() if wanted and name not in _BESIDE_DOMAINS))
    log = [("assistant" if index % 2 else "user", spoken) for index, spoken in enumerate(field(raw, "log", list))]
    return Dialogue(convert_each(log, "log", turn or text_and_acts), identifier(key), domains)


def text_and_acts(role: str, raw: Raw) -> Turn:
    """Converts a turn of MultiWOZ's own layout: ``{"text": ..., "dialog_act": {...}}``."""
    return Turn(role, field(raw, "text", str), *labels(field(raw, "dialog_act", dict)))


def extract_records(source: Source, split: str) -> Records:
    """Reads the single-domain extract, one dialogue at a time; the ids of dev and test are all that stays in memory."""
    splits: dict[str, str] = {}
    for held_out, pattern in HELD_OUT.items():
        found = {identifier(key): held_out for _, (key, _) in json_members(source, pattern)}
        if not found:
            needs = f"split {split} needs {pattern} too, which says what is {held_out}; add the file"
            raise MissingFilesError(f"{source.path}: {needs}")
        splits |= found
    for place, raw in json_lines(source, SINGLE_DOMAIN):
        key = raw.get("id") if isinstance(raw, dict) else None
        if (splits.get(identifier(key), "train") if isinstance(key, str) else "train") == split:
            yield place, raw


def extract_dialogue(raw: Raw) -> Dialogue:
    """Converts a dialogue of the single-domain extract."""
    turns = names(raw, "turns")
    annotations = field(raw, "annotations", list) if "annotations" in raw else [{}] * len(turns)
    if len(annotations) != len(turns):
        raise InputError(f"field annotations: got {len(annotations)}, expected one for each of {len(turns)} turns")
    roles = ("user" if index % 2 else "assistant" for index in range(len(turns)))
    spoken = list(zip(roles, turns, annotations, strict=True))
    if turns and turns[0] == _GREETING:
        spoken = spoken[1:]
    domain = field(raw, "domain", str)
    said = convert_each(spoken, "turns", lambda role, text, annotation: Turn(role, text, *labels(annotation)))
    return Dialogue(said, identifier(field(raw, "id", str)), (domain,))


def labels(annotation: Raw) -> tuple[tuple[str, ...], Slots]:
    """Reads what a turn does, such as ``{"Hotel-Inform": [["Area", "east"]], "general-bye": [["none", "none"]]}``."""
    if not isinstance(annotation, dict):
        raise InputError(f"field dialog_act: got {type(annotation).__name__}, expected an object; repair the record")
    slots = []
    for pairs in annotation.values():
        single = not isinstance(pairs, list) or (pairs and isinstance(pairs[0], str))
        for pair in [pairs] if single else pairs:
            if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(part, str) for part in pair):
                got = f"{reprlib.repr(pair)}, expected a pair of slot and value"
                raise InputError(f"field dialog_act: got {got}; repair the record")
            name, value = pair
            if name.lower() != NO_SLOT:
                slots.append((name.lower(), value_of(value)))
    acts = ((key.partition("-")[2] or key).lower() for key in annotation)
    return tuple(dict.fromkeys(acts)), tuple(slots)


def value_of(value: str) -> str:
    """The value of a slot, empty where it is asked for or nobody's concern."""
    return "" if value in ("?", "none") else value


def identifier(key: str) -> str:
    """The one form of an id: some releases write ``PMUL1635.json`` or another case for ``PMUL1635``."""
    return key.upper().removesuffix(".JSON")


def members_of_split(source: Source, split: str, pattern: str, lists: Mapping[str, str], beside: str = "") -> Records:
    """Reads the dialogues of one split out of a file of all of them; what no list names is train."""
    splits = {
        identifier(line.strip()): name
        for name, ids in lists.items()
        for place, line in text_lines(source, ids)
        if line.strip() and (not beside or PurePosixPath(place).parent == PurePosixPath(beside).parent)
    }
    missing = [ids for name, ids in lists.items() if name not in splits.values()]
    for place, (key, raw) in json_members(source, pattern):
        if missing:
            needs = f"{pattern} needs {missing[0]} too, which names the dialogues of a split; add the file"
            raise MissingFilesError(f"{source.path}: {needs}")
        if splits.get(identifier(key), "train") == split:
            yield place, (key, raw)


def separate_acts(source: Source, pattern: str) -> dict[str, str]:
    """Reads the acts of all dialogues out of a file of their own, if there is one; `acts_by_turn` takes them apart.

    All of it stays in memory, as JSON text, because nothing says that it has the order of the dialogues.
    """
    found = {}
    for place, (key, raw) in json_members(source, pattern):
        try:
            found[identifier(key)] = json.dumps(raw)
        except RecursionError:
            raise InputError(f"{place}: got brackets in brackets without end; get the file again") from None
    return found


def acts_by_turn(name: str, text: str | None) -> dict[str, Raw]:
    """Takes apart what `separate_acts` found for a dialogue: from a turn's number to its acts."""
    return field({name: parse_json(name, (text or "{}").encode())}, name, dict)


CORPORA = (
    Corpus(
        "multiwoz", _FILES, _records, _dialogue, "https://github.com/budzianowski/multiwoz",
        "MIT; the single-domain extract CC BY 4.0", "permissive", part_of="multiwoz21",
        extract="train is the single-domain extract of version 2.0",
    ),
)  # fmt: skip
