"""Doc2Dial: dialogues between a user and an agent who answers from a web page of a public service.

Layout: ``*dial_train.json``, ``*dial_validation.json`` and ``*dial_finaltest.json``, as named in the full release; the
test file of https://github.com/doc2dial/sharedtask-dialdoc2021 holds dialogues that stop at an arbitrary turn.

One role may speak several turns on end; they stay apart.
"""

from ...dialogue import Dialogue, Turn
from ...errors import InputError
from ..corpus import Corpus, Records, Source
from ..records import Raw, each_of, field, one_of, optional
from ..source.parsing import json_members

_SOURCE, _LICENCE = "https://doc2dial.github.io", "CC BY 3.0 (dataset card; the repositories state none)"
_FILES = {"train": ("*dial_train.json",), "dev": ("*dial_validation.json",), "test": ("*dial_finaltest.json",)}
_EXTRACT = "the test dialogues of the shared task"
_ROLES = {"user": "user", "agent": "assistant"}


def _records(source: Source, split: str) -> Records:
    for place, (domain, documents) in json_members(source, _FILES[split][0], "dial_data"):
        try:
            for document in field({domain: documents}, domain, dict):
                for index, raw in enumerate(field(documents, document, list)):
                    yield f"{place}: document {document!r} record {index}", raw
        except InputError as error:
            raise InputError(f"{place}: {error}") from None


def _dialogue(raw: Raw) -> Dialogue:
    return Dialogue(each_of(raw, "turns", _turn), field(raw, "dial_id", str), (field(raw, "domain", str),))


def _turn(raw: Raw) -> Turn:
    role = _ROLES[one_of(raw, "role", _ROLES)]
    act = optional(raw, "da", str)  # the shared task's files blank it or leave it out
    return Turn(role, field(raw, "utterance", str), (act,) if act else ())


CORPORA = (Corpus("doc2dial", _FILES, _records, _dialogue, _SOURCE, _LICENCE, "permissive", extract=_EXTRACT),)
