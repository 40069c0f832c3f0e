"""Banking77: questions of a bank's customers, with 77 intents.

Layout: ``banking_data/train.csv`` and ``test.csv`` with the columns text and category; there is no dev split (but see
the corpus few_shot_banking77).
"""

from ...dialogue import Dialogue, Turn
from ...errors import InputError
from ..corpus import Corpus
from ..records import field
from ..source.parsing import numbered, split_files, table_rows

_SOURCE = "https://github.com/PolyAI-LDN/task-specific-datasets"
_FILES = {split: (f"banking_data/{split}.csv",) for split in ("train", "test")}
_RECORDS = numbered(split_files(table_rows, _FILES, columns=("text", "category")))


def _dialogue(identifier: str, row: dict[str, str]) -> Dialogue:
    category = field(row, "category", str)
    if not category or "" in row:
        raise InputError("got another number of cells than a text and a category; repair the row")
    return Dialogue((Turn("user", field(row, "text", str), intents=(category,)),), identifier)


CORPORA = (Corpus("banking77", _FILES, _RECORDS, _dialogue, _SOURCE, "CC BY 4.0", "permissive", kind="utterances"),)
