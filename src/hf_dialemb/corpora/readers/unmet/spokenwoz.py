"""SpokenWOZ: telephone calls of a customer and a clerk over eight domains, transcribed by machine, with acts and slots.

Layout: ``text_5700_train_dev/data.json`` and ``text_5700_test/data.json`` in MultiWOZ's own layout, where a turn also
says who speaks (``tag``) and when each word was said; ``text_5700_train_dev/valListFile.json`` names the dev dialogues.

Ids look like MultiWOZ's and are others. What callers say of themselves, the goal's ``profile``, is no domain. Acts such
as ``backchannel`` stay; whoever wants flows leaves them out there.
"""

from functools import partial

from ....dialogue import Turn
from ...corpus import Corpus, Records, Source
from ...records import Raw, one_of
from ...source.parsing import json_members
from ..multiwoz import goal_and_log, members_of_split, text_and_acts

_SOURCE = "https://spokenwoz.github.io/SpokenWOZ-github.io"
_TRAIN_DEV, _TEST = "text_5700_train_dev/data.json", "text_5700_test/data.json"
_DEV_IDS = "text_5700_train_dev/valListFile.json"
_FILES = {"train": (_TRAIN_DEV, _DEV_IDS), "dev": (_TRAIN_DEV, _DEV_IDS), "test": (_TEST,)}
_ROLES = {"user": "user", "system": "assistant"}


def _records(source: Source, split: str) -> Records:
    if split == "test":
        return json_members(source, _TEST)
    return members_of_split(source, split, _TRAIN_DEV, {"dev": _DEV_IDS})


def _turn(_: str, raw: Raw) -> Turn:
    return text_and_acts(_ROLES[one_of(raw, "tag", _ROLES)], raw)


_READING = (_FILES, _records, partial(goal_and_log, turn=_turn))
CORPORA = (Corpus("spokenwoz", *_READING, _SOURCE, "CC BY-NC 4.0", "research", real=False),)
