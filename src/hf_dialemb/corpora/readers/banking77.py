"""Banking77: questions of a bank's customers, with 77 intents.

Source: https://github.com/PolyAI-LDN/task-specific-datasets. Licence: CC BY 4.0.
Layout: ``banking_data/train.csv`` and ``test.csv`` with the columns text and category; there is no dev split (but see
the corpus few_shot_banking77).
"""

from __future__ import annotations

from collections.abc import Iterator

from ...models.dialogue import Dialogue, Turn
from ...models.errors import InputError
from ..corpus import Corpus
from ..records import field
from ..source.files import Source
from ..source.parsing import table_rows

_FILES = {split: (f"banking_data/{split}.csv",) for split in ("train", "test")}

_Record = tuple[str, dict[str, str]]


def _records(source: Source, split: str) -> Iterator[tuple[str, _Record]]:
    for number, (place, row) in enumerate(table_rows(source, _FILES[split][0], ("text", "category"))):
        yield place, (f"{split}/{number}", row)


def _dialogue(record: _Record) -> Dialogue:
    identifier, row = record
    category = field(row, "category", str)
    if not category or "" in row:
        raise InputError("got another number of cells than a text and a category; repair the row")
    return Dialogue((Turn("user", field(row, "text", str), intents=(category,)),), identifier)


CORPORA = (
    Corpus(
        "banking77",
        _FILES,
        _records,
        _dialogue,
        source="https://github.com/PolyAI-LDN/task-specific-datasets",
        licence="CC BY 4.0",
        terms="permissive",
        kind="utterances",
    ),
)
