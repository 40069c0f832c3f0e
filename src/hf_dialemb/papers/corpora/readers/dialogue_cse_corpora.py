"""Chats of customers with shops in Chinese.

Those of DialogueCSE, and JDDC 2018.

DialogueCSE has ``train/train_data.txt*``, ``{dev,test}/sts.txt`` and ``{dev,test}/select.txt`` of
two shops, with tabs between the cells. A line of train has the utterances before an utterance,
those after it, their roles such as ``0|1-0-1`` (before, it, after; 1 is the shop), ``1``,
candidates of which the first is the utterance, and ``1|0|0...``. It is read as a dialogue; training
draws candidates anew. A line of sts.txt is a score from 1 to 5 and two sentences. A line of
select.txt is an id, a sentence, its topic, and the ids of relevant lines and of others to rank
below them.
"""

import re
from collections.abc import Callable
from itertools import chain

from ....data.corpus import Files, Reading, Records, Source, catalogued
from ....data.parsing import numbered, split_files
from ....data.raw_records import Raw
from ....data.readers.shapes import split_patterns
from ....dialogue import Dialogue, Turn
from ....errors import InputError
from .. import CATALOGUE
from ..row_forms import parallel_lines, text_lines
from ..sentence_sets import RetrievalQuery, SentencePair

_ROLES = {"0": "user", "1": "assistant"}
_QUERIES = split_patterns("{}/select.txt", dev="dev", test="test")
_PAIRS = split_patterns("{}/sts.txt", dev="dev", test="test")
_TRAIN: Files = {"train": ("train/train_data.txt*",)}


def _split(line: str, count: int) -> list[str]:
    cells = line.split("\t")
    if len(cells) != count:
        raise InputError(
            f"got {len(cells)} cells, expected {count} with tabs between them; repair the line"
        )
    return cells


def _dialogue(identifier: str, line: str) -> Dialogue:
    before, after, codes, _, candidates, labels = _split(line, 6)
    if labels.split("|")[0] != "1":
        raise InputError(
            f"field labels: got {labels[:20]!r}, expected 1 for the first candidate; repair the "
            "line"
        )
    texts = (before.split("|"), candidates.split("|")[:1], after.split("|"))
    roles = [part.split("|") for part in codes.split("-")]
    if list(map(len, roles)) != list(map(len, texts)) or not _ROLES.keys() >= set(chain(*roles)):
        raise InputError(
            f"field roles: got {codes[:40]!r}, expected 0 or 1 for each utterance in 3 parts; "
            "repair them"
        )
    pairs = zip(chain(*roles), chain(*texts), strict=True)
    return Dialogue(tuple(Turn(_ROLES[code], text) for code, text in pairs), identifier)


def _pair(identifier: str, line: str) -> SentencePair:
    cell, first, second = _split(line, 3)
    if not re.fullmatch(r"\d+(\.\d+)?", cell):
        raise InputError(f"field score: got {cell[:20]!r}, expected a number; repair the line")
    return SentencePair(first, second, score=float(cell), id=identifier)


def _queries(source: Source, split: str) -> Records:
    (pattern,) = _QUERIES[split]
    sentences: dict[str, str] = {}  # all of them stay in memory, to resolve the ids
    for _, line in text_lines(source, pattern):
        identifier, _, rest = line.partition("\t")
        sentences.setdefault(identifier, rest.partition("\t")[0])
    for place, line in text_lines(source, pattern):
        yield place, (split, line, sentences)


def _query(split: str, line: str, sentences: dict[str, str]) -> RetrievalQuery:
    identifier, text, topic, *lists = _split(line, 5)
    # a repeated id counts once
    ids = [dict.fromkeys(ids.split(",") if ids else ()) for ids in lists]
    for unknown in filter(lambda name: name not in sentences, chain(*ids)):
        raise InputError(
            f"got the id {unknown[:20]!r} of a candidate, expected that of a line; repair the line"
        )
    relevant, other = (tuple(map(sentences.__getitem__, names)) for names in ids)
    return RetrievalQuery(text, relevant, other, label=topic, id=f"{split}/{identifier[:40]}")


_SHOP: dict[str, tuple[Files, Reading, Callable[..., Raw]]] = {
    "dialogues": (_TRAIN, numbered(split_files(text_lines, _TRAIN)), _dialogue),
    "sts": (_PAIRS, numbered(split_files(text_lines, _PAIRS)), _pair),
    "retrieval": (_QUERIES, _queries, _query),
}

# jddc2018, of the JD Dialog Challenge: ``{train,dev}Questions.txt`` and ``{train,dev}Answers.txt``,
# whose lines of a number belong together: the chat before, and the shop's reply. Commas end
# utterances and parts of sentences alike, and nothing says who spoke. So the context is the user's
# turn, and the reply the assistant's. Eleven replies are empty.

_JDDC_FILES = {
    split: (f"{split}Questions.txt", f"{split}Answers.txt") for split in ("train", "dev")
}


def _jddc(identifier: str, lines: tuple[str, str]) -> Dialogue:
    context, reply = (line.removesuffix(",") for line in lines)
    replies = [Turn("assistant", reply)] if reply.strip(" ,") else []
    return Dialogue((Turn("user", context), *replies), identifier)


CORPORA = catalogued(
    {
        **{
            f"{shop}_{kind}": reading
            for shop in ("ecommerce", "jddc")
            for kind, reading in _SHOP.items()
        },
        "jddc2018": (
            _JDDC_FILES,
            numbered(lambda source, split: parallel_lines(source, _JDDC_FILES[split])),
            _jddc,
        ),
    },
    CATALOGUE,
)
