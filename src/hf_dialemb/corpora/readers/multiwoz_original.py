"""MultiWOZ 2.1 and 2.4 as their authors give them out, and Disambiguation, which others made of 2.1 in its layout.

Layout: ``data.json`` (an object from id to ``{"goal", "log"}``), and ``valListFile.txt`` and ``testListFile.txt`` (or
``.json``; ids, a line each); what neither list names is train. Where there is no ``data.json``, ``train.json``,
``val.json`` and ``test.json`` in the same form, as in https://github.com/thu-coai/ConvLab-2.

The acts of a turn are its ``dialog_act``, which some dialogues lack. The copies from Cambridge, and 2.4, have the acts
of the system in ``dialogue_acts.json`` instead, where a turn is known by its number among the system's turns. That file
is kept in memory, as text. 2.4 corrects the belief states of dev and test, not the text.

In Disambiguation, all in lower case, a third of the dialogues ask which of several search results the user means. The
user's answer was put before what the user says in MultiWOZ, with ``<conj>`` between them; nobody says that mark, so it
is left out. Ids are MultiWOZ's, and so is most of the text.
"""

from functools import partial

from ...dialogue import Dialogue, Turn
from ..corpus import Corpus, Records, Source
from ..records import Raw, field
from ..source.parsing import json_members
from .multiwoz import acts_by_turn, goal_and_log, identifier, labels, members_of_split, separate_acts, text_and_acts

_LISTS = {"dev": "valListFile.*", "test": "testListFile.*"}
_ACTS = "dialogue_acts.json"
_NO_ANNOTATION, _MARK = "No Annotation", " <conj> "
_SINGLE = {"train": "train.json", "dev": "val.json", "test": "test.json"}
_FILES = {split: ("data.json", *_LISTS.values(), _ACTS, single) for split, single in _SINGLE.items()}


def _split_records(source: Source, split: str) -> Records:
    """Reads the dialogues of one split, from ``data.json`` or, without one, from the split's own file."""
    place, _ = next(source.files("data.json"), ("", None))
    if place:
        return members_of_split(source, split, "data.json", _LISTS, beside=place)
    return json_members(source, _SINGLE[split])


def _records(source: Source, split: str) -> Records:
    acts = separate_acts(source, _ACTS)
    for place, (key, raw) in _split_records(source, split):
        yield place, (key, raw, acts.get(identifier(key)))


def _dialogue(key: str, raw: Raw, text: str | None) -> Dialogue:
    acts = acts_by_turn(_ACTS, text)
    for number, turn in enumerate(field(raw, "log", list)[1::2], start=1):
        if isinstance(turn, dict) and str(number) in acts:
            turn.setdefault("dialog_act", acts[str(number)])
    return goal_and_log(key, raw, _turn)


def _turn(role: str, raw: Raw) -> Turn:
    text = field(raw, "text", str)
    annotation = raw.get("dialog_act", _NO_ANNOTATION)
    return Turn(role, text, *labels({} if annotation == _NO_ANNOTATION else annotation))


def _without_mark(role: str, raw: Raw) -> Turn:
    return text_and_acts(role, {**raw, "text": field(raw, "text", str).replace(_MARK, " ")})


CORPORA = (
    Corpus(
        "multiwoz21", _FILES, _records, _dialogue, "https://github.com/budzianowski/multiwoz", "MIT", "permissive",
        folder="multiwoz", part_of="multiwoz", shared=("dev", "test"),
        extract="dev and test, in the layout of ConvLab-2",
    ),
    Corpus(
        "multiwoz24", _FILES, _records, _dialogue, "https://github.com/smartyfh/MultiWOZ2.4", "MIT", "permissive",
        part_of="multiwoz21", real=False,
    ),
    Corpus(
        "disambiguation", _FILES, _split_records, partial(goal_and_log, turn=_without_mark),
        "https://aclanthology.org/2022.naacl-main.85", "MIT", "permissive", real=False,
    ),
)  # fmt: skip
