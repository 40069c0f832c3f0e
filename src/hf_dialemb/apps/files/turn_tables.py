"""Your own tables: CSV, TSV, Excel or a DataFrame.

A row is a turn, what both sides said, or a whole conversation.

Rows may stand in any order: those of a dialogue are put together by its id. What cells mean, the
whole table decides.
"""

import ast
import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from itertools import chain, groupby, islice, pairwise
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple

from ...data.parsing import LONGEST_CELL
from ...errors import InputError, unknown_name
from ...storage.frames import counted
from .columns import WIDE, lay_out, no_content
from .encoding import is_text, text_of
from .findings import Draft, Finding, Notes, Problem, from_drafts, message_of
from .forms import RecordDrafts
from .markup import looks_like_markup, plain_text
from .times import joined
from .transcripts import draft_of_text
from .workbook import Sheet, read_sheets

# of a spreadsheet
_ERRORS = frozenset(("#N/A", "#REF!", "#VALUE!", "#NAME?", "#NUM!", "#NULL!", "#DIV/0!"))
# what libraries write where a value is missing
_MISSING = _ERRORS | {"nan", "NaN", "<NA>", "NaT", "NULL", "null"}
_ANSWERS = frozenset(("None", "N/A", "n/a"))  # that too, or what somebody says
_NO_NAME = _MISSING | _ANSWERS | {""}
# numbers that a spreadsheet rounded
_BROKEN = re.compile(r"\d([.,]\d+)?E\+?\d{2,3}|\d{15}00+", re.IGNORECASE)
_FORMULA = ("=", "+", "-", "@")
# 1.234 may be a thousand
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})([.,](\d{1,2}|\d{4,}))?|-?0[.,]\d{3}")
_TICKETS = re.compile("ticket|case|incident|vorgang|dossier|caso|chamado|comment|body|html|mail")
_HIDDEN = re.compile(
    "private|internal|(internal|private)?[ _]?note|intern[eo]?|privat|prive|privado"
)
_FLAGS = {True: ("true", "1", "yes", "y"), False: ("false", "0", "no", "n")}
_OURS = {
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
}
# of a channel; seconds between turns that may be of two dialogues
_PAUSE, _LONG = (timedelta(hours=4), 8 * 3600)
_WIDTH = (
    "got {} cell(s), expected {} as in the first row; put cells that hold the separator in "
    "quotation marks, or add "
    "what is missing"
)
_HEAD, _LONGEST_RECORD = 1 << 16, 1 << 20  # characters


class Row(NamedTuple):
    """A row of a table: its line in the file, its cells, and its fault."""

    line: int
    cells: Sequence[str] = ()
    fault: str = ""


Rows = Callable[[Notes], Iterator[Row]]


def find_in_table(
    rows: Rows, name: str, columns: Mapping[str, str], notes: Notes
) -> Iterator[Finding]:
    """Read the rows of a table dialogue by dialogue, malformed ones too.

    The rows are read several times.

    A dialogue has the labels of all its rows; ``a|b`` in a cell is two labels, or two dialogue
    acts. A row of more or fewer cells counts to the dialogue whose id it has, or to the one before
    it. Other columns that have one value in each dialogue are metadata. Problems name the table.
    """
    if next(rows(Notes()), None) is not None:
        yield from from_drafts(Table(rows, name, columns, notes).drafts, notes)


def find_in_file(path: Path, columns: Mapping[str, str], notes: Notes) -> Iterator[Finding]:
    """Read a table in a file as `find_in_table` does.

    Of a workbook, all sheets that have the same columns.
    """
    if path.name.lower().endswith(".xlsx"):
        tables = _chosen_sheets(path, columns, notes)
        ids = Counter(chain.from_iterable(table.rows_of for table in tables))
        for table in tables:
            table.clashing = {id for id in table.rows_of if ids[id] > 1}
        yield from from_drafts(
            lambda notes: chain.from_iterable(table.drafts(notes) for table in tables), notes
        )
    else:
        yield from find_in_table(partial(_text_rows, path), str(path), columns, notes)


def rows_of(header: Sequence[str], cells: Iterable[Iterable[object]]) -> Iterator[Row]:
    """Make rows of a table in memory, as a file of it would give them."""
    rows = (Row(line, list(map(_text, row))) for line, row in enumerate(cells, 2))
    return chain([Row(1, header)], filter(_is_filled, rows))


def _is_filled(row: Row) -> bool:
    return bool(row.fault) or any(cell.strip() for cell in row.cells)


def _text_rows(path: Path, notes: Notes) -> Iterator[Row]:
    csv.field_size_limit(LONGEST_CELL)
    usual = "\t" if path.name.lower().removesuffix(".gz").endswith(".tsv") else ","
    with text_of(path, notes) as text:
        head = text.read(_HEAD) + text.readline()
        mark = re.match("sep=(.)\r?\n", head)  # of Excel
        rest = io.StringIO(head[mark.end() if mark else 0 :], newline="")
        reader = csv.reader(
            chain(rest, text), delimiter=mark[1] if mark else _delimiter(head, usual), strict=True
        )
        while True:
            line = reader.line_num + 1 + bool(mark)
            try:
                row = Row(line, next(reader))
            except StopIteration:
                return
            except csv.Error as error:
                row = Row(
                    line,
                    fault=f"got broken CSV ({error}), expected quoted cells to be "
                    "closed, and quotation "
                    "marks in them doubled; repair the row",
                )
            if not is_text("".join(row.cells)):
                row = row._replace(
                    fault="got bytes that are not UTF-8, expected text; save it as UTF-8"
                )
            if _is_filled(row):
                yield row


def _delimiter(head: str, usual: str) -> str:
    """Return the mark that parts most rows into as many cells as the first.

    The file's ending decides a draw.
    """

    def score(mark: str) -> tuple[float, int]:
        widths = [
            len(cells)
            for cells in csv.reader(io.StringIO(head, newline=""), delimiter=mark)
            if cells
        ] or [0]
        alike = sum(width == widths[0] for width in widths) / len(widths)
        return (round(alike, 1), widths[0]) if widths[0] > 1 else (0, 0)

    return max((usual, ";", "\t", ",", "|"), key=score)


def plain_cell(cell: str) -> str:
    """Return a cell without the apostrophe that keeps a spreadsheet from computing it."""
    return cell[1:] if cell[:1] == "'" and cell[1:2] in _FORMULA else cell


def _text(cell: object) -> str:
    if cell is None or (isinstance(cell, float) and isnan(cell)):
        return ""
    if (
        isinstance(cell, float) and cell.is_integer()
    ):  # an id that was typed as 12; a spreadsheet rounds longer ones
        return str(int(cell)) if abs(cell) < 1e15 else f"{cell:.14E}"
    return cell.isoformat() if isinstance(cell, datetime) else str(cell)


def _sheet_rows(numbered: Sheet, name: str, notes: Notes) -> Iterator[Row]:
    """Make rows as wide as the first of them."""
    width = len(numbered[0][1]) if numbered else 0
    for line, cells in numbered:
        if len(cells) > width:
            notes.add("left out what stands beside the columns", f"{name}:{line}")
        yield Row(line, [*map(_text, cells[:width]), *[""] * (width - len(cells))])


def _chosen_sheets(path: Path, columns: Mapping[str, str], notes: Notes) -> list["Table"]:
    """Return the sheet that the user names, or all that have the columns of the longest one.

    Name the others.
    """
    sheets, wanted = read_sheets(path), notes.options.sheet
    if wanted not in (None, "all", *sheets):
        raise InputError(f"{path}: {unknown_name('sheet', str(wanted), [*sheets, 'all'])}")
    tables, reasons = dict[str, Table](), dict[str, str]()
    for title, numbered in sheets.items():
        if wanted not in (None, "all", title):
            continue
        name = str(path) if len(sheets) == 1 else f"{path}: {title}"
        try:
            if len(numbered) < 2:
                raise InputError("has no rows below a header")
            tables[title] = Table(
                partial(_sheet_rows, numbered, name), name, columns, Notes(notes.options), title
            )
        except InputError as error:
            reasons[title] = re.sub(f"^{re.escape(name)}:\\d+: ", "", str(error))
    if not tables or (wanted == "all" and reasons):
        raise InputError(
            f"{path}: "
            + "; ".join(f"the sheet {title!r} {reason}" for title, reason in reasons.items())
        )
    longest = max(tables.values(), key=lambda table: table.count)
    for title in [
        title for title, table in tables.items() if table.titles != longest.titles and not wanted
    ]:
        del tables[title]
        sentence = (
            f"passed over the sheet {title!r}, which has other columns than {longest.title!r}"
        )
        notes.guess(f"{sentence}; for it, say --sheet {title!r}", str(path))
    for title, reason in reasons.items():
        notes.add(f"passed over the sheet {title!r}: {reason.partition(';')[0]}", str(path))
    for problem in chain.from_iterable(
        table.notes.problems(table.name) for table in tables.values()
    ):
        notes.put(problem)
    return list(tables.values())


class Table:
    """A table that is looked at whole before it is read.

    What its cells mean, and which rows are of one dialogue.
    """

    def __init__(
        self, rows: Rows, name: str, columns: Mapping[str, str], notes: Notes, title: str = ""
    ) -> None:
        self.rows, self.name, self.title, self.notes = rows, name, title, notes
        first = next(rows(Notes()))
        place = f"{name}:{first.line}"
        if first.fault:
            raise InputError(f"{place}: {first.fault}")
        self.layout = lay_out(place, first.cells, columns, self._distinct, notes)
        fields = self.layout.positions
        self.is_wide, self.has_roles, self.has_ids = (
            field in fields for field in (WIDE[0], "role", "id")
        )
        self.titles = {field: self.layout.title(field) for field in fields}
        # by dialogue
        self.rows_of, self.apart, self.clashing = (dict[str, list[int]](), set[str](), set[str]())
        self.missing, self.count, self._differing, self._texts = _MISSING, 0, set[str](), set[str]()
        self.is_whole = self.is_filled_down = self.is_complete = False
        self.is_markup = looks_like_markup(self._look())
        if self.is_whole:
            self.has_roles = False
        elif self.layout.needs_whole:
            raise no_content(place, self.layout.header)
        taken = {
            fields[field] for field in fields if not (self.is_whole and field in ("role", "name"))
        }
        self.others = {
            name: at for at, name in enumerate(self.layout.header) if name and at not in taken
        }
        is_ticket = bool(_TICKETS.search(f"{self.titles.get('id')} {self.titles.get('content')}"))
        self.is_mail = self.is_markup or (is_ticket and not self.is_whole)

    def drafts(self, notes: Notes) -> Iterator[Draft]:
        """Yield the dialogues in the order of their first rows.

        The first reading decides what is metadata.
        """
        keyed: Iterable[tuple[str, int, Row]] = self._keyed(self._body(notes))
        if self.apart:
            keyed = map(list(keyed).__getitem__, chain.from_iterable(self.rows_of.values()))
        for key, group in groupby(keyed, key=lambda row: row[0]):
            draft = self._draft(key, [(number, row) for _, number, row in group], notes)
            if draft.messages or draft.problems:
                yield draft
        if self.is_complete and self._differing:
            names = ", ".join(map(repr, sorted(self._differing)))
            notes.add(f"left out columns whose values differ within a dialogue: {names}", self.name)
        self.is_complete = True

    def _body(self, notes: Notes) -> Iterator[Row]:
        for row in islice(self.rows(notes), int(bool(self.layout.header)), None):
            quoted = any(cell[:1] == "'" for cell in row.cells)
            yield row._replace(cells=list(map(plain_cell, row.cells))) if quoted else row

    def _distinct(self, columns: Sequence[int]) -> tuple[int, ...]:
        rows = [row.cells for row in islice(self.rows(Notes()), 1, None)]
        return (
            *(len({cells[at] for cells in rows if at < len(cells)}) for at in columns),
            len(rows),
        )

    def _keyed(self, rows: Iterable[Row]) -> Iterator[tuple[str, int, Row]]:
        """Put the key of its dialogue and its number before each row.

        An id that was lost is that of a run of rows.
        """
        runs, before, key = Counter[str](), "", ""
        for number, row in enumerate(rows):
            if self.has_ids:
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
        return "" if name in _NO_NAME and not (field == "id" and name in _ERRORS) else name

    def _look(self) -> Iterator[str]:
        """Go through the whole table once, and yield its texts.

        Note what holds of it as a whole.
        """
        signs, answers, whole, filled, blank = False, Counter[str](), 0, 0, 0
        texts = [self.layout.positions[name] for name in (WIDE if self.is_wide else ("content",))]
        scratch = Notes()
        for key, number, row in self._keyed(self._body(scratch)):
            numbers = self.rows_of.setdefault(key, [])
            if numbers and numbers[-1] != number - 1:
                self.apart.add(key)
            numbers.append(number)
            self.count, blank = number + 1, blank + (self.has_ids and not self._name(row))
            for text in (row.cells[at] for at in texts if at < len(row.cells)):
                answers.update(_ANSWERS & {text})
                filled, whole = (
                    filled + (text != ""),
                    whole + (len(_conversation("", text, scratch)) > 1),
                )
                yield text
            signs = signs or not _MISSING.isdisjoint(row.cells)
        is_row_each = len(self.rows_of) == self.count or not self.has_ids
        self.is_whole = not self.is_wide and whole > 0.8 * filled and is_row_each
        self.is_filled_down = (
            0 < len(self.rows_of) <= blank and len(self.rows_of) + blank == self.count
        )
        self.missing |= _ANSWERS if signs else set()
        self._tell({} if signs else answers)

    def _tell(self, answers: Mapping[str, int]) -> None:
        """Note what holds of the table as a whole."""
        for word, count in answers.items():
            self.notes.add(f"kept {word!r} as what was said ({counted(count, 'time')})", self.name)
        if self.apart:
            self.notes.add(
                f"{counted(len(self.apart), 'dialogue')} whose rows stood apart put together",
                self.name,
            )
        if self.is_filled_down:
            self.notes.add("took rows without an id as those of the dialogue above", self.name)
        for id in filter(_is_broken, self.rows_of if self.has_ids else ()):
            sentence = (
                f"got the id {id!r}, which a spreadsheet made of others; export the ids as text"
            )
            self.notes.put(Problem(f"{self.name}: rows of {id}", sentence, "warning"))
        if self.is_wide or self.is_whole:
            return
        is_row_each = self.has_ids and 1 < self.count == len(self.rows_of)
        if not self.has_roles:
            sentence = (
                "took all turns as said by one user, as no column says who speaks; if one "
                "does, say --columns "
            )
            self.notes.guess(f"{sentence}'role=NAME'", self.name)
        elif not self.has_ids:
            sentence = (
                "took the rows of a channel, or of the file, as one dialogue but for long "
                "pauses, as no column tells "
            )
            self.notes.guess(
                f"{sentence}dialogues apart; if one does, say --columns 'id=NAME'", self.name
            )
        elif is_row_each and self._distinct([self.layout.positions["role"]])[0] > 1:
            sentence = (
                "took each row as a dialogue, as each has an id of its own; if another "
                "column tells dialogues "
            )
            self.notes.guess(f"{sentence}apart, say --columns 'id=NAME'", self.name)

    def _draft(self, key: str, members: list[tuple[int, Row]], notes: Notes) -> Draft:
        messages: list[dict[str, Any]] = []
        problems, domains, kept = [], [], []
        turns = [
            self.layout.cell(row.cells, "turn").strip()
            for _, row in members
            if "turn" in self.titles
        ]
        if turns and all(turn.isdecimal() for turn in turns):
            members = [
                members[at] for at in sorted(range(len(turns)), key=lambda at: int(turns[at]))
            ]
        for _, row in members:
            place = f"{self.name}:{row.line}"
            if row.fault or len(row.cells) != self.layout.width:
                problems.append(
                    Problem(place, row.fault or _WIDTH.format(len(row.cells), self.layout.width))
                )
            elif self.has_ids and not self._name(row) and not self.is_filled_down:
                notes.add("left out a turn without an id", place)
            elif "hidden" in self.titles and self._is_hidden(row):
                notes.add("left out a private note", place)
            else:
                domains += self.layout.names(row.cells, "domain")
                messages += self._messages(place, row, notes)
                kept.append(row)
        if self.is_complete and key in self.apart and not self.is_mail and not notes.options.gap:
            self._doubt(members, notes)
        id, first = f"{self.title}/{key}" if key in self.clashing else key, members[0][1]
        time, pause = self._time(first) if self.is_whole else "", None if self.has_ids else _PAUSE
        place, labels, metadata = (
            f"{self.name}:{first.line}",
            tuple(dict.fromkeys(domains)),
            self._metadata(kept),
        )
        return Draft(
            place, id, messages, labels, tuple(problems), time, metadata, self.is_mail, pause
        )

    def _doubt(self, members: list[tuple[int, Row]], notes: Notes) -> None:
        """Ask whether an id that comes again after others, and long after, began again."""
        moments = [
            (notes.times.read(time), number) for number, row in members if (time := self._time(row))
        ]
        known = sorted((moment.seconds, number) for moment, number in moments if moment)
        if any(
            later[0] - first[0] > _LONG and later[1] != first[1] + 1
            for first, later in pairwise(known)
        ):
            sentence = (
                "took turns of one id as one dialogue, though others and more than 8 hours "
                "lie between them; if "
            )
            notes.guess(
                f"{sentence}ids begin again, say --gap 4h", f"{self.name}:{members[0][1].line}"
            )

    def _metadata(self, rows: Sequence[Row]) -> dict[str, Any]:
        metadata: dict[str, Any] = {}
        for name, at in self.others.items():
            values = {row.cells[at].strip() for row in rows} - _NO_NAME
            if not self.is_complete:
                self._differing.update([name] if len(values) > 1 else ())
                self._texts.update([name] if not all(map(_NUMBER.fullmatch, values)) else ())
            elif values and name not in self._differing:
                (value,) = values
                title = f"{name}_column" if name.casefold() in _OURS else name
                metadata[title] = value if name in self._texts else _number(value)
        return metadata

    def _time(self, row: Row) -> str:
        time, day = (self.layout.cell(row.cells, name).strip() for name in ("time", "day"))
        return joined(day, time) if day else time

    def _is_hidden(self, row: Row) -> bool:
        """Return whether a row is a note that the other side never saw."""
        value, title = (
            self.layout.cell(row.cells, "hidden").strip().casefold(),
            self.titles["hidden"],
        )
        is_public = re.search("publi|pubbl|offentlich", title) is not None
        return bool(_HIDDEN.fullmatch(value)) or (
            "type" not in title and value in _FLAGS[not is_public]
        )

    def _messages(self, place: str, row: Row, notes: Notes) -> Iterator[dict[str, Any]]:
        more = {"time": self._time(row), "markup": self.is_markup}
        acts = self.layout.names(row.cells, "dialogue_act") if "dialogue_act" in self.titles else ()
        spoken = []
        for field in WIDE if self.is_wide else ("content",):
            text = self.layout.cell(row.cells, field)
            speaker = (
                field if self.is_wide else self._name(row, "role") if self.has_roles else "user"
            )
            if text.strip() in self.missing:
                notes.add(
                    "left out a text that is only a word for a missing cell, such as nan or NULL",
                    place,
                )
            elif self.is_whole:
                messages = _conversation(place, text, notes)
                yield from messages
                if not messages:
                    notes.add("left out a cell that holds no conversation, as the others do", place)
            elif text.strip() and not speaker:
                notes.add("left out a turn without a speaker", place)
            else:
                spoken.append(
                    message_of(place, speaker, text, self._name(row, "name"), acts) | more
                )
        yield from [message for message in spoken if message["content"].strip()] or spoken[:1]


def _is_broken(id: str) -> bool:
    return id in _ERRORS or _BROKEN.fullmatch(id) is not None


def _number(text: str) -> int | float:
    return int(text) if text.lstrip("-").isdecimal() else float(text.replace(",", "."))


def _conversation(place: str, text: str, notes: Notes) -> list[dict[str, Any]]:
    """Return the messages of a whole conversation in a cell.

    JSON, what Python prints of it, or lines of speakers.
    """
    drafts: list[Draft] = []
    if text[:1] in ("[", "{") and len(text) < _LONGEST_RECORD:
        for parse in (json.loads, ast.literal_eval):
            with suppress(MemoryError, RecursionError, SyntaxError, ValueError):
                value = parse(text)
                drafts = list(RecordDrafts(lambda: [(place, value)])(notes))  # noqa: B023
                break
    elif "\n" in text or "<br" in text:
        drafts = [
            draft_of_text(place, (plain_text(text) if "<" in text else text).splitlines(), notes)
        ]
    return (
        [dict(message) for message in drafts[0].messages]
        if len(drafts) == 1 and not drafts[0].problems
        else []
    )
