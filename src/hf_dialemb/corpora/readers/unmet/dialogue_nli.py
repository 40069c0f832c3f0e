"""Dialogue NLI: pairs of sentences from chats about oneself that agree, are neutral or contradict each other.

Layout: ``dialogue_nli_{train,dev,test}.jsonl``, which are JSON lists in spite of their name; one object per line does
as well. The label is ``positive``, ``neutral`` or ``negative``. The verified part of test is not read by itself.
"""

from ...corpus import SPLITS, Corpus, Records, Source
from ...examples import SentencePair
from ...records import Raw, field
from ...source.parsing import json_lines, json_list, numbered

_SOURCE = "https://wellecks.github.io/dialogue_nli/"
_FILES = {split: (f"dialogue_nli_{split}.jsonl",) for split in SPLITS}
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@numbered
def _records(source: Source, split: str) -> Records:
    (pattern,) = _FILES[split]
    starts = [stream.peek(64).removeprefix(_BYTE_ORDER_MARK).lstrip()[:1] for _, stream in source.files(pattern)]
    return (json_list if starts == [b"["] else json_lines)(source, pattern)


def _pair(identifier: str, raw: Raw) -> SentencePair:
    sentences = field(raw, "sentence1", str), field(raw, "sentence2", str)
    return SentencePair(*sentences, label=field(raw, "label", str), id=identifier)


_READING = (_FILES, _records, _pair)
CORPORA = (Corpus("dialogue_nli", *_READING, _SOURCE, "none stated", "research", "sentence-pairs", real=False),)
