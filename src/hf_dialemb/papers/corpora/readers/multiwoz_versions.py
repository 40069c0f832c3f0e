"""Other releases of MultiWOZ, and corpora that others made from it.

All but multiwoz21_restaurant and SpokenWOZ have the ids of MultiWOZ.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path, PurePosixPath

from ....data.corpus import SPLITS, Records, Source, catalogued
from ....data.parsing import json_list, json_members, table_rows
from ....data.raw_records import Raw, flattened, hashed_split
from ....data.readers.multiwoz import goal_and_log, identifier, labels, text_and_acts
from ....data.readers.shapes import UPPER_CASE_ROLES, cells, split_patterns
from ....data.source import MissingFilesError
from ....dialogue import Dialogue, Turn
from .. import CATALOGUE
from ..row_forms import USER_AND_SYSTEM, grouped, text_lines


def members_of_split(
    source: Source, split: str, pattern: str, lists: Mapping[str, str], beside: str = ""
) -> Records:
    """Read the dialogues of a split from a file of all of them; ids in none of the lists are train.

    The lists must lie in the folder of the file ``beside``, if that is given.
    """
    splits = {
        identifier(line.strip()): name
        for name, ids in lists.items()
        for place, line in text_lines(source, ids)
        if line.strip()
        and (not beside or PurePosixPath(place).parent == PurePosixPath(beside).parent)
    }
    missing = [ids for name, ids in lists.items() if name not in splits.values()]
    for place, (key, record) in json_members(source, pattern):
        if missing:
            needs = (
                f"{pattern} needs {missing[0]} too, which names the dialogues of a split; add "
                "the file"
            )
            raise MissingFilesError(f"{source.path}: {needs}")
        if splits.get(identifier(key), "train") == split:
            yield place, (key, record)


# multiwoz21_restaurant: 442 dialogues of version 2.1, a list in MultiWOZ's own layout that lost ids
# and splits. The id is the position, and a hash of it the split. 111 of the dialogues are dev or
# test in version 2.1, and 85 of those are train here: leave the corpus out when testing on
# MultiWOZ.

_RESTAURANTS = "multiwoz2.1_restaurant_only/restaurants.json"


def _restaurant_records(source: Source, split: str) -> Records:
    for number, (place, record) in enumerate(json_list(source, _RESTAURANTS)):
        if hashed_split(key := f"restaurant/{number}") == split:
            yield place, (key, record)


# multiwoz22_text: the 512 dialogues of the first train file of version 2.2, as tables without
# header, quotes or acts.

_TEXT = "multiwoz2.2_train_001_text/*.tsv"
_TEXT_COLUMNS = ("dialogue_id", "speaker", "utterance", "services")


def _text_records(source: Source, split: str) -> Records:
    rows = table_rows(source, _TEXT, delimiter="\t", quoted=False, names=_TEXT_COLUMNS)
    return grouped(rows, lambda row: row[1]["dialogue_id"])


def _text_dialogue(rows: list[dict[str, str]]) -> Dialogue:
    turns = tuple(
        Turn(UPPER_CASE_ROLES[row["speaker"]], cells(row, *_TEXT_COLUMNS)[2]) for row in rows
    )
    services = rows[0]["services"]  # such as "['hotel, train']", or None
    domains = (
        tuple(services.removeprefix("['").removesuffix("']").split(", "))
        if services != "None"
        else ()
    )
    return Dialogue(turns, identifier(rows[0]["dialogue_id"]), domains)


# multiwoz21, as its authors give it out: ``data.json``, and ``{val,test}ListFile.txt`` (or
# ``.json``) with ids. Where there is no ``data.json``, ``{train,val,test}.json`` in the same form,
# as in ConvLab-2. The copies from Cambridge have the acts of the system in ``dialogue_acts.json``,
# where a turn is known by its number among the system's turns.

_LISTS = {"dev": "valListFile.*", "test": "testListFile.*"}
_SINGLE = {"train": "train.json", "dev": "val.json", "test": "test.json"}
_WHOLE_FILES = {
    split: ("data.json", *_LISTS.values(), "dialogue_acts.json", file)
    for split, file in _SINGLE.items()
}


def _whole_records(source: Source, split: str) -> Records:
    # The acts of all dialogues, if there is such a file, stay in memory.
    acts = {
        identifier(key): by_turn for _, (key, by_turn) in json_members(source, "dialogue_acts.json")
    }
    whole, _ = next(source.files("data.json"), ("", None))
    records = members_of_split(source, split, "data.json", _LISTS, whole) if whole else None
    for place, (key, record) in records or json_members(source, _SINGLE[split]):
        yield place, (key, record, acts.get(identifier(key), {}))


def _whole_dialogue(key: str, record: Raw, acts: Raw) -> Dialogue:
    for number, turn in enumerate(record["log"][1::2], start=1):
        if isinstance(turn, dict) and str(number) in acts:
            turn.setdefault("dialog_act", acts[str(number)])
    return goal_and_log(key, record, _whole_turn)


def _whole_turn(role: str, turn: Raw) -> Turn:
    text = turn["text"]
    acts = turn.get("dialog_act", {})
    return Turn(role, text, *labels({} if acts == "No Annotation" else acts))


# titan: acts keep their refinement, as in ``inform-specific``. The ids are MultiWOZ's but the
# splits are not: 182 of the dialogues, 141 of them in train here, are dev or test there. Leave them
# out of training when testing on MultiWOZ. Of the id that comes twice, alike, one dialogue is read.

_TITAN = "titan_903/annotated_user_da_with_span_full.json"
_TITAN_LISTS = {"dev": "titan_903/valListFile.json", "test": "titan_903/testListFile.json"}
_TITAN_FILES = dict.fromkeys(SPLITS, (_TITAN, *_TITAN_LISTS.values()))

# spokenwoz: telephone calls, transcribed by machine, in MultiWOZ's layout, where ``tag`` says who
# speaks.

_CALLS = ("text_5700_train_dev/data.json", "text_5700_train_dev/valListFile.json")
_CALL_FILES = {"train": _CALLS, "dev": _CALLS, "test": ("text_5700_test/data.json",)}


def _call_records(source: Source, split: str) -> Records:
    if split == "test":
        return json_members(source, _CALL_FILES["test"][0])
    return members_of_split(source, split, _CALLS[0], {"dev": _CALLS[1]})


def _call_turn(_: str, turn: Raw) -> Turn:
    return text_and_acts(USER_AND_SYSTEM[turn["tag"]], turn)


# hdsa: version 2.0 in lower case and tokenised, with the acts of the system as its authors' program
# predicts them: ``{dev,test}.tsv``, an exchange per line, and
# ``{val,test}_reference_nondelex.json``, the replies of the system. The JSON with all splits is
# read from DialogStudio.
#
# A line has the id, the number of the exchange, a database row, the system's last utterance, the
# user's utterance, and a vector of 44 zeros and ones: which domains, functions and arguments the
# next reply has. They are not tied to each other, and users have no labels. The reply is in the
# next line, and the last reply in the reference.

_HDSA_FILES = {
    "dev": ("dev.tsv", "val_reference_nondelex.json"),
    "test": ("test.tsv", "test_reference_nondelex.json"),
}
_HDSA_COLUMNS = ("dialogue_id", "turn", "database", "last", "user", "acts")
_HDSA_LABELS = json.loads(Path(__file__).with_name("hdsa_labels.json").read_text())


def _hdsa_records(source: Source, split: str) -> Records:
    table, reference = _HDSA_FILES[split]
    replies = dict(entry for _, entry in json_members(source, reference))
    if not replies and source.holds(table):
        raise MissingFilesError(
            f"{source.path}: {table} needs {reference} too, for the last replies; add the file"
        )
    rows = table_rows(source, table, delimiter="\t", quoted=False, names=_HDSA_COLUMNS)
    for place, dialogue in grouped(rows, lambda row: row[1]["dialogue_id"]):
        yield place, (dialogue, replies.get(dialogue[0]["dialogue_id"], []))


_NO_DOMAIN = ("booking", "general")  # prefixes of acts


def _hdsa_dialogue(record: list[dict[str, str]], replies: Raw) -> Dialogue:
    labelled = [_hdsa_labels(row["acts"]) for row in record]
    spoken = [*(row["last"] for row in record[1:]), *replies[-1:]]
    turns = [
        (
            Turn("user", row["user"]),
            Turn("assistant", text, acts, tuple((slot, "") for slot in slots)),
        )
        for row, text, (_, acts, slots) in zip(record, spoken, labelled, strict=True)
    ]
    domains = {domain for topics, _, _ in labelled for domain in topics}.difference(_NO_DOMAIN)
    return Dialogue(flattened(turns), identifier(record[0]["dialogue_id"]), tuple(sorted(domains)))


@cache  # a few thousand vectors come again and again
def _hdsa_labels(text: str) -> tuple[tuple[str, ...], ...]:
    """Read a vector as the names of domains, acts and slots."""
    bits = json.loads(text)
    marked = [label for label, bit in zip(_HDSA_LABELS, bits, strict=True) if bit]
    return tuple(
        tuple(name for kind, name in marked if kind == wanted)
        for wanted in ("domain", "act", "slot")
    )


CORPORA = catalogued(
    {
        "multiwoz21_restaurant": (
            split_patterns(_RESTAURANTS),
            _restaurant_records,
            lambda key, record: replace(goal_and_log(key, record), id=key),
        ),
        "multiwoz22_text": ({"train": (_TEXT,)}, _text_records, _text_dialogue),
        "multiwoz21": (_WHOLE_FILES, _whole_records, _whole_dialogue),
        "titan": (
            _TITAN_FILES,
            partial(members_of_split, pattern=_TITAN, lists=_TITAN_LISTS),
            goal_and_log,
        ),
        "hdsa": (_HDSA_FILES, _hdsa_records, _hdsa_dialogue),
        "spokenwoz": (_CALL_FILES, _call_records, partial(goal_and_log, turn=_call_turn)),
    },
    CATALOGUE,
)
