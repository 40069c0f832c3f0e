"""CLINC150: utterances to an assistant, with 150 intents in ten domains, and utterances that are out of its scope.

Layout: ``data_full.json``, an object of lists of pairs (text, intent), and ``domains.json``, from each domain to its
intents.

Each split holds its utterances in scope, and after them those out of scope: their intent is ``oos``, their ids begin
with the split and ``oos``, and they have no domain.
"""

from ...dialogue import Dialogue, Turn
from ...errors import InputError
from ..corpus import Corpus, Records, Source
from ..records import Raw, names
from ..source.files import MissingFilesError
from ..source.parsing import json_list, json_members

_SOURCE = "https://github.com/clinc/oos-eval"
_DATA, _DOMAINS = "data_full.json", "domains.json"
_LISTS = {"train": "train", "dev": "val", "test": "test"}
_FILES = dict.fromkeys(_LISTS, (_DATA, _DOMAINS))
_OUT_OF_SCOPE = "oos"


def _records(source: Source, split: str) -> Records:
    domain_of = _domains(source)
    listed = _LISTS[split]
    for prefix, name in ((split, listed), (f"{split}/{_OUT_OF_SCOPE}", f"{_OUT_OF_SCOPE}_{listed}")):
        for number, (place, raw) in enumerate(json_list(source, _DATA, name)):
            file = place.rpartition(": ")[0]
            yield f"{file}: {prefix} record {number}", (f"{prefix}/{number}", raw, domain_of)


def _domains(source: Source) -> dict[str, str]:
    """From each intent to its domain."""
    found = {}
    for place, (domain, intents) in json_members(source, _DOMAINS):
        try:
            found.update(dict.fromkeys(names({domain: intents}, domain), domain))
        except InputError as error:
            raise InputError(f"{place}: {error}") from None
    if not found and not source.holds(_DOMAINS):
        raise MissingFilesError(f"{source.path}: got no {_DOMAINS}, expected it beside the others; add the file")
    return found


def _dialogue(identifier: str, raw: Raw, domain_of: dict[str, str]) -> Dialogue:
    pair = names({"pair": raw}, "pair")
    if len(pair) != 2:
        raise InputError(f"got a list of {len(pair)}, expected a pair of text and intent; repair the record")
    text, intent = pair
    if intent != _OUT_OF_SCOPE and intent not in domain_of:
        raise InputError(f"field intent: got {intent[:40]!r}, which is in none of {_DOMAINS}; repair the record")
    domains = (domain_of[intent],) if intent in domain_of else ()
    return Dialogue((Turn("user", text, intents=(intent,)),), identifier, domains)


CORPORA = (Corpus("clinc150", _FILES, _records, _dialogue, _SOURCE, "CC BY 3.0", "permissive", kind="utterances"),)
