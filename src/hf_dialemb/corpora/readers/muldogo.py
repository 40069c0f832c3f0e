"""MultiDoGO: customers who call an airline, a bank, an insurer and others, with slots and intents per turn.

Source: https://github.com/awslabs/multi-domain-goal-oriented-dialogues-dataset. Licence: CDLA-Permissive 1.0.
Layout: ``data/paper_splits/splits_annotated_at_turn_level/<domain>/{train,dev,test}.tsv``, a row per turn.

Only the customers' turns are annotated, so a dialogue has the one speaker ``user``. The label of a dialogue is its
folder. ``slot-labels`` holds a tag for each word, ``O`` or a slot's name; words in a row with one name are its value,
and where tags and words do not pair up the value stays empty. A turn may have several intents and has no dialogue act.
77 turns have no text and are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import PurePosixPath
from typing import Any

from ...models.dialogue import Dialogue, Turn
from ...models.errors import InputError
from ..corpus import SPLITS, Corpus
from ..records import convert_each, field
from ..source.files import Source
from ..source.parsing import table_rows

_FILES = {split: (f"splits_annotated_at_turn_level/*/{split}.tsv",) for split in SPLITS}
_COLUMNS = ("conversationId", "utterance", "slot-labels", "intent")
_OUTSIDE, _SEPARATOR = "O", "<div>"


def _records(source: Source, split: str) -> Iterator[tuple[str, Any]]:
    rows = table_rows(source, _FILES[split][0], _COLUMNS, delimiter="\t")
    for (file, identifier), group in groupby(rows, _conversation):
        turns = list(group)
        yield turns[0][0], (PurePosixPath(file).parent.name, identifier, [row for _, row in turns])


def _conversation(located: tuple[str, dict[str, str]]) -> tuple[str, str | None]:
    place, row = located
    return place.rpartition(":")[0], row.get("conversationId")


def _dialogue(record: tuple[str, str | None, list[dict[str, str]]]) -> Dialogue:
    domain, identifier, rows = record
    if not identifier:
        raise InputError("field conversationId: got an empty cell, expected the dialogue's id; repair the row")
    turns = convert_each(rows, "rows", _turn)
    return Dialogue(tuple(turn for turn in turns if turn), identifier, (domain,))


def _turn(row: dict[str, str]) -> Turn | None:
    if "" in row:
        raise InputError(f"got a row with more than {len(row) - 1} cells, expected one per column; get the file again")
    text, labels, intent = field(row, "utterance", str), field(row, "slot-labels", str), field(row, "intent", str)
    if not text.strip():
        return None
    intents = tuple(name for name in intent.lower().split(_SEPARATOR) if name)
    return Turn("user", text, slots=_slots(text.split(), labels.split()), intents=intents)


def _slots(words: list[str], labels: list[str]) -> tuple[tuple[str, str], ...]:
    if labels.count(_OUTSIDE) == len(labels):
        return ()
    if len(words) != len(labels):
        words = [""] * len(labels)
    runs = ((name, " ".join(word for _, word in run)) for name, run in groupby(zip(labels, words, strict=True), _name))
    return tuple((name.lower(), value.strip()) for name, value in runs if name != _OUTSIDE)


def _name(labelled: tuple[str, str]) -> str:
    return labelled[0]


CORPORA = (
    Corpus(
        "muldogo",
        _FILES,
        _records,
        _dialogue,
        source="https://github.com/awslabs/multi-domain-goal-oriented-dialogues-dataset",
        licence="CDLA-Permissive 1.0",
        terms="permissive",
        extract="the customers' turns, which are what is annotated",
    ),
)
