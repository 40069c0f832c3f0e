"""Ubuntu Dialogue Corpus 2.0: chats of two people about Ubuntu, each cut somewhere, with answers to choose from.

Layout: ``train.csv`` with the columns Context, Utterance and Label (1: this answer followed; 0: it is from elsewhere),
``valid.csv`` and ``test.csv`` with Context, Ground Truth Utterance and Distractor_0 to Distractor_8.

In a context ``__eou__`` ends an utterance and ``__eot__`` a turn, that is, the other one speaks next; the first speaker
is the user. Utterances of one turn stay apart, those of an answer are joined by a blank. The true answer comes first.
In train each context has one answer; where that is from elsewhere, none is correct.
"""

from ....dialogue import Turn
from ....errors import InputError
from ...corpus import Corpus, Records, Source
from ...examples import ResponseSelection
from ...records import field, one_of
from ...source.parsing import numbered, table_rows

_SOURCE = "https://github.com/rkadlec/ubuntu-ranking-dataset-creator"
_FILES = {"train": ("train.csv",), "dev": ("valid.csv",), "test": ("test.csv",)}
_TRUE = "Ground Truth Utterance"
_ANSWERS = (_TRUE, *(f"Distractor_{number}" for number in range(9)))
_COLUMNS = {"train": ("Context", "Utterance", "Label")}
_CORRECT = {"1": (0,), "1.0": (0,), "0": (), "0.0": ()}
_ROLES = ("user", "assistant")
_END_OF_UTTERANCE, _END_OF_TURN = "__eou__", "__eot__"


@numbered
def _records(source: Source, split: str) -> Records:
    return table_rows(source, _FILES[split][0], _COLUMNS.get(split, ("Context", *_ANSWERS)))


def _selection(identifier: str, row: dict[str, str]) -> ResponseSelection:
    if "" in row:
        raise InputError("got more cells than columns, expected one per column; repair the row")
    context = tuple(
        Turn(_ROLES[index % 2], utterance)
        for index, turn in enumerate(field(row, "Context", str).split(_END_OF_TURN))
        for utterance in _utterances(turn)
    )
    if _TRUE in row:
        answers = [_answer(row, column) for column in _ANSWERS]
        return ResponseSelection(context, tuple(answers), (0,), identifier)
    correct = _CORRECT[one_of(row, "Label", _CORRECT)]
    return ResponseSelection(context, (_answer(row, "Utterance"),), correct, identifier)


def _answer(row: dict[str, str], column: str) -> str:
    return " ".join(_utterances(field(row, column, str).replace(_END_OF_TURN, "")))


def _utterances(turn: str) -> list[str]:
    return [text for text in map(str.strip, turn.split(_END_OF_UTTERANCE)) if text]


_READING = (_FILES, _records, _selection)
CORPORA = (Corpus("ubuntu", *_READING, _SOURCE, "none stated", "research", kind="response-selection", real=False),)
