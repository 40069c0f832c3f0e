"""HDSA: MultiWOZ 2.0 in lower case and tokenised, with the acts of the system as its authors' program predicts them.

Layout: ``{train,val,test}.json``, lists of ``{"file": id, "info": [exchange, ...]}``. A split that lacks its file is
read from ``{dev,test}.tsv``, an exchange per line, and ``{val,test}_reference_nondelex.json``, the system's replies.

An exchange in JSON has what both say (``user_orig``, ``sys_orig``), what the user wants so far (``BS``), and the acts
of the reply, such as ``hotel-inform-area``. The user informs of what is new in the belief state since the last one.

A line of the table has the id, the number of the exchange, a database row, the system's last utterance, the user's
utterance and a vector of 44 zeros and ones: which domains, functions and arguments occur in the acts of the reply that
follows. The three are not tied to each other, and users have no labels. The reply itself is in the next line; the last
one is in the reference, of which the last replies are kept in memory. Ids are MultiWOZ's in both.
"""

import reprlib
from functools import lru_cache

from ...dialogue import Dialogue, Turn
from ...errors import InputError
from ..corpus import Corpus, Records, Source
from ..records import Raw, Slots, convert_each, each_of, field, flattened, names, strings
from ..source.files import MissingFilesError
from ..source.parsing import grouped, json_list, json_members, parse_json, table_rows
from .multiwoz import NO_DOMAIN, NO_SLOT, identifier, value_of

_SOURCE, _EXTRACT = "https://github.com/wenhuchen/HDSA-Dialog", "dev and test, as tables"
_FILES = {
    "train": ("train.json",),
    "dev": ("val.json", "dev.tsv", "val_reference_nondelex.json"),
    "test": ("test.json", "test.tsv", "test_reference_nondelex.json"),
}
_COLUMNS = ("dialogue_id", "turn", "database", "last", "user", "acts")
_DOMAINS = ("restaurant", "hotel", "attraction", "train", "taxi", "hospital", "police", "bus", "booking", "general")
_FUNCTIONS = ("inform", "request", "recommend", "book", "select", "sorry", "none")
_ARGUMENTS = (
    *("pricerange", "id", "address", "postcode", "type", "food", "phone", "name", "area", "choice", "price", "time"),
    *("reference", "none", "parking", "stars", "internet", "day", "arriveby", "departure", "destination", "leaveat"),
    *("duration", "trainid", "people", "department", "stay"),
)
_KINDS = (_DOMAINS, _FUNCTIONS, _ARGUMENTS)
_NAMES = tuple((kind, name) for kind in _KINDS for name in kind)  # what the 44 places of a vector stand for


def _records(source: Source, split: str) -> Records:
    parsed, *table = _FILES[split]
    return _table_records(source, *table) if table and not source.holds(parsed) else json_list(source, parsed)


def _table_records(source: Source, table: str, reference: str) -> Records:
    replies = json_members(source, reference)
    last = {key: found[-1:] if isinstance(found, list) else found for _, (key, found) in replies}
    if not last:
        raise MissingFilesError(f"{source.path}: {table} needs {reference} too, for the last replies; add the file")
    rows = table_rows(source, table, delimiter="\t", quoted=False, names=_COLUMNS)
    for place, dialogue in grouped(rows, lambda row: row[1][_COLUMNS[0]]):
        yield place, (dialogue, last.get(dialogue[0][_COLUMNS[0]]))


def _dialogue(found: Raw, *last: Raw) -> Dialogue:
    return _table_dialogue(found, *last) if last else _json_dialogue(found)


def _json_dialogue(raw: Raw) -> Dialogue:
    before: set[tuple[str, str, str]] = set()
    topics: set[str] = set()

    def exchange(both: Raw) -> tuple[Turn, Turn]:
        nonlocal before
        state = state_of(field(both, "BS", dict))
        new = [(slot, value) for domain, slot, value in state if (domain, slot, value) not in before]
        before = set(state)
        acts, slots, domains = acts_of(field(both, "act", dict))
        topics.update(domains)
        user = Turn("user", field(both, "user_orig", str), ("inform",) if new else (), tuple(new))
        return user, Turn("assistant", field(both, "sys_orig", str), acts, slots)

    return Dialogue(flattened(each_of(raw, "info", exchange)), identifier(field(raw, "file", str)), _topics(topics))


def state_of(raw: dict[str, Raw]) -> list[tuple[str, str, str]]:
    """Reads what the user wants so far: domains, slots and values."""
    found = []
    for domain in raw:
        for pair in field(raw, domain, list):
            slot, value = strings(pair, 2)
            found.append((domain, slot.lower(), value))
    return found


def acts_of(raw: dict[str, Raw]) -> tuple[tuple[str, ...], Slots, list[str]]:
    """Reads what the system does, such as ``{"hotel-inform-area": "north"}``: acts, slots and domains."""
    acts, slots, domains = [], [], []
    for name in raw:
        value = field(raw, name, str)
        domain, _, rest = name.partition("-")
        act, _, slot = rest.partition("-")
        domains.append(domain)
        if act not in ("", NO_SLOT):
            acts.append(act)
        if slot not in ("", NO_SLOT):
            slots.append((slot, value_of(value)))
    return tuple(dict.fromkeys(acts)), tuple(slots), domains


def _table_dialogue(rows: list[dict[str, str]], last: Raw) -> Dialogue:
    replies = [*(field(row, "last", str) for row in rows[1:]), *names({"reference": last}, "reference")]
    if len(replies) != len(rows):
        raise InputError("field reference: got no reply, expected the last one of the dialogue; get the files again")
    topics: set[str] = set()

    def exchange(number: int, row: dict[str, str], reply: str) -> tuple[Turn, Turn]:
        if field(row, "turn", str) != str(number):
            raise InputError(f"field turn: got {reprlib.repr(row['turn'])}, expected {number}; get the file again")
        if "" in row:
            raise InputError(f"got {reprlib.repr(row[''])} after the last column, expected 6 cells; repair the line")
        domains, acts, slots = _vector(field(row, "acts", str))
        topics.update(domains)
        return Turn("user", field(row, "user", str)), Turn("assistant", reply, acts, slots)

    exchanges = convert_each(zip(range(len(rows)), rows, replies, strict=True), "turns", exchange)
    return Dialogue(flattened(exchanges), identifier(rows[0]["dialogue_id"]), _topics(topics))


@lru_cache(maxsize=1 << 14)  # a few thousand vectors come again and again
def _vector(text: str) -> tuple[tuple[str, ...], tuple[str, ...], Slots]:
    """Reads the vector of a reply as the names of its domains, acts and slots."""
    vector = parse_json("field acts", text.encode(), "repair the line")
    if not isinstance(vector, list) or len(vector) != len(_NAMES) or not all(bit in (0, 1) for bit in vector):
        raise InputError(f"field acts: expected a list of {len(_NAMES)} zeros and ones; repair the line")
    said = [(kind, name) for (kind, name), bit in zip(_NAMES, vector, strict=True) if bit and name != NO_SLOT]
    domains, acts, slots = (tuple(name for kind, name in said if kind is known) for known in _KINDS)
    return domains, acts, tuple((slot, "") for slot in slots)


def _topics(domains: set[str]) -> tuple[str, ...]:
    return tuple(sorted(domains.difference(NO_DOMAIN)))


CORPORA = (Corpus("hdsa", _FILES, _records, _dialogue, _SOURCE, "MIT", "permissive", extract=_EXTRACT),)
