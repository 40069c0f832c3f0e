"""Self-dialogue Corpus: chats on 23 topics, each written by one crowd worker who plays both sides.

Layout: ``corpus/<topic>/*.csv`` (Amazon Mechanical Turk results, a row per dialogue) and ``blocked_workers.txt``, which
may be missing.

The rules are those of the authors' ``get_data.py``: rows that were rejected and rows by blocked workers are left out,
sentences that are empty or ``{}`` are left out, and a later row with the same assignment replaces the earlier one. One
row has no sentence at all; it is no dialogue. Bytes that are not UTF-8 read as U+FFFD. There is no official split: the
sorted ids, shuffled with a fixed seed, are cut 80/10/10.
"""

import csv
import io
import random
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, BinaryIO

from ...dialogue import Dialogue, Turn
from ...errors import InputError
from ..corpus import SPLITS, Corpus, Records, Source
from ..records import field
from ..source.parsing import LONGEST_CELL

_SOURCE = "https://github.com/jfainberg/self_dialogue_corpus"
_BLOCKED = "blocked_workers.txt"
_DIALOGUES = "corpus/*/*.csv"
_SENTENCE = "Answer.sentence"
_SENTENCE_COLUMN = re.compile(r"Answer\.sentence(\d{1,4})")
_NOTHING_SAID = ("", "{}")
# These two folders mix topics, so their dialogues get both labels, and a filter for single domains drops them.
_MIXED = {"music_and_movies": ("music", "movies"), "transition_music_movies": ("music", "movies")}
_SEED = 0

_Cells = dict[str, Any]


def _records(source: Source, split: str) -> Records:
    blocked = {
        line.strip() for _, stream in source.files(_BLOCKED) for line in io.TextIOWrapper(stream, "utf-8", "replace")
    }
    rows: dict[str, tuple[str, tuple[str, _Cells]]] = {}
    for name, stream in source.files(_DIALOGUES):
        topic = PurePosixPath(name).parent.name
        for place, cells in _rows(name, stream):
            if cells.get("Reject") or cells.get("WorkerId") in blocked:
                continue
            if _sentences(cells) or not _complete(cells):
                rows[cells.get("AssignmentId") or place] = place, (topic, cells)
    return (rows[identifier] for identifier in _chosen(sorted(rows), split))


def _rows(name: str, stream: BinaryIO) -> Iterator[tuple[str, _Cells]]:
    csv.field_size_limit(LONGEST_CELL)
    reader = csv.DictReader(io.TextIOWrapper(stream, "utf-8-sig", errors="replace", newline=""))
    try:
        columns = reader.fieldnames or ()
        for column in ("AssignmentId", "WorkerId", "Reject", f"{_SENTENCE}1"):
            if column not in columns:
                missing = f"column {column} is missing; expected Mechanical Turk results, get the file again"
                raise InputError(f"{name}: {missing}")
        for number, cells in enumerate(reader, start=1):
            yield f"{name}: row {number}", cells
    except csv.Error as error:
        raise InputError(f"{name}: line {reader.line_num}: broken CSV ({error}); get the file again") from None


def _complete(cells: _Cells) -> bool:
    return None not in cells and None not in cells.values()  # how csv.DictReader marks cells too many and too few


def _sentences(cells: _Cells) -> dict[int, str]:
    """The sentences by number; numbers stay as they are, so that a gap does not swap the speakers."""
    numbered = {
        int(match[1]): text
        for column, text in cells.items()
        if text and (match := _SENTENCE_COLUMN.fullmatch(column or ""))
    }
    return {number: text for number, text in sorted(numbered.items()) if text.strip() not in _NOTHING_SAID}


def _chosen(identifiers: list[str], split: str) -> list[str]:
    random.Random(_SEED).shuffle(identifiers)
    train_end = int(len(identifiers) * 0.8)
    dev_end = train_end + int(len(identifiers) * 0.1)
    parts = {"train": slice(train_end), "dev": slice(train_end, dev_end), "test": slice(dev_end, None)}
    return sorted(identifiers[parts[split]])


def _dialogue(topic: str, cells: _Cells) -> Dialogue:
    if not _complete(cells):
        raise InputError("got a row with too few or too many cells, expected one per column; get the file again")
    identifier = field(cells, "AssignmentId", str)
    if not identifier:
        raise InputError("field AssignmentId: got an empty cell, expected the dialogue's id; repair the row")
    turns = (Turn("user" if number % 2 else "assistant", text) for number, text in _sentences(cells).items())
    return Dialogue(tuple(turns), identifier, _MIXED.get(topic, (topic,)))


_FILES = dict.fromkeys(SPLITS, (_DIALOGUES, _BLOCKED))
CORPORA = (Corpus("self_dialogue", _FILES, _records, _dialogue, _SOURCE, "BSD 3-Clause", "permissive"),)
