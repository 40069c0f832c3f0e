"""Your own tables: CSV, TSV, Excel or a DataFrame.

A row is a turn, what both sides said, or a whole conversation. Rows may stand in any order: those
of a dialogue are put together by its id. What cells mean, the whole table decides.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import chain, groupby, islice, pairwise
from pathlib import Path
from typing import Any

from ...display import counted
from ...errors import InputError
from .columns import WIDE, lay_out, no_content
from .findings import Draft, Notes, Problem, message_of
from .markup import has_markup
from .table_rows import Row, Rows, plain_cell
from .times import joined

# of a spreadsheet
_ERRORS = frozenset(("#N/A", "#REF!", "#VALUE!", "#NAME?", "#NUM!", "#NULL!", "#DIV/0!"))
# what libraries write where a value is missing
_MISSING = _ERRORS | {"nan", "NaN", "<NA>", "NaT", "NULL", "null"}
_ANSWERS = frozenset(("None", "N/A", "n/a"))  # that too, or what somebody says
_NO_NAME = _MISSING | _ANSWERS | {""}
# numbers that a spreadsheet rounded
_BROKEN = re.compile(r"\d([.,]\d+)?E\+?\d{2,3}|\d{15}00+", re.IGNORECASE)
# 1.234 may be a thousand
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})([.,](\d{1,2}|\d{4,}))?|-?0[.,]\d{3}")
_TICKETS = re.compile("ticket|case|incident|vorgang|dossier|caso|chamado|comment|body|html|mail")
_HIDDEN = re.compile(
    "private|internal|(internal|private)?[ _]?note|intern[eo]?|privat|prive|privado"
)
_PUBLIC = re.compile("publi|pubbl|offentlich")
_YES, _NO = ("true", "1", "yes", "y"), ("false", "0", "no", "n")
# names of metadata that other columns and files of ours have
_OURS = frozenset(
    [
        "id",
        "messages",
        "domains",
        "time",
        "metadata",
        "role",
        "content",
        "text",
        "topic",
        "name",
        "turn",
        "vector",
    ]
)
_MARKED = 0.2  # of a column's texts that have balanced tags, if it is HTML
_PAUSE = timedelta(hours=4)  # that ends a conversation in a channel
_LONG = 8 * 3600  # seconds between turns that may be of two dialogues
_LOOKED_AT = 1000  # rows whose values show what a column is


class Table:
    """A table that is looked at whole before it is read.

    What its cells mean, and which rows are of one dialogue.
    """

    def __init__(self, rows: Rows, name: str, notes: Notes, title: str = "") -> None:
        self.rows, self.name, self.title, self.notes = rows, name, title, notes
        first = next(rows(Notes()))
        place = f"{name}:{first.line}"
        if first.fault:
            raise InputError(f"{place}: {first.fault}")
        self.layout = lay_out(place, first.cells, self._distinct, notes, self._values)
        fields = self.layout.positions
        self.titles = {field: self.layout.title(field) for field in fields}
        self.is_wide = WIDE[0] in fields
        self.has_roles = "role" in fields
        self.texts = WIDE if self.is_wide else ("content",)
        self.rows_of: dict[str, list[int]] = {}  # by dialogue
        self.apart: set[str] = set()  # dialogues whose rows do not stand together
        self.clashing: set[str] = set()  # ids that another sheet has too
        self.missing = _MISSING
        self.count = 0
        self.words: Counter[int] = Counter()  # of long texts, by column
        self.long: Counter[int] = Counter()  # such texts
        self._survey()
        if self.layout.needs_whole:
            raise no_content(place, self.layout.header)
        taken = set(fields.values())
        header = enumerate(self.layout.header)
        self.others = {name: at for at, name in header if name and at not in taken}
        self._differing: set[str] = set()  # of these, those that are no metadata
        self._worded: set[str] = set()  # and those that are no numbers
        self._is_known = False  # whether all rows were seen for that
        is_ticket = _TICKETS.search(f"{self.titles.get('id')} {self.titles.get('content')}")
        self.is_mail = self.is_markup or is_ticket is not None

    def drafts(self, notes: Notes) -> Iterator[Draft]:
        """Yield the dialogues in the order of their first rows.

        The first reading decides what is metadata.
        """
        keyed: Iterable[tuple[str, int, Row]] = self._keyed(self._body(notes))
        if self.apart:
            rows = list(keyed)
            keyed = (rows[at] for at in chain.from_iterable(self.rows_of.values()))
        for key, group in groupby(keyed, key=lambda row: row[0]):
            draft = self._draft(key, [(number, row) for _, number, row in group], notes)
            if draft.messages or draft.problems:
                yield draft
        if self._is_known and self._differing:
            names = ", ".join(map(repr, sorted(self._differing)))
            notes.add(f"left out columns whose values differ within a dialogue: {names}", self.name)
        self._is_known = True

    def _body(self, notes: Notes) -> Iterator[Row]:
        for row in islice(self.rows(notes), int(bool(self.layout.header)), None):
            yield row._replace(cells=list(map(plain_cell, row.cells)))

    def _distinct(self, columns: Sequence[int]) -> tuple[int, ...]:
        rows = [row.cells for row in islice(self.rows(Notes()), 1, None)]
        counts = (len({cells[at] for cells in rows if at < len(cells)}) for at in columns)
        return (*counts, len(rows))

    def _values(self, column: int) -> set[str]:
        rows = islice(self.rows(Notes()), 1, _LOOKED_AT)
        return {row.cells[column].strip() for row in rows if column < len(row.cells)}

    def _keyed(self, rows: Iterable[Row]) -> Iterator[tuple[str, int, Row]]:
        """Put the key of its dialogue and its number before each row.

        An id that was lost is that of a run of rows.
        """
        runs = Counter[str]()
        before = key = ""
        for number, row in enumerate(rows):
            if "id" in self.titles:
                id = self._name(row) or before
                if id != before:
                    runs[id] += 1
                    key = f"{id} ({runs[id]})" if runs[id] > 1 and _is_broken(id) else id
                before = id
            elif self.has_roles and not self.is_wide:
                key = self._name(row, "channel") or Path(self.name).stem
            else:
                key = str(number + 1)
            yield key, number, row

    def _name(self, row: Row, field: str = "id") -> str:
        """Return an id, also one that was lost, or a name."""
        name = self.layout.cell(row.cells, field).strip()
        is_lost = field == "id" and name in _ERRORS
        return "" if name in _NO_NAME and not is_lost else name

    def _survey(self) -> None:
        """Go through the whole table once, and note what holds of it."""
        filled = marked = blank = 0
        has_missing = False
        answers = Counter[str]()
        for key, number, row in self._keyed(self._body(Notes())):
            numbers = self.rows_of.setdefault(key, [])
            if numbers and numbers[-1] != number - 1:
                self.apart.add(key)
            numbers.append(number)
            self.count = number + 1
            blank += "id" in self.titles and not self._name(row)
            self._count_words(row)
            has_missing = has_missing or not _MISSING.isdisjoint(row.cells)
            for text in filter(None, (self.layout.cell(row.cells, name) for name in self.texts)):
                filled += 1
                marked += has_markup(text)
                answers.update(_ANSWERS & {text})
        self.is_markup = marked > 0 and marked >= _MARKED * filled
        self.is_filled_down = 0 < len(self.rows_of) <= blank == self.count - len(self.rows_of)
        if has_missing:
            self.missing |= _ANSWERS
        else:
            for word, count in answers.items():
                sentence = f"kept {word!r} as what was said ({counted(count, 'time')})"
                self.notes.add(sentence, self.name)
        self._tell()

    def _count_words(self, row: Row) -> None:
        for at, cell in enumerate(row.cells):
            count = cell.count(" ") + 1
            if count > 2:
                self.words[at] += count
                self.long[at] += 1

    def take_account(self, notes: Notes) -> None:
        """Count the words of all columns; those that differ within a dialogue are lost."""
        lost = {self.others[name]: name for name in self._differing}
        for at, words in self.words.items():
            if at in lost:
                notes.account.add(lost[at], words, self.long[at])
            else:
                notes.account.words["said"] += words

    def _tell(self) -> None:
        """Note how rows became dialogues."""
        if self.apart:
            what = counted(len(self.apart), "dialogue")
            self.notes.add(f"{what} whose rows stood apart put together", self.name)
        if self.is_filled_down:
            self.notes.add("took rows without an id as those of the dialogue above", self.name)
        for id in filter(_is_broken, self.rows_of if "id" in self.titles else ()):
            sentence = (
                f"got the id {id!r}, which a spreadsheet made of others; export the ids as text"
            )
            self.notes.put(Problem(f"{self.name}: rows of {id}", sentence, "warning"))
        if self.is_wide:
            return
        if "role" not in self.titles:
            self.notes.guess(
                "took all turns as said by one user, as no column says who speaks; if one does, "
                "say --columns 'role=NAME'",
                self.name,
            )
        elif "id" not in self.titles:
            self.notes.guess(
                "took the rows of a channel, or of the file, as one dialogue but for long pauses, "
                "as no column tells dialogues apart; if one does, say --columns 'id=NAME'",
                self.name,
            )
        elif (
            1 < self.count == len(self.rows_of)
            and self._distinct([self.layout.positions["role"]])[0] > 1
        ):
            self.notes.guess(
                "took each row as a dialogue, as each has an id of its own; if another column "
                "tells dialogues apart, say --columns 'id=NAME'",
                self.name,
            )

    def _draft(self, key: str, members: list[tuple[int, Row]], notes: Notes) -> Draft:
        messages: list[dict[str, Any]] = []
        problems: list[Problem] = []
        domains: dict[str, None] = {}
        kept: list[Row] = []
        for _, row in self._by_turn(members):
            place = f"{self.name}:{row.line}"
            if row.fault or len(row.cells) != self.layout.width:
                fault = row.fault or (
                    f"got {len(row.cells)} cell(s), expected {self.layout.width} as in the first "
                    "row; put cells that hold the separator in quotation marks, or add what is "
                    "missing"
                )
                problems.append(Problem(place, fault))
            elif "id" in self.titles and not self._name(row) and not self.is_filled_down:
                notes.add("left out a turn without an id", place)
            elif "hidden" in self.titles and self._is_hidden(row):
                notes.add("left out a private note", place)
            else:
                domains |= dict.fromkeys(self.layout.names(row.cells, "domain"))
                messages += self._messages(place, row, notes)
                kept.append(row)
        if self._is_known and key in self.apart and not self.is_mail and not notes.options.gap:
            self._doubt(members, notes)
        first = members[0][1]
        return Draft(
            f"{self.name}:{first.line}",
            f"{self.title}/{key}" if key in self.clashing else key,
            messages,
            tuple(domains),
            tuple(problems),
            "",
            self._metadata(kept),
            self.is_mail,
            None if "id" in self.titles else _PAUSE,
        )

    def _by_turn(self, members: list[tuple[int, Row]]) -> list[tuple[int, Row]]:
        """Return the rows of a dialogue in the order of their turns' numbers, if they have them."""
        if "turn" not in self.titles:
            return members
        turns = [self.layout.cell(row.cells, "turn").strip() for _, row in members]
        if not all(turn.isdecimal() for turn in turns):
            return members
        order = sorted(range(len(turns)), key=lambda at: int(turns[at]))
        return [members[at] for at in order]

    def _doubt(self, members: list[tuple[int, Row]], notes: Notes) -> None:
        """Ask whether an id that comes again after others, and long after, began again."""
        moments = [(notes.times.read(self._time(row)), number) for number, row in members]
        known = sorted((moment.seconds, number) for moment, number in moments if moment)
        if any(
            later[0] - first[0] > _LONG and later[1] != first[1] + 1
            for first, later in pairwise(known)
        ):
            notes.guess(
                "took turns of one id as one dialogue, though others and more than 8 hours lie "
                "between them; if ids begin again, say --gap 4h",
                f"{self.name}:{members[0][1].line}",
            )

    def _metadata(self, rows: Sequence[Row]) -> dict[str, Any]:
        metadata: dict[str, Any] = {}
        for name, at in self.others.items():
            values = {row.cells[at].strip() for row in rows} - _NO_NAME
            if len(values) > 1:
                self._differing.add(name)
            if not all(map(_NUMBER.fullmatch, values)):
                self._worded.add(name)
            if self._is_known and values and name not in self._differing:
                (value,) = values
                title = f"{name}_column" if name.casefold() in _OURS else name
                metadata[title] = value if name in self._worded else number_of(value)
        return metadata

    def _time(self, row: Row) -> str:
        time, day = (self.layout.cell(row.cells, name).strip() for name in ("time", "day"))
        return joined(day, time) if day else time

    def _is_hidden(self, row: Row) -> bool:
        """Return whether a row is a note that the other side never saw."""
        value = self.layout.cell(row.cells, "hidden").strip().casefold()
        title = self.titles["hidden"]
        if _HIDDEN.fullmatch(value):
            return True
        return "type" not in title and value in (_NO if _PUBLIC.search(title) else _YES)

    def _messages(self, place: str, row: Row, notes: Notes) -> list[dict[str, Any]]:
        spoken = []
        for field in self.texts:
            text = self.layout.cell(row.cells, field)
            speaker = "user"
            if self.is_wide:
                speaker = field
            elif self.has_roles:
                speaker = self._name(row, "role")
            if text.strip() in self.missing:
                sentence = (
                    "left out a text that is only a word for a missing cell, such as nan or NULL"
                )
                notes.add(sentence, place)
            elif text.strip() and not speaker:
                notes.add("left out a turn without a speaker", place)
            else:
                acts = self.layout.names(row.cells, "dialogue_act")
                message = message_of(place, speaker, text, self._name(row, "name"), acts)
                spoken.append(message | {"time": self._time(row), "markup": self.is_markup})
        return [message for message in spoken if message["content"].strip()] or spoken[:1]


def _is_broken(id: str) -> bool:
    return id in _ERRORS or _BROKEN.fullmatch(id) is not None


def are_numbers(values: Iterable[Any]) -> bool:
    """Return whether all values that are there are texts of numbers."""
    filled = [value for value in values if value not in ("", None)]
    return bool(filled) and all(isinstance(v, str) and _NUMBER.fullmatch(v) for v in filled)


def number_of(text: str) -> int | float:
    """Return the number that a text is."""
    return int(text) if text.lstrip("-").isdecimal() else float(text.replace(",", "."))
