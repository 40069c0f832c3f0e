"""SNIPS: utterances to a voice assistant, with seven intents and their slots.

Layout: in 2017-06-custom-intent-engines, ``<intent>/train_<intent>_full.json`` and ``validate_<intent>.json``, an
object from the intent to its utterances, each a list of pieces of text, some of which name the slot that they fill.

What the files call validate is what others test on, and is the split test here; there is no dev split (but see the
corpus few_shot_snips). The smaller ``train_<intent>.json`` are not read. Blanks around an
utterance are left out. One file spells a character beyond U+FFFF as two surrogates, which is no valid UTF-8. A file is
held in memory while it is read.
"""

import re

from ...dialogue import Dialogue, Turn
from ...errors import InputError
from ..corpus import Corpus, Records, Source
from ..records import Raw, each_of, field, optional
from ..source.parsing import parse_json

_SOURCE = "https://github.com/sonos/nlu-benchmark"
_FILES = {"train": ("train_*_full.json",), "test": ("validate_*.json",)}
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf]")


def _records(source: Source, split: str) -> Records:
    for name, stream in source.files(_FILES[split][0]):
        found = parse_json(name, _repaired(stream.read()))
        if not isinstance(found, dict) or len(found) != 1:
            raise InputError(f"{name}: got no object with one intent, expected that; get the file again")
        ((intent, utterances),) = found.items()
        if not isinstance(utterances, list):
            raise InputError(f"{name}: got {type(utterances).__name__}, expected a list of utterances; get it again")
        for number, raw in enumerate(utterances):
            yield f"{name}: record {number}", (f"{split}/{intent}/{number}", intent, raw)


def _repaired(content: bytes) -> bytes:
    if not _SURROGATE.search(content):
        return content
    try:
        return content.decode("utf-8", "surrogatepass").encode("utf-16", "surrogatepass").decode("utf-16").encode()
    except UnicodeError:
        return content


def _dialogue(identifier: str, intent: str, raw: Raw) -> Dialogue:
    pieces = each_of(raw, "data", lambda piece: (field(piece, "text", str), optional(piece, "entity", str)))
    text = "".join(text for text, _ in pieces).strip()
    slots = tuple((slot.lower(), text.strip()) for text, slot in pieces if slot)
    return Dialogue((Turn("user", text, slots=slots, intents=(intent,)),), identifier)


CORPORA = (Corpus("snips", _FILES, _records, _dialogue, _SOURCE, "CC0 1.0", "permissive", kind="utterances"),)
