"""CLINC150: utterances to an assistant, with 150 intents in ten domains, and utterances that are out of its scope.

Source: https://github.com/clinc/oos-eval. Licence: CC BY 3.0.
Layout: ``data_full.json``, an object of lists of pairs (text, intent), and ``domains.json``, from each domain to its
intents.

Each split holds its utterances in scope, and after them those out of scope: their intent is ``oos``, their ids begin
with the split and ``oos``, and they have no domain.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...models.dialogue import Dialogue, Turn
from ...models.errors import InputError
from ..corpus import Corpus
from ..parsing import read_json
from ..records import field, names
from ..source import MissingFilesError, Source

_DATA, _DOMAINS = "data_full.json", "domains.json"
_LISTS = {"train": "train", "dev": "val", "test": "test"}
_FILES = {split: (_DATA, _DOMAINS) for split in _LISTS}
_OUT_OF_SCOPE = "oos"

_Record = tuple[str, Any, dict[str, str]]


def _records(source: Source, split: str) -> Iterator[tuple[str, _Record]]:
    domains_place, domains = _object(source, _DOMAINS)
    data_place, data = _object(source, _DATA)
    place = domains_place
    try:
        domain_of = {intent: domain for domain in domains for intent in names(domains, domain)}
        place = data_place
        listed = (field(data, _LISTS[split], list), field(data, f"{_OUT_OF_SCOPE}_{_LISTS[split]}", list))
    except InputError as error:
        raise InputError(f"{place}: {error}") from None
    for prefix, utterances in zip((split, f"{split}/{_OUT_OF_SCOPE}"), listed, strict=True):
        for number, raw in enumerate(utterances):
            yield f"{place}: {prefix} record {number}", (f"{prefix}/{number}", raw, domain_of)


def _object(source: Source, pattern: str) -> tuple[str, dict[str, Any]]:
    for name, stream in source.files(pattern):
        found = read_json(name, stream)
        if not isinstance(found, dict):
            raise InputError(f"{name}: got {type(found).__name__}, expected an object; get the file again")
        return name, found
    raise MissingFilesError(f"{source.path}: got no {pattern}, expected it beside the others; add the file")


def _dialogue(record: _Record) -> Dialogue:
    identifier, raw, domain_of = record
    pair = names({"pair": raw}, "pair")
    if len(pair) != 2:
        raise InputError(f"got a list of {len(pair)}, expected a pair of text and intent; repair the record")
    text, intent = pair
    if intent != _OUT_OF_SCOPE and intent not in domain_of:
        raise InputError(f"field intent: got {intent[:40]!r}, which is in none of {_DOMAINS}; repair the record")
    domains = (domain_of[intent],) if intent in domain_of else ()
    return Dialogue((Turn("user", text, intents=(intent,)),), identifier, domains)


CORPORA = (
    Corpus(
        "clinc150",
        _FILES,
        _records,
        _dialogue,
        source="https://github.com/clinc/oos-eval",
        licence="CC BY 3.0",
        terms="permissive",
        kind="utterances",
    ),
)
