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
from typing import Any

from ...errors import InputError, unknown_name
from .findings import Notes
from .roles import WELL_KNOWN

WIDE = ("user", "assistant")
"""Fields of a table in wide form, instead of role and content: the texts of both sides."""
_NEEDED = ("id", "role", "content")
_MORE = ("domain", "dialogue_act", "name", "time", "turn", "hidden")
_FIELDS = (*_NEEDED, *_MORE, *WIDE, "messages")  # the last is of records
_USUAL = re.compile(
    "id|dial(ogue|og)id|conversationid|sessionid|role|speaker|content|text|utterance|message"
)
_WHOLE = 6  # rank among the names of contents from which on a cell may hold a whole conversation
_LONG = 3  # words of a text that somebody says, on average
_FILLERS = re.compile(
    "of|the|de[rs]?|die|das|du|l|la|les?|el|[dy]|d[oai]|del|dal|della|et?|and|und"
)
_HOW = (
    "say which with --columns 'id=NAME,role=NAME,content=NAME', or with numbers, as in 'id=1', "
    "if there is no header"
)
Distinct = Callable[[Sequence[int]], tuple[int, ...]]
"""From columns to the numbers of their distinct values in the whole table, and of its rows."""

Values = Callable[[int], set[str]]
"""From a column to its distinct values in the first rows."""


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
    pairs = text.split(",") if text else []
    for pair in pairs:
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
    is_wide = not columns.keys().isdisjoint(WIDE)
    needed = set(WIDE if is_wide else _NEEDED)
    numbered = [column for column in columns.values() if _is_number(column)]
    if is_wide and (needed - columns.keys() or columns.keys() & {"role", "content"}):
        problem = "user and assistant together, without role and content"
    elif numbered and (needed - columns.keys() or len(numbered) < len(columns)):
        problem = (
            "numbers for id, role and content and no name beside them, or names only; as in "
            "'id=1,role=2,content=3'"
        )
    else:
        return columns
    raise InputError(f"columns: got {text!r}, expected {problem}")


def lay_out(
    place: str, cells: Sequence[str], distinct: Distinct, notes: Notes, values: "Values"
) -> Layout:
    """Return the layout by a table's first row.

    Note the columns that were taken by other than the usual names.
    """
    columns = parse_columns(notes.options.columns)
    if any(map(_is_number, columns.values())):
        for name, number in columns.items():
            if not 1 <= int(number) <= len(cells):
                raise InputError(
                    f"{place}: columns: got {name}={number}, expected a number from 1 to "
                    f"{len(cells)}, as the row has no more cells; correct columns"
                )
        return Layout({name: int(number) - 1 for name, number in columns.items()}, len(cells))
    header = [name.strip() for name in cells]
    for name in columns.values():
        if name not in header:
            raise InputError(f"{place}: {unknown_name('column', name, set(header))}")
    given = {field: header.index(name) for field, name in columns.items()}
    taken = _Search(place, header, given, distinct, notes, values).taken
    word = _folded(header[taken["content"]]) if "content" in taken.keys() - given else ""
    needs_whole = _headers()["content"][-1].fullmatch(word) is not None
    return Layout(taken, len(cells), header, needs_whole)


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
        values: Values,
    ) -> None:
        self.values = values
        self.place, self.header, self.distinct, self.notes = place, header, distinct, notes
        self.folded = list(map(_folded, header))
        self.taken = dict(given)
        if given.keys().isdisjoint(("role", "content", *WIDE)):
            self._choose_sides()
        is_wide = WIDE[0] in self.taken
        for name in (*(() if is_wide else ("content", "role")), "id", "time", *_MORE):
            self._choose(name)
        if "id" not in self.taken:
            self._choose("channel")
        self._choose_day_and_clock()
        if not is_wide and "content" not in self.taken:
            self._choose_longest()
        fields = ("id", *WIDE) if is_wide else _NEEDED
        read = [name for name in fields if name in self.taken.keys() - given]
        if not all(_USUAL.fullmatch(self.folded[self.taken[name]]) for name in read):
            words = [
                f"{name}={header[self.taken[name]]}"
                for name in (*fields, *_MORE)
                if name in self.taken
            ]
            notes.add(f"columns: read as --columns '{','.join(words)}'", place)

    def _fitting(self, name: str) -> list[tuple[int, int]]:
        """Return the free columns that fit a field, behind the ranks of their names."""
        taken = self.taken.values()
        free = [index for index in range(len(self.header)) if index not in taken]
        return [
            (rank, index)
            for rank, names in enumerate(_headers()[name])
            for index in free
            if names.fullmatch(self.folded[index])
        ]

    def _choose(self, name: str) -> None:
        ranked = [] if name in self.taken else self._fitting(name)
        if not ranked and name == "role" and not self.taken.keys() & {"role"}:
            ranked = [(0, index) for index in self._saying_roles()]
        if not ranked:
            return
        first = ranked[0][0]
        ranks = {first}
        if name == "id" and first == 2 and "role" in self.taken:
            ranks.add(3)  # a message's id beside the ticket's
        best = [index for rank, index in ranked if rank in ranks]
        if name == "id":
            best = [index for index in best if not self._is_flag(index)]
            if not best:
                return
        is_open = len(best) > 1 and name in _NEEDED
        if is_open:
            *counts, rows = self.distinct(best)
            # Each row has its message's id; speakers differ, and texts differ more than what is
            # said of them.
            bounds = {"id": (0, rows - 1), "role": (2, rows), "content": (max(counts) / 2, rows)}
            least, most = bounds[name]
            pairs = zip(best, counts, strict=True)
            best = [index for index, count in pairs if least <= count <= most] or best
            is_open = len(best) > 1 and (name != "id" or len(set(counts)) > 1)
        self.taken[name] = best[0]
        if is_open:
            taken, other = (self.header[index] for index in best[:2])
            self.notes.guess(
                f"columns: took {taken!r} as {name}; {other!r} fits too: for it, say --columns "
                f"'{name}={other}'",
                self.place,
            )

    def _is_flag(self, index: int) -> bool:
        """Return whether a column has true and false, or one value that is neither."""
        values = self.values(index)
        return bool(values) and values <= {"True", "False", "true", "false", ""}

    def _saying_roles(self) -> list[int]:
        """Return the columns whose values are words of roles, whatever their names."""
        taken = self.taken.values()
        fitting = []
        for index in (index for index in range(len(self.header)) if index not in taken):
            words = [value for value in self.values(index) if not value.isdecimal()]
            known = [word for word in words if word.casefold() in WELL_KNOWN]
            if len(known) > 1 and 2 * len(known) >= len(words):
                fitting.append(index)
        return fitting[:1]

    def _choose_longest(self) -> None:
        """Take the column of long texts that differ, whatever its name is, beside a speaker's."""
        taken = self.taken.values()
        scores = {}
        for index in range(len(self.header)):
            words = [len(value.split()) for value in self.values(index)]
            count, rows = self.distinct([index])
            if words and index not in taken and 5 * count > 3 * rows:
                scores[index] = sum(words) / len(words)
        best = max(scores, key=lambda index: scores[index], default=-1)
        if "role" not in self.taken or scores.get(best, 0) < _LONG:
            raise no_content(self.place, self.header)
        self.taken["content"] = best

    def _choose_day_and_clock(self) -> None:
        """Take a day and a time of day in two columns, if one of them was taken as the time."""
        time = self.taken.pop("time", None)
        days = [index for _, index in self._fitting("day")]
        clocks = [index for _, index in self._fitting("clock")]
        if len(days) == len(clocks) == 1 and time in (*days, *clocks):
            self.taken |= {"day": days[0], "time": clocks[0]}
        elif time is not None:
            self.taken["time"] = time

    def _choose_sides(self) -> None:
        """Take the columns of a wide form.

        Prompt and response, or such as ``customer`` and ``agent_message``.
        """
        places = {}
        for side in WIDE:
            ranked = self._fitting(side)
            places[side] = [index for rank, index in ranked if rank == ranked[0][0]]
        if not any(rank < _WHOLE for rank, _ in self._fitting("content")):
            for position, name in enumerate(self.header):
                word = re.sub(r"[\s_-]*(message|text|utterance|said|turn)$", "", name.casefold())
                side = WELL_KNOWN.get(word, "")
                if side in places and not name.isdecimal():
                    places[side].append(position)
        if all(len(positions) == 1 for positions in places.values()):
            self.taken |= {side: positions[0] for side, positions in places.items()}


@cache
def name_rank(kind: str, path: str) -> int | None:
    """Return how well the name of a field of JSON fits, 0 the best; None if it does not.

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


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdecimal() and len(name) < 10
