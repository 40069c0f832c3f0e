"""The meaning of a table's columns.

Given by the user, or by the names that systems and languages give headers.
"""

import re
import tomllib
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ...errors import InputError, unknown_name
from .findings import Notes
from .roles import WELL_KNOWN

PAIR = ("first", "second")  # fields of a table of sentence pairs: a row is a dialogue of two turns
# fields of a table in wide form, instead of role and content: the texts of both sides
WIDE = ("user", "assistant")
_NEEDED = ("id", "role", "content")
_MORE = ("domain", "dialogue_act", "name", "time", "turn", "hidden")
_FIELDS = (*_NEEDED, *_MORE, *PAIR, *WIDE, "messages")  # the last is of records
_USUAL = re.compile(
    "id|dial(ogue|og)id|conversationid|sessionid|role|speaker|content|text|utterance|message"
)
_WHOLE = 6  # rank among the names of contents from which on a cell may hold a whole conversation
_FILLERS = re.compile(
    "of|the|de[rs]?|die|das|du|l|la|les?|el|[dy]|d[oai]|del|dal|della|et?|and|und"
)
_HOW = (
    "say which with --columns 'id=NAME,role=NAME,content=NAME', or with numbers, as in 'id=1', "
    "if there is no header"
)
Distinct = Callable[[Sequence[int]], tuple[int, ...]]
"""From columns to the numbers of their distinct values in the whole table, and of its rows."""


@dataclass(frozen=True)
class Layout:
    """The places of a table's columns."""

    positions: Mapping[str, int]  # from a field to its column
    width: int  # cells of a row
    header: Sequence[str] = ()
    needs_whole: bool = (
        False  # whether the content is sure only if a cell holds a whole conversation
    )

    def cell(self, cells: Sequence[str], column: str) -> str:
        """Return a field of a row; empty without such a cell."""
        position = self.positions.get(column, -1)
        return cells[position] if 0 <= position < len(cells) else ""

    def names(self, cells: Sequence[str], column: str) -> list[str]:
        """Return the names in a cell, which are separated by ``|``."""
        return [name.strip() for name in self.cell(cells, column).split("|") if name.strip()]

    def title(self, column: str) -> str:
        """Return the name of a field's column without accents, case and blanks.

        Empty without one.
        """
        return (
            _folded(self.header[self.positions[column]])
            if self.header and column in self.positions
            else ""
        )


def parse_columns(text: str | None) -> dict[str, str]:
    """Parse the user's description of a table's columns."""
    columns: dict[str, str] = {}
    for pair in text.split(",") if text else ():
        name, equals, column = (part.strip() for part in pair.partition("="))
        if not equals or not column:
            raise InputError(
                f"columns: got {pair.strip()!r}, expected FIELD=NAME, as in 'id=call,role=speaker'"
            )
        if name not in _FIELDS:
            raise unknown_name("field in columns", name, _FIELDS)
        if name in columns:
            raise InputError(
                f"columns: got {name} twice, expected it once; leave one of the two out"
            )
        columns[name] = column
    pairs, sides = columns.keys() & set(PAIR), columns.keys() & set(WIDE)
    needed = PAIR if pairs else WIDE if sides else _NEEDED
    numbers = list(map(_is_number, columns.values()))
    if pairs and columns.keys() != set(PAIR):
        problem = "first and second together and nothing beside them"
    elif sides and (len(sides) == 1 or {"role", "content"} & columns.keys()):
        problem = "user and assistant together, without role and content"
    elif any(numbers) and not (all(numbers) and columns.keys() >= set(needed)):
        problem = (
            "numbers for id, role and content and no name beside them, or names only; as in "
            "'id=1,role=2,content=3'"
        )
    else:
        return columns
    raise InputError(f"columns: got {text!r}, expected {problem}")


def lay_out(
    place: str, cells: Sequence[str], columns: Mapping[str, str], distinct: Distinct, notes: Notes
) -> Layout:
    """Return the layout by a table's first row.

    Note the columns that were taken by other than the usual names.
    """
    pairs = PAIR[0] in columns
    if pairs:
        columns = {side: columns[name] for side, name in zip(WIDE, PAIR, strict=True)}
    if any(map(_is_number, columns.values())):
        for name, number in columns.items():
            if not 1 <= int(number) <= len(cells):
                raise InputError(
                    f"{place}: columns: got {name}={number}, expected a number from 1 to "
                    f"{len(cells)}, "
                    "as the row has no more cells; correct columns"
                )
        return Layout({name: int(number) - 1 for name, number in columns.items()}, len(cells))
    header = [name.strip() for name in cells]
    for name in columns.values():
        if name not in header:
            raise InputError(f"{place}: {unknown_name('column', name, set(header))}")
    given = {field: header.index(name) for field, name in columns.items()}
    taken = given if pairs else _Search(place, header, given, distinct, notes).taken
    word = _folded(header[taken["content"]]) if "content" in taken.keys() - given else ""
    return Layout(taken, len(cells), header, _headers()["content"][-1].fullmatch(word) is not None)


def no_content(place: str, header: Sequence[str]) -> InputError:
    """Return the error for a table without texts."""
    return InputError(
        f"{place}: got no column for content (found: {', '.join(header[:20])}); {_HOW}; "
        "or, where a row has what both sides said, --columns 'user=NAME,assistant=NAME'"
    )


class _Search:
    """Looks for the columns that are not given.

    Where several fit a field, their values decide, or it is a guess.
    """

    def __init__(
        self,
        place: str,
        header: Sequence[str],
        given: Mapping[str, int],
        distinct: Distinct,
        notes: Notes,
    ) -> None:
        self.place, self.header, self.distinct, self.notes = place, header, distinct, notes
        self.folded, self.taken = list(map(_folded, header)), dict(given)
        if not {"role", "content", *WIDE} & given.keys():
            self._choose_sides()
        is_wide = WIDE[0] in self.taken
        for name in (
            ("id", "time", *_MORE) if is_wide else ("content", "role", "id", "time", *_MORE)
        ):
            self._choose(name)
        if "id" not in self.taken:
            self._choose("channel")
        self._choose_day_and_clock()
        if not is_wide and "content" not in self.taken:
            raise no_content(place, header)
        fields = ("id", *WIDE) if is_wide else _NEEDED
        if not all(
            _USUAL.fullmatch(self.folded[self.taken[name]])
            for name in fields
            if name in self.taken.keys() - given
        ):
            words = (
                f"{name}={header[self.taken[name]]}"
                for name in (*fields, *_MORE)
                if name in self.taken
            )
            notes.add(f"columns: read as --columns '{','.join(words)}'", place)

    def _fitting(self, name: str) -> list[tuple[int, int]]:
        """Return the free columns that a field may have, each behind the rank of its name, the
        surest first.
        """
        free = [index for index in range(len(self.header)) if index not in self.taken.values()]
        ranks = enumerate(_headers()[name])
        return [
            (rank, index)
            for rank, names in ranks
            for index in free
            if names.fullmatch(self.folded[index])
        ]

    def _choose(self, name: str) -> None:
        ranked = [] if name in self.taken else self._fitting(name)
        best = [index for rank, index in ranked if rank == ranked[0][0]]
        if name == "id" and ranked and ranked[0][0] == 2 and "role" in self.taken:
            # a message's id beside the ticket's
            best += [index for rank, index in ranked if rank == 3]
        if len(best) > 1 and name in _NEEDED:
            *counts, rows = self.distinct(best)
            # Each row has its message's id; speakers differ, and texts differ more than what is
            # said of them.
            least, most = {
                "id": (0, rows - 1),
                "role": (2, rows),
                "content": (max(counts) / 2, rows),
            }[name]
            best = [
                index for index, count in zip(best, counts, strict=True) if least <= count <= most
            ] or best
        self.taken |= {name: best[0]} if best else {}
        if len(best) > 1 and name in _NEEDED and not (name == "id" and len(set(counts)) == 1):
            first, other = (self.header[index] for index in best[:2])
            sentence = (
                f"columns: took {first!r} as {name}; {other!r} fits too: for it, say "
                f"--columns '{name}={other}'"
            )
            self.notes.guess(sentence, self.place)

    def _choose_day_and_clock(self) -> None:
        """Take a day and a time of day that stand in two columns, if one of them was taken as the
        time.
        """
        time = self.taken.pop("time", -1)
        days, clocks = ([index for _, index in self._fitting(name)] for name in ("day", "clock"))
        if len(days) == len(clocks) == 1 and time in (*days, *clocks):
            self.taken |= {"day": days[0], "time": clocks[0]}
        elif time >= 0:
            self.taken["time"] = time

    def _choose_sides(self) -> None:
        """Take the columns of a wide form.

        Prompt and response, or such as ``customer`` and ``agent_message``.
        """
        is_long = any(rank < _WHOLE for rank, _ in self._fitting("content"))
        places: dict[str, list[int]] = {
            side: [index for _, index in self._fitting(side)] for side in WIDE
        }
        for position, name in enumerate(self.header if not is_long else ()):
            word = re.sub(r"[\s_-]*(message|text|utterance|said|turn)$", "", name.casefold())
            if (side := WELL_KNOWN.get(word)) in places and not name.isdecimal():
                places[side].append(position)
        if all(len(positions) == 1 for positions in places.values()):
            self.taken |= {side: positions[0] for side, positions in places.items()}


@cache
def _headers() -> dict[str, list[re.Pattern[str]]]:
    """Return the patterns of headers.

    A word in capitals stands for a list of words, and may be joined by s or n.
    """
    table = tomllib.loads(Path(__file__).with_name("headers.toml").read_text(encoding="utf-8"))
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


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdecimal() and len(name) < 10
