"""JDDC 2018: chats of customers with the shop JD in Chinese, from the baseline of the JD Dialog Challenge.

Source: https://github.com/SimonJYang/JDDC-Baseline-TFIDF. Licence: none stated.
Layout: ``{train,dev}Questions.txt`` and ``{train,dev}Answers.txt``, whose lines of one number belong together: what was
said so far, and the shop's reply. Each utterance is followed by a comma, and so are parts of sentences: nothing says
where one utterance ends, nor who spoke it. So a dialogue has two turns, the context as the user's and the reply as the
assistant's, and the comma at the end of each is left out. Ten replies of train and one of dev say nothing; there the
context is the only turn.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...models.dialogue import Dialogue, Turn
from ..corpus import Corpus
from ..source.files import Source
from ..source.parsing import parallel_lines

_FILES = {split: (f"{split}Questions.txt", f"{split}Answers.txt") for split in ("train", "dev")}

_Record = tuple[str, tuple[str, ...]]


def _records(source: Source, split: str) -> Iterator[tuple[str, _Record]]:
    for number, (place, lines) in enumerate(parallel_lines(source, _FILES[split])):
        yield place, (f"{split}/{number}", lines)


def _dialogue(record: _Record) -> Dialogue:
    identifier, (context, reply) = record
    turns = [Turn("user", context.removesuffix(","))]
    if reply.strip(" ,"):
        turns.append(Turn("assistant", reply.removesuffix(",")))
    return Dialogue(tuple(turns), identifier)


CORPORA = (
    Corpus(
        "jddc2018",
        _FILES,
        _records,
        _dialogue,
        source="https://github.com/SimonJYang/JDDC-Baseline-TFIDF",
        licence="none stated",
        terms="research",
        folder="jddc",
    ),
)
