"""Corpora in tables: MultiDoGO, a row for each turn, and the Self-dialogue Corpus, a row for each dialogue."""

import csv
import io
import random
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import PurePosixPath
from typing import Any, BinaryIO

from ...dialogue import Dialogue, Turn
from ...errors import InputError
from ..corpus import Records, Source, catalogued
from ..parsing import LONGEST_CELL, grouped, table_rows
from ..records import Slots, convert_each, field, flattened
from .shapes import cells, split_patterns

# MultiDoGO, customers who call an airline, a bank and the like: ``<domain>/{train,dev,test}.tsv`` of the splits that
# are annotated at turn level. Customers' turns alone are annotated, so ``user`` is the only speaker. ``slot-labels``
# has a tag for each word, ``O`` or a slot's name. Where tags and words do not pair up, values are empty. 77 turns
# without text are left out.

_DOGO_FILES = split_patterns("splits_annotated_at_turn_level/*/{}.tsv")
_DOGO_ID, *_DOGO_COLUMNS = ("conversationId", "utterance", "slot-labels", "intent")


def _dogo_records(source: Source, split: str) -> Records:
    rows = table_rows(source, _DOGO_FILES[split][0], (_DOGO_ID, *_DOGO_COLUMNS), delimiter="\t")
    for place, turns in grouped(rows, lambda row: (row[0].rpartition(":")[0], row[1].get(_DOGO_ID))):
        yield place, (PurePosixPath(place.rpartition(":")[0]).parent.name, turns)


def _dogo_dialogue(domain: str, rows: list[dict[str, str]]) -> Dialogue:
    identifier = rows[0].get(_DOGO_ID)
    if not identifier:
        raise InputError(f"field {_DOGO_ID}: got an empty cell, expected the dialogue's id; repair the row")
    return Dialogue(flattened(convert_each(rows, "rows", _dogo_turns)), identifier, (domain,))


def _dogo_turns(row: dict[str, str]) -> list[Turn]:
    text, tags, intent = cells(row, *_DOGO_COLUMNS)
    if not text.strip():
        return []
    intents = tuple(filter(None, intent.lower().split("<div>")))
    return [Turn("user", text, slots=_dogo_slots(text.split(), tags.split()), intents=intents)]


def _dogo_slots(words: list[str], tags: list[str]) -> Slots:
    """Join the words of each run of a tag to its value."""
    if len(words) != len(tags):
        words = [""] * len(tags)
    runs = groupby(zip(tags, words, strict=True), lambda pair: pair[0])
    values = ((name, " ".join(word for _, word in run)) for name, run in runs)
    return tuple((name.lower(), value.strip()) for name, value in values if name != "O")


# Self-dialogue, chats on 23 topics that a crowd worker wrote for both sides: ``corpus/<topic>/*.csv`` and
# ``blocked_workers.txt``, which may be missing. As in the authors' ``get_data.py``, rejected rows, rows of blocked
# workers and empty sentences are left out, and a later row of an assignment replaces the earlier. The row without a
# sentence is left out too. There is no official split: the sorted ids, shuffled with a fixed seed, are cut 80/10/10.

_SELF_FILES = split_patterns("corpus/*/*.csv", "blocked_workers.txt")
_SELF_ID, _SENTENCE = "AssignmentId", re.compile(r"Answer\.sentence(\d{1,4})")
# The two folders that mix topics give both as domains, so a filter for single domains drops their dialogues.
_MIXED = dict.fromkeys(("music_and_movies", "transition_music_movies"), ("music", "movies"))
_Cells = dict[str, Any]


def _self_records(source: Source, split: str) -> Records:
    workers = [io.TextIOWrapper(stream, "utf-8", "replace").read() for _, stream in source.files("blocked_workers.txt")]
    blocked = {line.strip() for text in workers for line in text.split("\n")}
    rows: dict[str, tuple[str, tuple[str, _Cells]]] = {}
    for name, stream in source.files("corpus/*/*.csv"):
        topic = PurePosixPath(name).parent.name
        for place, row in _self_rows(name, stream):
            if not row.get("Reject") and row.get("WorkerId") not in blocked and (_sentences(row) or not _complete(row)):
                rows[row.get(_SELF_ID) or place] = place, (topic, row)
    return (rows[identifier] for identifier in _chosen(sorted(rows), split))


def _self_rows(name: str, stream: BinaryIO) -> Iterator[tuple[str, _Cells]]:
    csv.field_size_limit(LONGEST_CELL)
    reader = csv.DictReader(io.TextIOWrapper(stream, "utf-8-sig", errors="replace", newline=""))
    try:
        for column in (_SELF_ID, "WorkerId", "Reject", "Answer.sentence1"):
            if column not in (reader.fieldnames or ()):
                raise InputError(f"{name}: column {column} is missing; get the file again")
        for number, row in enumerate(reader, start=1):
            yield f"{name}: row {number}", row
    except csv.Error as error:
        raise InputError(f"{name}: line {reader.line_num}: broken CSV ({error}); get the file again") from None


def _complete(row: _Cells) -> bool:
    return None not in row and None not in row.values()  # how csv.DictReader marks too many and too few cells


def _sentences(row: _Cells) -> dict[int, str]:
    """Return the sentences by number; numbers stay as they are, so that a gap does not swap the speakers."""
    matches = ((_SENTENCE.fullmatch(column or ""), text) for column, text in row.items() if text)
    numbered = sorted((int(match[1]), text) for match, text in matches if match)
    return {number: text for number, text in numbered if text.strip() not in ("", "{}")}


def _chosen(identifiers: list[str], split: str) -> list[str]:
    random.Random(0).shuffle(identifiers)
    train_end = int(len(identifiers) * 0.8)
    dev_end = train_end + int(len(identifiers) * 0.1)
    parts = {"train": slice(train_end), "dev": slice(train_end, dev_end), "test": slice(dev_end, None)}
    return sorted(identifiers[parts[split]])


def _self_dialogue(topic: str, row: _Cells) -> Dialogue:
    if not _complete(row):
        raise InputError("got a row with too few or too many cells, expected one per column; get the file again")
    identifier = field(row, _SELF_ID, str)
    if not identifier:
        raise InputError(f"field {_SELF_ID}: got an empty cell, expected the dialogue's id; repair the row")
    turns = (Turn("user" if number % 2 else "assistant", text) for number, text in _sentences(row).items())
    return Dialogue(tuple(turns), identifier, _MIXED.get(topic, (topic,)))


CORPORA = catalogued(
    {
        "muldogo": (_DOGO_FILES, _dogo_records, _dogo_dialogue),
        "self_dialogue": (_SELF_FILES, _self_records, _self_dialogue),
    }
)
