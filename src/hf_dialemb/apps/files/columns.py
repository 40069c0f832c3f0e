"""Names of fields: what a person says of them, and how systems and languages call them."""

import re
import tomllib
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any

from ...errors import InputError, unknown_name

SIDES = ("user", "assistant")
"""Fields of a row that holds what both sides said, instead of role and content."""
_NEEDED = ("id", "role", "content")
_FIELDS = (*_NEEDED, "domain", "dialogue_act", "name", "time", "turn", *SIDES, "messages")
_FILLERS = re.compile(
    "of|the|de[rs]?|die|das|du|l|la|les?|el|[dy]|d[oai]|del|dal|della|et?|and|und"
)
SAY = (
    "say which with --columns 'id=NAME,role=NAME,content=NAME', or with numbers, as in 'id=1', "
    "if there is no header; or, where a row has what both sides said, --columns "
    "'user=NAME,assistant=NAME'"
)


def pairs_of(
    option: str, text: str, expected: str, *, at_last: bool = False
) -> list[tuple[str, str]]:
    """Return the pairs of an option, parted at their first equals sign, or the last.

    Raises:
        InputError: One is no pair, or its name came before.
    """
    pairs: dict[str, tuple[str, str]] = {}
    for pair in text.split(","):
        parts = pair.rpartition("=") if at_last else pair.partition("=")
        name, _, value = map(str.strip, parts)
        if not name or not value or name.casefold() in pairs:
            raise InputError(f"{option}: got {pair.strip()!r}, expected {expected}")
        pairs[name.casefold()] = (name, value)
    return list(pairs.values())


def parse_columns(text: str | None) -> dict[str, str]:
    """Parse the user's description of fields: columns of a table, or paths in records."""
    expected = "FIELD=NAME, each once, as in 'id=call,role=speaker'"
    columns = dict(pairs_of("columns", text, expected)) if text else {}
    for name in columns.keys() - {*_FIELDS}:
        raise unknown_name("field in columns", name, _FIELDS)
    is_wide = not columns.keys().isdisjoint(SIDES)
    needed = set(SIDES if is_wide else _NEEDED)
    numbers = sum(map(is_number, columns.values()))
    if (is_wide or numbers) and (needed - columns.keys() or numbers not in (0, len(columns))):
        raise InputError(
            f"columns: got {text!r}, expected user and assistant together, or numbers for id, role "
            "and content and no name beside them"
        )
    return columns


def is_number(name: str) -> bool:
    """Return whether a column is given by its number."""
    return name.isascii() and name.isdecimal() and len(name) < 10


@cache
def name_rank(kind: str, path: str) -> int | None:
    """Return how well the name of a field fits, 0 the best; None if it does not.

    Of ``author/name``, the name alone counts, and with what it is in.
    """
    steps = path.split("/")
    words = [_folded(" ".join(steps[-size:])) for size in range(1, min(3, len(steps)) + 1)]
    for rank, names in enumerate(_headers()[kind]):
        if any(map(names.fullmatch, words)):
            return rank
    return None


@cache
def word_list(name: str) -> list[str]:
    """Return a list of words of ``headers.toml``, in its order."""
    return list(_table()["lists"][name].split())


@cache
def _table() -> dict[str, Any]:
    text = Path(__file__).with_name("headers.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def _headers() -> dict[str, list[re.Pattern[str]]]:
    """Return the patterns of headers.

    A word in capitals stands for a list of words, and may be joined by s or n.
    """
    table = _table()
    groups = {
        name: f"(?:{'|'.join(map(_folded, words.split()))})"
        for name, words in table["words"].items()
    }

    def pattern(text: str) -> re.Pattern[str]:
        return re.compile(
            re.sub("[A-Z]+", lambda match: groups[match[0]], text.replace(" ", "(?:s|n|en)?"))
        )

    return {name: list(map(pattern, texts)) for name, texts in table["fields"].items()}


def _folded(name: str) -> str:
    """Return a header without accents, case, blanks, articles and what stands in brackets."""
    spaced = re.sub(r"(?<=[a-zß-ÿ])(?=[A-Z])|\([^)]*\)", " ", name)
    marks = unicodedata.normalize("NFKD", spaced.replace("°", "o").casefold())
    words = re.findall(
        r"[^\W_]+", "".join(mark for mark in marks if not unicodedata.combining(mark))
    )
    return "".join([word for word in words if not _FILLERS.fullmatch(word)] or words)
