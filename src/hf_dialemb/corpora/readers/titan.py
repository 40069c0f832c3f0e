"""TITAN: 903 dialogues of MultiWOZ with acts of mixed initiative, and turns rewritten or inserted to show it.

Source: https://github.com/styanXDU/TITAN. Licence: none stated; MultiWOZ, of which it is made, is MIT.
Layout: ``titan_903/annotated_user_da_with_span_full.json`` in MultiWOZ's own layout, and the lists of dev and test
``titan_903/{val,test}ListFile.json`` (ids, a line each).

The refined acts keep their refinement: ``Hotel-Inform-Specific`` becomes ``inform-specific``. Ids are MultiWOZ's, but
the splits are not: 182 of the 903 dialogues, 141 of them in train here, are dev or test there, most with other turns.
Leave them out of training when testing on MultiWOZ. One dialogue stands twice in the file, alike; of an id that comes
again, only the first dialogue is read, and so the ids stay in memory.
"""

from __future__ import annotations

from typing import Any

from ...models.dialogue import Dialogue
from ..corpus import SPLITS, Corpus
from ..source.files import Source
from ..source.splits import Records
from .multiwoz import goal_and_log, members_of_split

_DIALOGUES = "titan_903/annotated_user_da_with_span_full.json"
_LISTS = {"dev": "titan_903/valListFile.json", "test": "titan_903/testListFile.json"}


def _records(source: Source, split: str) -> Records:
    seen: set[str] = set()
    for place, (key, raw) in members_of_split(source, split, _DIALOGUES, _LISTS):
        if key not in seen:
            seen.add(key)
            yield place, (key, raw)


def _dialogue(record: tuple[str, Any]) -> Dialogue:
    return goal_and_log(*record)


_SOURCE, _LICENCE = "https://github.com/styanXDU/TITAN", "none stated; made from MultiWOZ, MIT"
_FILES = dict.fromkeys(SPLITS, (_DIALOGUES, *_LISTS.values()))
CORPORA = (Corpus("titan", _FILES, _records, _dialogue, _SOURCE, _LICENCE, "research", folder="multiwoz"),)
