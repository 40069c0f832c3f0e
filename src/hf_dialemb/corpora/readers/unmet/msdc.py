"""Microsoft Dialogue Challenge (MS-DC): booking films, restaurants and taxis, with acts and slots.

Layout: ``{movie,restaurant,taxi}_all.tsv``, a row per message and a cell per act, such as ``inform(city=Oslo;date)``.
No cell is quoted, but spreadsheets left quotation marks around some texts; these are taken off.

An act that gives a value informs as well (the rule of Dialog2Flow), an argument that repeats the act's name is no
slot, and a cell that is no act is passed over. The label of a dialogue is its file's domain. There is no official
split: a hash of the id, which is the domain and the session, decides. The rows of a session stand together.
"""

import re
from collections.abc import Iterable, Iterator

from ....dialogue import Dialogue, Turn
from ....errors import InputError
from ...corpus import SPLITS, Corpus, Records, Source
from ...records import Raw, Slots, convert_each, field, hashed_split, one_of
from ...source.parsing import grouped, table_rows

_SOURCE, _LICENCE = "https://github.com/xiul-msr/e2e_dialog_challenge", "terms of its own; may not be passed on"
_MESSAGES = "*_all.tsv"
_SESSION, _NUMBER, _SPEAKER, _TEXT = "session.ID", "Message.ID", "Message.From", "Message.Text"
_COLUMNS = (_SESSION, _NUMBER, "Message.Timestamp", _SPEAKER, _TEXT)
_ROLES = {"user": "user", "agent": "assistant"}
_ACT = re.compile(r"\W*(\w+)\s*\((.*)", re.DOTALL)
_SLOT = re.compile(r"\w+")
_MOST_DIGITS = 18


def labels_of(cells: Iterable[str]) -> tuple[tuple[str, ...], Slots]:
    """Reads the acts of a message."""
    acts: dict[str, None] = {}
    slots: dict[tuple[str, str], None] = {}
    for cell in cells:
        match = _ACT.match(cell)
        if not match:
            continue
        act = match[1].lower()
        acts[act] = None
        pairs = [pair for pair in _arguments(match[2]) if pair[0] != act]
        slots.update(dict.fromkeys(pairs))
        if any(value for _, value in pairs):
            acts["inform"] = None
    return tuple(acts), tuple(slots)


def _arguments(text: str) -> Iterator[tuple[str, str]]:
    for argument in text.rstrip(' "').removesuffix(")").split(";"):
        name, _, value = (part.strip() for part in argument.partition("="))
        if _SLOT.fullmatch(name):
            values = value[1:-1].split("#") if value.startswith("{") and value.endswith("}") else [value]
            yield from ((name.lower(), each.strip()) for each in values)


def _records(source: Source, split: str) -> Records:
    rows = table_rows(source, _MESSAGES, delimiter="\t", quoted=False, names=_COLUMNS)
    for place, session in grouped(rows, lambda row: (row[0].rpartition(":")[0], row[1][_SESSION].strip())):
        domain = place.rpartition(":")[0].replace(":", "/").rpartition("/")[2].partition("_")[0]
        identifier = session[0][_SESSION].strip()
        if identifier != _SESSION and split == hashed_split(f"{domain}/{identifier}"):
            yield place, (domain, identifier, session)


def _dialogue(domain: str, identifier: str, rows: list[dict[str, str]]) -> Dialogue:
    if not identifier:
        raise InputError(f"field {_SESSION}: got an empty cell, expected the session's number; repair the row")
    turns = convert_each(sorted(rows, key=_number), "messages", _turn)
    return Dialogue(turns, f"{domain}/{identifier}", (domain,))


def _number(row: dict[str, str]) -> int:
    cell = field(row, _NUMBER, str).strip()
    if not cell.isdecimal() or len(cell) > _MOST_DIGITS:
        raise InputError(f"field {_NUMBER}: got {cell[:20]!r}, expected a whole number; repair the row")
    return int(cell)


def _turn(row: Raw) -> Turn:
    role = _ROLES[one_of(row, _SPEAKER, _ROLES)]
    text = field(row, _TEXT, str).strip()
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = text[1:-1].replace('""', '"')
    return Turn(role, text, *labels_of(row.get("", "").split("\t")))


_FILES = dict.fromkeys(SPLITS, (_MESSAGES,))
CORPORA = (Corpus("msdc", _FILES, _records, _dialogue, _SOURCE, _LICENCE, "research", real=False),)
