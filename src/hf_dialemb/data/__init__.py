"""Corpora.

Published dialogue corpora in their original formats, your own files, and objects, as `Dialogue`
objects.
"""

from .corpus import CORPORA, get_corpus
from .jsonl import read_jsonl, write_jsonl
from .loading import iterate_dialogues, load_dialogues
from .published import find_source, iterate_examples, load_examples, single_domain
from .source import MissingFilesError, Source

__all__ = [
    "CORPORA",
    "MissingFilesError",
    "Source",
    "find_source",
    "get_corpus",
    "iterate_dialogues",
    "iterate_examples",
    "load_dialogues",
    "load_examples",
    "read_jsonl",
    "single_domain",
    "write_jsonl",
]
