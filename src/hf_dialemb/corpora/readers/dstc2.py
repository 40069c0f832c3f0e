"""DSTC2: telephone calls to a system that finds restaurants in Cambridge, as transcripts and as bAbI dialogue task 6.

Sources: https://github.com/zqwerty/ToDDAPT (transcripts) and https://github.com/voicy-ai/DialogStateTracking (task 6).
Licence: none stated there.
Layout: ``data.json``, the list of all 3,235 calls, each with its split, and
``dialog-babi-task6-dstc2-{trn,dev,tst}.txt``. Neither has labels of turns; those are in the corpus ``dstc2_clean``.

Transcripts: the system's greeting is not in the file, so the user begins. Everything else is kept, marks of the
transcribers such as ``noise`` and ``sil`` too, and the first turns that only echo the greeting.

Task 6: a line ``<number> user<TAB>system`` is an exchange, and a line without a tab is a fact of the knowledge base,
which nobody says. A user who says ``<SILENCE>`` or nothing is silent, and ``api_call`` is a query, not a reply; most
silences only stand beside the greeting or the reply after a query. That leaves 23,076, 6,357 and 18,800 of the 28,808,
8,318 and 22,474 halves of the exchanges. The splits of the same calls differ from those of the transcripts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...models.dialogue import Dialogue, Turn
from ...models.errors import InputError
from ..corpus import Corpus
from ..records import convert_each, field, one_of
from ..source.files import Source
from ..source.parsing import json_list, text_lines

_SPLITS = {"train": "train", "dev": "val", "test": "test"}
_TRANSCRIPTS = "data.json"
_ROLES = {"user": "user", "system": "assistant"}
_DOMAINS = ("restaurant",)

_BABI_FILES = {
    split: (f"dialog-babi-task6-dstc2-{part}.txt",)
    for split, part in {"train": "trn", "dev": "dev", "test": "tst"}.items()
}
_SILENCE, _QUERY = "<SILENCE>", "api_call"


def _records(source: Source, split: str) -> Iterator[tuple[str, Any]]:
    for place, raw in json_list(source, _TRANSCRIPTS):
        part = raw.get("data_split") if isinstance(raw, dict) else None
        # Where a record belongs to no split, every split says so.
        if part == _SPLITS[split] or part not in tuple(_SPLITS.values()):
            yield place, raw


def _dialogue(raw: Any) -> Dialogue:  # noqa: ANN401
    one_of(raw, "data_split", _SPLITS.values())
    turns = convert_each(field(raw, "turns", list), "turns", _turn)
    return Dialogue(turns, field(raw, "dialogue_id", str), _DOMAINS)


def _turn(raw: Any) -> Turn:  # noqa: ANN401
    return Turn(_ROLES[one_of(raw, "speaker", _ROLES)], field(raw, "utterance", str))


def _babi_records(source: Source, split: str) -> Iterator[tuple[str, tuple[str, list[str]]]]:
    start, count = "", 0
    lines: list[str] = []
    for place, line in text_lines(source, _BABI_FILES[split][0]):
        if line.strip():
            start = start if lines else place
            lines.append(line)
        elif lines:
            yield start, (f"{split}/{count}", lines)
            lines, count = [], count + 1
    if lines:
        yield start, (f"{split}/{count}", lines)


def _babi_dialogue(record: tuple[str, list[str]]) -> Dialogue:
    identifier, lines = record
    exchanges = convert_each(list(enumerate(lines, start=1)), "lines", _exchange)
    return Dialogue(tuple(turn for turns in exchanges for turn in turns), identifier, _DOMAINS)


def _exchange(numbered: tuple[int, str]) -> list[Turn]:
    expected, line = numbered
    number, _, content = line.partition(" ")
    if number != str(expected):
        raise InputError(f"got {line[:40]!r}, expected a line that begins with {expected}; get the file again")
    if "\t" not in content:
        return []
    user, _, system = (part.strip() for part in content.partition("\t"))
    turns = []
    if user not in ("", _SILENCE):
        turns.append(Turn("user", user))
    if system.partition(" ")[0] != _QUERY:
        turns.append(Turn("assistant", system))
    return turns


CORPORA = (
    Corpus(
        "dstc2",
        {split: (_TRANSCRIPTS,) for split in _SPLITS},
        _records,
        _dialogue,
        source="https://github.com/zqwerty/ToDDAPT",
        licence="none stated",
        terms="research",
        extract="transcripts without the labels",
    ),
    Corpus(
        "dstc2_babi",
        _BABI_FILES,
        _babi_records,
        _babi_dialogue,
        source="https://github.com/voicy-ai/DialogStateTracking",
        licence="none stated",
        terms="research",
        folder="dstc2",
    ),
)
