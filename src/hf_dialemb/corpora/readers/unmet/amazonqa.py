"""AmazonQA: questions about products and their answers.

Layout: ``amazonqa.txt``, a question and its answer per line with a tab between them; blank lines are passed over. The
lines that ParlAI writes (``parlai convert_to_parlai --task amazon_qa``) are such: cells begin with ``text:`` and
``labels:``, more cells may follow, and a line's end in a text is spelled as a backslash and n, here read as a blank.

There is no official split: a hash of the line's number decides.
"""

from ....dialogue import Dialogue, Turn
from ....errors import InputError
from ...corpus import SPLITS, Corpus, Records, Source
from ...records import hashed_split
from ...source.parsing import text_lines

_SOURCE = "https://jmcauley.ucsd.edu/data/amazon/qa/"
_FILE = "amazonqa.txt"
_QUESTION, _ANSWER = "text:", "labels:"
_LINE_END = "\\n"


def _records(source: Source, split: str) -> Records:
    for number, (place, line) in enumerate(text_lines(source, _FILE)):
        if line.strip() and hashed_split(str(number)) == split:
            yield place, (f"{split}/{number}", line)


def _dialogue(identifier: str, line: str) -> Dialogue:
    question, tab, rest = line.partition("\t")
    if not tab:
        raise InputError("got one cell, expected a question, a tab and an answer; repair the line")
    answer = rest.partition("\t")[0]
    if question.startswith(_QUESTION) and answer.startswith(_ANSWER):
        question = question.removeprefix(_QUESTION).replace(_LINE_END, " ")
        answer = answer.removeprefix(_ANSWER).replace(_LINE_END, " ")
    return Dialogue((Turn("user", question), Turn("assistant", answer)), identifier)


_FILES = dict.fromkeys(SPLITS, (_FILE,))
CORPORA = (Corpus("amazonqa", _FILES, _records, _dialogue, _SOURCE, "none stated", "research", real=False),)
