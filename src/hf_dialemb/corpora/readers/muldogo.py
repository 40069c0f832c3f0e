"""MultiDoGO: customers who call an airline, a bank, an insurer and others, with slots and intents per turn.

Layout: ``data/paper_splits/splits_annotated_at_turn_level/<domain>/{train,dev,test}.tsv``, a row per turn.

Only the customers' turns are annotated, so a dialogue has the one speaker ``user``. The label of a dialogue is its
folder. ``slot-labels`` holds a tag for each word, ``O`` or a slot's name; words in a row with one name are its value,
and where tags and words do not pair up the value stays empty. A turn may have several intents and has no dialogue act.
77 turns have no text and are left out.
"""

from itertools import groupby
from pathlib import PurePosixPath

from ...dialogue import Dialogue, Turn
from ...errors import InputError
from ..corpus import SPLITS, Corpus, Records, Source
from ..records import Slots, convert_each, field, flattened
from ..source.parsing import grouped, table_rows

_SOURCE = "https://github.com/awslabs/multi-domain-goal-oriented-dialogues-dataset"
_LICENCE, _EXTRACT = "CDLA-Permissive 1.0", "the customers' turns, which are what is annotated"
_FILES = {split: (f"splits_annotated_at_turn_level/*/{split}.tsv",) for split in SPLITS}
_ID = "conversationId"
_OUTSIDE, _SEPARATOR = "O", "<div>"


def _records(source: Source, split: str) -> Records:
    rows = table_rows(source, _FILES[split][0], (_ID, "utterance", "slot-labels", "intent"), delimiter="\t")
    for place, turns in grouped(rows, lambda row: (row[0].rpartition(":")[0], row[1].get(_ID))):
        yield place, (PurePosixPath(place.rpartition(":")[0]).parent.name, turns)


def _dialogue(domain: str, rows: list[dict[str, str]]) -> Dialogue:
    identifier = rows[0].get(_ID)
    if not identifier:
        raise InputError(f"field {_ID}: got an empty cell, expected the dialogue's id; repair the row")
    return Dialogue(flattened(convert_each(rows, "rows", _turns)), identifier, (domain,))


def _turns(row: dict[str, str]) -> list[Turn]:
    if "" in row:
        raise InputError(f"got a row with more than {len(row) - 1} cells, expected one per column; get the file again")
    text, labels, intent = field(row, "utterance", str), field(row, "slot-labels", str), field(row, "intent", str)
    if not text.strip():
        return []
    intents = tuple(name for name in intent.lower().split(_SEPARATOR) if name)
    return [Turn("user", text, slots=_slots(text.split(), labels.split()), intents=intents)]


def _slots(words: list[str], labels: list[str]) -> Slots:
    if labels.count(_OUTSIDE) == len(labels):
        return ()
    if len(words) != len(labels):
        words = [""] * len(labels)
    runs = groupby(zip(labels, words, strict=True), lambda labelled: labelled[0])
    values = ((name, " ".join(word for _, word in run)) for name, run in runs)
    return tuple((name.lower(), value.strip()) for name, value in values if name != _OUTSIDE)


CORPORA = (Corpus("muldogo", _FILES, _records, _dialogue, _SOURCE, _LICENCE, "permissive", extract=_EXTRACT),)
