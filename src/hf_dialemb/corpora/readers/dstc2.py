"""DSTC2: telephone calls to a system that finds restaurants in Cambridge, as transcripts and as bAbI dialogue task 6.

Layout: ``data.json``, the list of all 3,235 calls, each with its split, and
``dialog-babi-task6-dstc2-{trn,dev,tst}.txt``. Neither has labels of turns; those are in the corpus ``dstc2_clean``.

Transcripts: the system's greeting is not in the file, so the user begins. Everything else is kept, marks of the
transcribers such as ``noise`` and ``sil`` too, and the first turns that only echo the greeting.

Task 6: a line ``<number> user<TAB>system`` is an exchange, and a line without a tab is a fact of the knowledge base,
which nobody says. A user who says ``<SILENCE>`` or nothing is silent, and ``api_call`` is a query, not a reply; most
silences only stand beside the greeting or the reply after a query. That leaves 23,076, 6,357 and 18,800 of the 28,808,
8,318 and 22,474 halves of the exchanges. The splits of the same calls differ from those of the transcripts.
"""

from ...dialogue import Dialogue, Turn
from ...errors import InputError
from ..corpus import SPLITS, Corpus, Records, Source
from ..records import Raw, convert_each, each_of, field, flattened, one_of
from ..source.parsing import grouped, json_list, named_by, numbered, out_of_all, text_lines

_SOURCE, _BABI_SOURCE = "https://github.com/zqwerty/ToDDAPT", "https://github.com/voicy-ai/DialogStateTracking"
_TRANSCRIPTS = "data.json"
_SPLITS = {"train": "train", "val": "dev", "test": "test"}
_RECORDS = out_of_all(json_list, _TRANSCRIPTS, named_by("data_split", _SPLITS))
_ROLES = {"user": "user", "system": "assistant"}
_DOMAINS = ("restaurant",)

_PARTS = {"train": "trn", "dev": "dev", "test": "tst"}
_BABI_FILES = {split: (f"dialog-babi-task6-dstc2-{part}.txt",) for split, part in _PARTS.items()}
_SILENCE, _QUERY = "<SILENCE>", "api_call"


def _dialogue(raw: Raw) -> Dialogue:
    one_of(raw, "data_split", _SPLITS)
    return Dialogue(each_of(raw, "turns", _turn), field(raw, "dialogue_id", str), _DOMAINS)


def _turn(raw: Raw) -> Turn:
    return Turn(_ROLES[one_of(raw, "speaker", _ROLES)], field(raw, "utterance", str))


@numbered
def _babi_records(source: Source, split: str) -> Records:
    blocks = grouped(text_lines(source, _BABI_FILES[split][0]), lambda line: bool(line[1].strip()))
    return ((place, lines) for place, lines in blocks if lines[0].strip())


def _babi_dialogue(identifier: str, lines: list[str]) -> Dialogue:
    exchanges = convert_each(enumerate(lines, start=1), "lines", _exchange)
    return Dialogue(flattened(exchanges), identifier, _DOMAINS)


def _exchange(expected: int, line: str) -> list[Turn]:
    number, _, content = line.partition(" ")
    if number != str(expected):
        raise InputError(f"got {line[:40]!r}, expected a line that begins with {expected}; get the file again")
    if "\t" not in content:
        return []
    user, _, system = (part.strip() for part in content.partition("\t"))
    turns = [Turn("user", user)] if user not in ("", _SILENCE) else []
    return turns if system.partition(" ")[0] == _QUERY else [*turns, Turn("assistant", system)]


_FILES = dict.fromkeys(SPLITS, (_TRANSCRIPTS,))
_TERMS = ("none stated", "research")
CORPORA = (
    Corpus("dstc2", _FILES, _RECORDS, _dialogue, _SOURCE, *_TERMS, extract="transcripts without the labels"),
    Corpus("dstc2_babi", _BABI_FILES, _babi_records, _babi_dialogue, _BABI_SOURCE, *_TERMS, folder="dstc2"),
)
