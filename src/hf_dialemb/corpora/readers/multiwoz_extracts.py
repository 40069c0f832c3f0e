"""MultiWOZ as others cut or changed it: single-domain dialogues, restaurants, a first file as text, and TITAN.

Layouts, all in one folder or archive ``multiwoz``:

- ``multiwoz20_single_domain``: the 2,924 dialogues of version 2.0 with one domain, out of ``dstc8_multiwoz2.0.zip``;
  ``multiwoz2.0_single_domain/dialogues/*.txt``, one JSON object per line. The extract has no splits: dev and test are
  the dialogues that are so in version 2.1 (``multiwoz2.1_convlab2/{val,test}.json``, which has to be there), in their
  older wording. The greeting of the assistant that opens every dialogue was added by the extract and is left out.
- ``multiwoz21_restaurant``: 442 dialogues of version 2.1 about restaurants alone;
  ``multiwoz2.1_restaurant_only/restaurants.json``, a list in MultiWOZ's own layout. It lost ids and splits: the id is
  the position, and a hash of it the split. 111 of these dialogues are dev or test in version 2.1, and 85 of those are
  train here: leave the corpus out when testing on MultiWOZ.
- ``multiwoz22_text``: the 512 dialogues of the first train file of version 2.2; ``multiwoz2.2_train_001_text/*.tsv``
  with id, speaker, utterance and services, without a header, quotes or other labels.
- ``titan``: 903 dialogues with acts of mixed initiative, and turns rewritten or inserted to show it;
  ``titan_903/annotated_user_da_with_span_full.json`` in MultiWOZ's own layout, and the lists of dev and test
  ``titan_903/{val,test}ListFile.json`` (ids, a line each). The refined acts keep their refinement:
  ``Hotel-Inform-Specific`` becomes ``inform-specific``. Ids are MultiWOZ's, but the splits are not: 182 of the
  dialogues, 141 of them in train here, are dev or test there, most with other turns. Leave them out of training when
  testing on MultiWOZ. Of an id that comes again, as one does, alike, only the first dialogue is read.
"""

import reprlib
from dataclasses import replace

from ...dialogue import Dialogue, Turn
from ...errors import InputError
from ..corpus import SPLITS, Corpus, Records, Source
from ..records import Raw, convert_each, field, hashed_split, one_of
from ..source.parsing import grouped, json_list, table_rows
from .multiwoz import (
    HELD_OUT,
    SINGLE_DOMAIN,
    extract_dialogue,
    extract_records,
    goal_and_log,
    identifier,
    members_of_split,
)

_RESTAURANTS = "multiwoz2.1_restaurant_only/restaurants.json"
_TEXT = "multiwoz2.2_train_001_text/*.tsv"
_TITAN = "titan_903/annotated_user_da_with_span_full.json"
_TITAN_LISTS = {"dev": "titan_903/valListFile.json", "test": "titan_903/testListFile.json"}
_ID, _SPEAKER, _UTTERANCE, _SERVICES = _COLUMNS = ("dialogue_id", "speaker", "utterance", "services")
_ROLES = {"USER": "user", "SYSTEM": "assistant"}
_NO_SERVICE, _OPEN, _CLOSE = "None", "['", "']"


def _restaurant_records(source: Source, split: str) -> Records:
    for index, (place, raw) in enumerate(json_list(source, _RESTAURANTS)):
        key = f"restaurant/{index}"
        if hashed_split(key) == split:
            yield place, (key, raw)


def _restaurant_dialogue(key: str, raw: Raw) -> Dialogue:
    return replace(goal_and_log(key, raw), id=key)


def _text_records(source: Source, split: str) -> Records:
    rows = table_rows(source, _TEXT, delimiter="\t", quoted=False, names=_COLUMNS)
    return grouped(rows, lambda row: row[1][_ID])


def _text_dialogue(rows: list[dict[str, str]]) -> Dialogue:
    turns = convert_each(rows, "turns", _text_turn)
    return Dialogue(turns, identifier(rows[0][_ID]), _services(rows[0][_SERVICES]))


def _text_turn(row: dict[str, str]) -> Turn:
    if "" in row:
        raise InputError(f"got {reprlib.repr(row[''])} after the last column, expected 4 cells; get the file again")
    role = _ROLES[one_of(row, _SPEAKER, _ROLES)]
    field(row, _SERVICES, str)
    return Turn(role, field(row, _UTTERANCE, str))


def _services(text: str) -> tuple[str, ...]:
    """Takes ``"['hotel, train']"`` apart, which is how a list was written there."""
    if text == _NO_SERVICE:
        return ()
    if not text.startswith(_OPEN) or not text.endswith(_CLOSE):
        got = reprlib.repr(text)
        raise InputError(f"field {_SERVICES}: got {got}, expected such as ['hotel, train']; get the file again")
    return tuple(text.removeprefix(_OPEN).removesuffix(_CLOSE).split(", "))


def _titan_records(source: Source, split: str) -> Records:
    seen: set[str] = set()
    for place, (key, raw) in members_of_split(source, split, _TITAN, _TITAN_LISTS):
        if key not in seen:
            seen.add(key)
            yield place, (key, raw)


CORPORA = (
    Corpus(
        "multiwoz20_single_domain", dict.fromkeys(SPLITS, (SINGLE_DOMAIN, *HELD_OUT.values())), extract_records,
        extract_dialogue, "https://github.com/thu-coai/ConvLab-2", "CC BY 4.0", "permissive", folder="multiwoz",
        part_of="multiwoz", extract="the single-domain dialogues of version 2.0",
    ),
    Corpus(
        "multiwoz21_restaurant", dict.fromkeys(SPLITS, (_RESTAURANTS,)), _restaurant_records, _restaurant_dialogue,
        "https://github.com/vbursztyn/multiwoz-to-rasa", "none stated; a part of MultiWOZ 2.1, MIT", "research",
        folder="multiwoz", extract="442 dialogues about restaurants",
    ),
    Corpus(
        "multiwoz22_text", {"train": (_TEXT,)}, _text_records, _text_dialogue,
        "https://github.com/XavierXinchi/Slot-Extraction-from-MultiWOZ", "none stated; a part of MultiWOZ 2.2, MIT",
        "research", folder="multiwoz", extract="text and services of 512 dialogues of train",
    ),
    Corpus(
        "titan", dict.fromkeys(SPLITS, (_TITAN, *_TITAN_LISTS.values())), _titan_records, goal_and_log,
        "https://github.com/styanXDU/TITAN", "none stated; made from MultiWOZ, MIT", "research", folder="multiwoz",
    ),
)  # fmt: skip
