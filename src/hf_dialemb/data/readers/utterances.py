"""Corpora of single utterances with their intents or actions.

Banking77, CLINC150, SNIPS, Dialog2Flow's evaluation.
"""

import re

from ...dialogue import Dialogue, Turn
from ...errors import InputError
from ..corpus import Records, Source, catalogued
from ..labels import parse_action
from ..parsing import json_list, json_members, numbered, parse_json, split_files, table_rows
from ..raw_records import Raw
from ..source import MissingFilesError
from .shapes import cells, split_patterns, utterance

# Banking77, questions of a bank's customers with 77 intents: ``banking_data/{train,test}.csv``. It
# has no dev split.

_BANKING_FILES = split_patterns("banking_data/{}.csv", train="train", test="test")
_BANKING_RECORDS = numbered(split_files(table_rows, _BANKING_FILES, columns=("text", "category")))


def _banking(identifier: str, row: dict[str, str]) -> Dialogue:
    text, category = cells(row, "text", "category")
    return utterance(identifier, text, (category,))


# CLINC150, utterances to an assistant with 150 intents in ten domains: ``data_full.json``, lists of
# pairs of text and intent, and ``domains.json``, from each domain to its intents. A split ends in
# utterances that are out of scope: their intent is ``oos``, and they have no domain.

_CLINC = "data_full.json"
_CLINC_DOMAINS = "domains.json"
_CLINC_LISTS = {"train": "train", "dev": "val", "test": "test"}


def _clinc_records(source: Source, split: str) -> Records:
    domains: dict[str, str] = {}
    for _, (domain, intents) in json_members(source, _CLINC_DOMAINS):
        domains |= dict.fromkeys(intents, domain)
    if not domains and not source.holds(_CLINC_DOMAINS):
        raise MissingFilesError(
            f"{source.path}: {_CLINC_DOMAINS} is missing beside {_CLINC}; add the file"
        )
    for prefix, name in (
        (split, _CLINC_LISTS[split]),
        (f"{split}/oos", f"oos_{_CLINC_LISTS[split]}"),
    ):
        for number, (place, record) in enumerate(json_list(source, _CLINC, name)):
            yield (
                f"{place.rpartition(': ')[0]}: {prefix} record {number}",
                (f"{prefix}/{number}", record, domains),
            )


def _clinc(identifier: str, record: Raw, domains: dict[str, str]) -> Dialogue:
    text, intent = record
    of = () if intent == "oos" else (domains[intent],)
    return utterance(identifier, text, (intent,), (), *of)


# SNIPS, utterances to a voice assistant with seven intents and their slots:
# ``train_<intent>_full.json`` and ``validate_<intent>.json`` of 2017-06-custom-intent-engines.
# Validate is what others test on; there is no dev split. A file spells a character beyond U+FFFF as
# two surrogates, which is not valid UTF-8.

_SNIPS_FILES = {"train": ("train_*_full.json",), "test": ("validate_*.json",)}
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf]")


def _snips_records(source: Source, split: str) -> Records:
    for name, stream in source.files(_SNIPS_FILES[split][0]):
        content = parse_json(name, _repaired(stream.read()))
        if not isinstance(content, dict) or list(map(type, content.values())) != [list]:
            raise InputError(
                f"{name}: expected an object from the only intent to its utterances; get the file "
                "again"
            )
        ((intent, records),) = content.items()
        for number, record in enumerate(records):
            yield f"{name}: record {number}", (f"{split}/{intent}/{number}", intent, record)


def _repaired(content: bytes) -> bytes:
    if not _SURROGATE.search(content):
        return content
    try:
        return (
            content.decode("utf-8", "surrogatepass")
            .encode("utf-16", "surrogatepass")
            .decode("utf-16")
            .encode()
        )
    except UnicodeError:
        return content


def _snips(identifier: str, intent: str, record: Raw) -> Dialogue:
    pieces = [(piece["text"], piece.get("entity", "")) for piece in record["data"]]
    slots = tuple((slot.lower(), text.strip()) for text, slot in pieces if slot)
    return utterance(identifier, "".join(text for text, _ in pieces).strip(), (intent,), slots)


# Dialog2Flow's evaluation set, 15 utterances of task corpora for each of 313 actions:
# ``train/data/val.csv`` without a header. An action such as ``inform destination, date`` gives the
# act, the slots and, as a whole, the intent.

_ACTIONS = {"test": ("train/data/val.csv",)}
_ACTION_RECORDS = numbered(split_files(table_rows, _ACTIONS, names=("text", "action")))


def _action(identifier: str, row: dict[str, str]) -> Dialogue:
    text, action = cells(row, "text", "action")
    acts, slots = parse_action(action)
    return Dialogue(
        (Turn("user", text, acts, tuple((slot, "") for slot in slots), (action,)),), identifier
    )


CORPORA = catalogued(
    {
        "banking77": (_BANKING_FILES, _BANKING_RECORDS, _banking),
        "clinc150": (dict.fromkeys(_CLINC_LISTS, (_CLINC, _CLINC_DOMAINS)), _clinc_records, _clinc),
        "snips": (_SNIPS_FILES, _snips_records, _snips),
        "dialog2flow_evaluation": (_ACTIONS, _ACTION_RECORDS, _action),
    }
)
