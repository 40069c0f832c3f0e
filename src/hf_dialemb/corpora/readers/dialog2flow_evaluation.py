"""Dialog2Flow's evaluation set: utterances of twenty task corpora, 15 for each of 313 actions.

Layout: ``train/data/val.csv``, an utterance and its action per row, without a header.

An action is a dialogue act and slots, such as ``inform destination, date``. Its parts are the turn's act and slots, and
the action itself is the intent, so that the authors' own classes are at hand. Who speaks is not known: all are users.
"""

from ...dialogue import Dialogue, Turn
from ...errors import InputError
from ..corpus import Corpus
from ..labels import parse_action
from ..records import field
from ..source.parsing import numbered, split_files, table_rows

_SOURCE, _FOLDER = "https://github.com/idiap/dialog2flow", "d2f_evaluation"
_FILES = {"test": ("train/data/val.csv",)}
_RECORDS = numbered(split_files(table_rows, _FILES, names=("text", "action")))


def _dialogue(identifier: str, row: dict[str, str]) -> Dialogue:
    action = field(row, "action", str)
    if not action or "" in row:
        raise InputError("got another number of cells than an utterance and an action; repair the row")
    acts, slots = parse_action(action)
    turn = Turn("user", field(row, "text", str), acts, tuple((slot, "") for slot in slots), (action,))
    return Dialogue((turn,), identifier)


_READING = (_FILES, _RECORDS, _dialogue)
CORPORA = (Corpus("dialog2flow_evaluation", *_READING, _SOURCE, "MIT", "permissive", "utterances", _FOLDER),)
