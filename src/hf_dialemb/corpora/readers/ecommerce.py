"""E-commerce Dialogue Corpus: Chinese chats of customers with a shop, with answers to choose from.

Layout: ``ECD*/train*``, ``ECD*/valid*`` and ``ECD*/test*``, whose lines are a label (1: this answer followed; 0: it is
from elsewhere), the utterances so far and an answer, with tabs between them; words are split by blanks.

Consecutive lines with the same utterances, up to ten, are one example: in the files at hand two lines in train and dev,
ten in test, so that 154, 154 and 1,000 lines give 77, 77 and 100 examples. The customer begins and speakers alternate.
Dev of the authors' sample is a copy of its train.
"""

from itertools import groupby, islice

from ...dialogue import Turn
from ...errors import InputError
from ..corpus import Corpus, Records, Source
from ..examples import ResponseSelection
from ..records import convert_each
from ..source.parsing import numbered, text_lines

_SOURCE, _SAMPLE = "https://github.com/cooelf/DeepUtteranceAggregation", "the authors' sample"
_FILES = {"train": ("ECD*/train*",), "dev": ("ECD*/valid*",), "test": ("ECD*/test*",)}
_MOST_CANDIDATES = 10
_FEWEST_CELLS = 3
_LABELS = ("0", "1")
_ROLES = ("user", "assistant")


@numbered
def _records(source: Source, split: str) -> Records:
    lines = ((place, line.split("\t")) for place, line in text_lines(source, _FILES[split][0]) if line)
    for _, group in groupby(lines, key=lambda line: line[1][1:-1]):
        while same := list(islice(group, _MOST_CANDIDATES)):
            yield same[0][0], [cells for _, cells in same]


def _selection(identifier: str, lines: list[list[str]]) -> ResponseSelection:
    labelled = convert_each(lines, "lines", _labelled)
    context = tuple(Turn(_ROLES[index % 2], text) for index, text in enumerate(lines[0][1:-1]))
    correct = tuple(index for index, (label, _) in enumerate(labelled) if label == "1")
    return ResponseSelection(context, tuple(answer for _, answer in labelled), correct, identifier)


def _labelled(cells: list[str]) -> tuple[str, str]:
    if len(cells) < _FEWEST_CELLS:
        raise InputError(f"got {len(cells)} cells, expected a label, utterances and an answer; repair the line")
    if cells[0] not in _LABELS:
        raise InputError(f"field label: got {cells[0][:20]!r}, expected {' or '.join(_LABELS)}; repair the line")
    return cells[0], cells[-1]


_READING = (_FILES, _records, _selection, _SOURCE)
CORPORA = (Corpus("ecommerce", *_READING, "none stated", "research", "response-selection", "edc", extract=_SAMPLE),)
