"""ABCD (Action-Based Conversations Dataset): customers of a shop and its agents, who follow guidelines and click.

Layout: ``abcd_v1.1.json``, an object from split to a list of conversations; where that file is missing,
``abcd_sample.json`` of the repository, such a list, is read as train.

Rows by ``action`` are the agent's clicks and were not said; they are left out. The corpus has no dialogue acts: the
slots are the marks such as ``<order_id>`` in the delexicalised text, the label of a dialogue is its flow, and a
customer's turn of at least four words has the conversation's intent (the rule of Dialog2Flow).
"""

import re
from collections.abc import Iterable

from ...dialogue import Dialogue, Turn
from ...errors import InputError
from ..corpus import SPLITS, Corpus, Records, Source
from ..records import Raw, Slots, convert_each, distinct, field, one_of
from ..source.parsing import json_list

_SOURCE = "https://github.com/asappresearch/abcd"
_FULL, _SAMPLE = "abcd_v1.1.json", "abcd_sample.json"
_FILES = {split: (_FULL, _SAMPLE) if split == "train" else (_FULL,) for split in SPLITS}
_ROLES = {"customer": "user", "agent": "assistant"}
_MARK = re.compile(r"<(\w+)>")
_FEWEST_WORDS = 4


def slots_of(rows: Iterable[Raw]) -> Slots:
    """Finds the slots in delexicalised rows."""
    marks = distinct(name for row in rows for name in _MARK.findall(field(row, "text", str)))
    return tuple((name, "") for name in marks)


def intents_of(rows: Iterable[Raw], text: str) -> tuple[str, ...]:
    """Finds the intent of what a customer says."""
    targets = [field(row, "targets", list) for row in rows]
    named = [target[0] for target in targets if target and isinstance(target[0], str) and target[0]]
    return tuple(named[:1]) if len(text.split(" ")) >= _FEWEST_WORDS else ()


def _records(source: Source, split: str) -> Records:
    if split == "train" and not source.holds(_FULL):
        return json_list(source, _SAMPLE)
    return json_list(source, _FULL, split)


def _dialogue(raw: Raw) -> Dialogue:
    said, delexicalised = field(raw, "original", list), field(raw, "delexed", list)
    if len(said) != len(delexicalised):
        got = f"{len(delexicalised)} rows, expected one for each of {len(said)} in original"
        raise InputError(f"field delexed: got {got}")
    spoken = [row for row in zip(said, delexicalised, strict=True) if not _is_click(row[1])]
    flow = field(field(raw, "scenario", dict), "flow", str)
    return Dialogue(convert_each(spoken, "turns", _turn), str(field(raw, "convo_id", int)), (flow,))


def _is_click(row: Raw) -> bool:
    return isinstance(row, dict) and row.get("speaker") == "action"


def _turn(said: Raw, row: Raw) -> Turn:
    role = _ROLES[one_of(row, "speaker", _ROLES)]
    if not isinstance(said, list) or len(said) != 2 or not isinstance(said[1], str):
        raise InputError(f"field original: got {type(said).__name__}, expected a pair of speaker and text")
    return Turn(role, said[1], (), slots_of([row]), intents_of([row], said[1]) if role == "user" else ())


_EXTRACT = "the sample of 3 conversations"
CORPORA = (Corpus("abcd", _FILES, _records, _dialogue, _SOURCE, "MIT", "permissive", extract=_EXTRACT),)
