"""DialogueCSE: chats of customers with shops in Chinese (E-commerce, JDDC), and two tests of sentence embeddings.

Layout: ``train/train_data.txt*``, ``{dev,test}/sts.txt`` and ``{dev,test}/select.txt``; cells are separated by tabs.

A line of train is one chat around one utterance: the utterances before it, those after it, their roles such as
``0|1-0-1`` (before, it, after; 1 is the shop), ``1``, fifty candidates of which the first is the utterance itself, and
``1|0|0...`` for which candidates are. It is read as a dialogue, since the method needs what comes before the utterance
and what comes after; the other candidates are utterances of the same role from other chats, which training draws anew.

A line of sts.txt is a score from 1 to 5 and two sentences. A line of select.txt is an id, a sentence, its topic (empty
for E-commerce), and the ids of the lines that are relevant and of others to rank below them. All sentences of a
select.txt are held in memory to resolve the ids; an id that is listed twice counts once.
"""

from collections.abc import Callable, Iterator
from itertools import chain
from math import isfinite

from ...dialogue import Dialogue, Turn
from ...errors import InputError
from ..corpus import Corpus, Files, Reading, Records, Source
from ..examples import RetrievalQuery, SentencePair
from ..records import Raw
from ..source.parsing import numbered, split_files, text_lines

_SOURCE = "https://github.com/wangruicn/DialogueCSE"
_QUERIES: Files = {split: (f"{split}/select.txt",) for split in ("dev", "test")}
_PAIRS: Files = {split: (f"{split}/sts.txt",) for split in ("dev", "test")}
_TRAIN: Files = {"train": ("train/train_data.txt*",)}
_ROLES = {"0": "user", "1": "assistant"}


def _cells(line: str, expected: int) -> list[str]:
    cells = line.split("\t")
    if len(cells) != expected:
        raise InputError(f"got {len(cells)} cells, expected {expected} with tabs between them; repair the line")
    return cells


def _dialogue(identifier: str, line: str) -> Dialogue:
    before, after, codes, _, candidates, labels = _cells(line, 6)
    first, *_ = candidates.split("|")
    if labels.split("|")[0] != "1":
        raise InputError(f"field labels: got {labels[:20]!r}, expected 1 for the first candidate; repair the line")
    texts = (before.split("|"), [first], after.split("|"))
    roles = [part.split("|") for part in codes.split("-")]
    if list(map(len, roles)) != list(map(len, texts)):
        expected = f"one for each of {sum(map(len, texts))} utterances in 3 parts"
        raise InputError(f"field roles: got {codes[:40]!r}, expected {expected}; repair the line")
    said = zip(chain.from_iterable(roles), chain.from_iterable(texts), strict=True)
    return Dialogue(tuple(Turn(_role(code), text) for code, text in said), identifier)


def _role(code: str) -> str:
    if code not in _ROLES:
        raise InputError(f"field roles: got {code[:20]!r}, expected {' or '.join(_ROLES)}; repair the line")
    return _ROLES[code]


def _pair(identifier: str, line: str) -> SentencePair:
    score, first, second = _cells(line, 3)
    return SentencePair(first, second, score=_score(score), id=identifier)


def _score(text: str) -> float:
    try:
        score = float(text)
    except ValueError:
        score = float("nan")
    if not isfinite(score):
        raise InputError(f"field score: got {text[:20]!r}, expected a number; repair the line")
    return score


def _queries(source: Source, split: str) -> Records:
    (pattern,) = _QUERIES[split]
    sentences: dict[str, str] = {}
    for _, line in text_lines(source, pattern):
        identifier, _, rest = line.partition("\t")
        sentences.setdefault(identifier, rest.partition("\t")[0])
    for place, line in text_lines(source, pattern):
        yield place, (split, line, sentences)


def _query(split: str, line: str, sentences: dict[str, str]) -> RetrievalQuery:
    identifier, text, topic, relevant, other = _cells(line, 5)
    found = (_resolved("relevant", relevant, sentences), _resolved("other", other, sentences))
    return RetrievalQuery(text, *found, label=topic, id=f"{split}/{identifier[:40]}")


def _resolved(field: str, listed: str, sentences: dict[str, str]) -> tuple[str, ...]:
    identifiers = dict.fromkeys(listed.split(",") if listed else ())
    for identifier in identifiers:
        if identifier not in sentences:
            raise InputError(f"field {field}: got {identifier[:20]!r}, expected the id of a line; repair the line")
    return tuple(sentences[identifier] for identifier in identifiers)


_SETS: dict[str, tuple[str, Files, Reading, Callable[..., Raw]]] = {
    "dialogues": ("dialogues", _TRAIN, numbered(split_files(text_lines, _TRAIN)), _dialogue),
    "sts": ("sentence-pairs", _PAIRS, numbered(split_files(text_lines, _PAIRS)), _pair),
    "retrieval": ("retrieval", _QUERIES, _queries, _query),
}
_EXTRACTS = {"ecommerce_dialogues": "a sample of 1,000 lines", "ecommerce_sts": "dev", "ecommerce_retrieval": "dev"}


def _corpora(shop: str, folder: str, licence: str, terms: str) -> Iterator[Corpus]:
    for ending, (kind, files, records, convert) in _SETS.items():
        name = f"{shop}_{ending}"
        real, extract = name != "jddc_dialogues", _EXTRACTS.get(name, "")
        yield Corpus(name, files, records, convert, _SOURCE, licence, terms, kind, folder, real, extract=extract)


_SHOPS = (("ecommerce", "edc", "none stated", "research"), ("jddc", "jddc", "Apache 2.0", "permissive"))
CORPORA = tuple(corpus for shop in _SHOPS for corpus in _corpora(*shop))
