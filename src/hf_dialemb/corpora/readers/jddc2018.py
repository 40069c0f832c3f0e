"""JDDC 2018: chats of customers with the shop JD in Chinese, from the baseline of the JD Dialog Challenge.

Layout: ``{train,dev}Questions.txt`` and ``{train,dev}Answers.txt``, whose lines of one number belong together: what was
said so far, and the shop's reply. Each utterance is followed by a comma, and so are parts of sentences: nothing says
where one utterance ends, nor who spoke it. So a dialogue has two turns, the context as the user's and the reply as the
assistant's, and the comma at the end of each is left out. Ten replies of train and one of dev say nothing; there the
context is the only turn.
"""

from ...dialogue import Dialogue, Turn
from ..corpus import Corpus
from ..source.parsing import numbered, parallel_lines

_SOURCE = "https://github.com/SimonJYang/JDDC-Baseline-TFIDF"
_FILES = {split: (f"{split}Questions.txt", f"{split}Answers.txt") for split in ("train", "dev")}
_RECORDS = numbered(lambda source, split: parallel_lines(source, _FILES[split]))


def _dialogue(identifier: str, lines: tuple[str, str]) -> Dialogue:
    context, reply = lines
    turns = [Turn("user", context.removesuffix(","))]
    if reply.strip(" ,"):
        turns.append(Turn("assistant", reply.removesuffix(",")))
    return Dialogue(tuple(turns), identifier)


CORPORA = (Corpus("jddc2018", _FILES, _RECORDS, _dialogue, _SOURCE, "none stated", "research", folder="jddc"),)
