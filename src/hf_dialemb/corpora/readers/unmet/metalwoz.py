"""MetaLWOZ: dialogues of crowd workers who play a user and a bot, over 47 domains.

Layout: ``dialogues/<DOMAIN>.txt``, one JSON object per line. Names in lower case are left out: those are the MultiWOZ
dialogues in this layout that came with the DSTC8 task.

The bot begins every dialogue with one and the same greeting; as in the extract of MultiWOZ in this layout, it is
dropped, so that the user begins. There are no labels but the domain. The 47 domains have no official split: a hash of
the id decides. The four other domains of ``dstc8_metalwoz_heldout``, the archive of the task's tests, are test where
present.
"""

from ....dialogue import Dialogue, Turn
from ...corpus import SPLITS, Corpus, Records, Source
from ...records import Raw, convert_each, field, hashed_split, names
from ...source.parsing import json_lines

_SOURCE = "https://www.microsoft.com/en-us/research/project/metalwoz"
_LICENCE = "Microsoft Research Data License Agreement"
_DIALOGUES = "dialogues/[A-Z]*.txt"
_HELD_OUT = "dstc8_metalwoz_heldout/"
_GREETING = "Hello how may I help you?"


def _records(source: Source, split: str) -> Records:
    for place, raw in json_lines(source, _DIALOGUES):
        identifier = str(raw.get("id")) if isinstance(raw, dict) else ""
        if split == ("test" if _HELD_OUT in place else hashed_split(identifier)):
            yield place, raw


def _dialogue(raw: Raw) -> Dialogue:
    spoken = [("user" if index % 2 else "assistant", text) for index, text in enumerate(names(raw, "turns"))]
    if spoken and spoken[0][1] == _GREETING:
        spoken = spoken[1:]
    turns = convert_each(spoken, "turns", Turn)
    return Dialogue(turns, field(raw, "id", str), (field(raw, "domain", str),))


_FILES = dict.fromkeys(SPLITS, (_DIALOGUES,))
CORPORA = (Corpus("metalwoz", _FILES, _records, _dialogue, _SOURCE, _LICENCE, "research", real=False),)
