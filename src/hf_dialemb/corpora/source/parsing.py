"""Records out of the files of corpora: JSON, tables and lines, each with its place, by split."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count, groupby, zip_longest
from typing import IO, Any, NoReturn

from ...errors import InputError
from ..corpus import Files, Reading, Records, Source
from ..records import hashed_split, never_empty

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
GET_AGAIN = "the file is damaged or incomplete: get it again"
LONGEST_CELL = 1 << 24  # characters in a cell of a table; csv's own limit is less than some annotations take
_HALF = re.compile(r"\\u[dD]")  # how JSON may spell half a character
_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()
_FORMS = {"[": "a list", "{": "an object"}


def parse_json(name: str, content: bytes, remedy: str = GET_AGAIN) -> Any:  # noqa: ANN401 - whatever it holds
    """Parse JSON text."""
    start = f"{name}: " if name else ""
    try:
        value = json.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError(f"{start}broken UTF-8 at byte {error.start}; {remedy}") from None
    except json.JSONDecodeError as error:
        line = f"line {error.lineno} " if error.lineno > 1 else ""
        raise InputError(f"{start}broken JSON at {line}column {error.colno} ({error.msg}); {remedy}") from None
    except (ValueError, RecursionError) as error:  # numbers of thousands of digits, thousands of brackets
        raise InputError(f"{start}JSON that cannot be parsed ({error}); {remedy}") from None
    if b"\\ud" in content or b"\\uD" in content:
        _check_encodable(value, start)
    return value


def json_list(source: Source, pattern: str, *path: str) -> Iterator[tuple[str, Any]]:
    """Parse the elements of a list in JSON files, one at a time; ``path`` are the keys that lead to the list."""
    for place, (_, element) in _children(source, pattern, path, "["):
        yield place, element


def json_members(source: Source, pattern: str, *path: str) -> Iterator[tuple[str, tuple[str, Any]]]:
    """Parse the members of an object in JSON files, one at a time."""
    for place, (key, value) in _children(source, pattern, path, "{"):
        yield place, (str(key), value)


def _children(source: Source, pattern: str, path: Sequence[str], bracket: str) -> Iterator[tuple[str, Any]]:
    for name, stream in source.files(pattern):
        children = _JsonText(name, stream).children(path, bracket)
        if path:
            wanted = f"field {'.'.join(path)}: got nothing, expected {_FORMS[bracket]} of records"
            children = never_empty(children, InputError(f"{name}: {wanted}; get the file again"))
        for key, value in children:
            yield f"{name}: record {key}", (key, value)


class _JsonText:
    """The text of a JSON file, parsed value by value: only one record is in memory as objects."""

    def __init__(self, name: str, stream: IO[bytes]) -> None:
        self.name = name
        self._at = self._records = 0
        try:
            self._text = stream.read().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            self._refuse(f"broken UTF-8: {error.reason}")

    def children(self, path: Sequence[str], bracket: str) -> Iterator[tuple[str | int, Any]]:
        """Parse the elements of a list or the members of an object; none if the path leads nowhere."""
        opening, expected = self._peek(), "{" if path else bracket
        if not opening:
            self._refuse("the file is empty")
        if opening != expected:
            if opening not in _FORMS:
                self._value()  # refuses what is no JSON
            got = _FORMS.get(opening, "a single value")
            raise InputError(f"{self.name}: got {got}, expected {_FORMS[expected]}; {GET_AGAIN}")
        for depth, wanted in enumerate(path, start=1):
            inner = bracket if depth == len(path) else "{"
            for key in self._keys("{"):
                if key == wanted and self._peek() == inner:
                    break
                self._value()
            else:
                return
        for key in self._keys(bracket):
            yield key, self._value()
            self._records += 1
        if not path and self._peek():
            self._refuse("something follows the end")

    def _keys(self, bracket: str) -> Iterator[str | int]:
        """Step through a container: yield a position or key, and expect its value to be read before the next."""
        closing = "]" if bracket == "[" else "}"
        self._at += 1
        if self._peek() == closing:
            self._at += 1
            return
        for position in count():
            yield self._key() if bracket == "{" else position
            mark = self._peek()
            if mark not in (",", closing) or not mark:
                self._refuse(f"expected ',' or '{closing}'" if mark else "it ends too early")
            self._at += 1
            if mark == closing:
                return

    def _key(self) -> str:
        key = self._value()
        if not isinstance(key, str) or self._peek() != ":":
            self._refuse("expected a key in quotes and ':'")
        self._at += 1
        return str(key)

    def _value(self) -> Any:  # noqa: ANN401 - whatever the file holds
        self._peek()
        try:
            value, end = _DECODER.raw_decode(self._text, self._at)
        except json.JSONDecodeError as error:
            self._refuse(error.msg)
        except (ValueError, RecursionError) as error:  # numbers of thousands of digits, thousands of brackets
            self._refuse(str(error))
        if _HALF.search(self._text, self._at, end):
            _check_encodable(value, f"{self.name}: ")
        self._at = end
        return value

    def _peek(self) -> str:
        """Go to the next character that is no white space, and return it; empty at the end."""
        self._at = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]
        return self._text[self._at : self._at + 1]

    def _refuse(self, reason: str) -> NoReturn:
        after = f" after {self._records:,} records" if self._records else ""
        raise InputError(f"{self.name}: broken JSON{after} ({reason}); {GET_AGAIN}") from None


def _check_encodable(value: Any, start: str) -> None:  # noqa: ANN401
    """Refuse half characters, which JSON can spell as an escape; no tokenizer and no file can hold them."""
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(f"{start}got half a character (a lone surrogate), expected text; remove it") from None


def json_lines(source: Source, pattern: str) -> Iterator[tuple[str, Any]]:
    """Parse files that hold one JSON value per line; pass over blank lines."""
    for name, stream in source.files(pattern):
        for number, line in enumerate(stream, start=1):
            if line.strip():
                yield f"{name}:{number}", parse_json(f"{name}:{number}", line)


def text_lines(source: Source, pattern: str) -> Iterator[tuple[str, str]]:
    """Read text files line by line, blank lines too."""
    for name, stream in source.files(pattern):
        for number, line in enumerate(stream, start=1):
            text = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
            try:
                yield f"{name}:{number}", text.decode("utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise InputError(f"{name}:{number}: broken UTF-8 at byte {error.start}; {GET_AGAIN}") from None


def parallel_lines(source: Source, patterns: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Read text files whose lines of the same number belong together."""
    for lines in zip_longest(*(text_lines(source, pattern) for pattern in patterns)):
        if None in lines:
            place = next(line[0] for line in lines if line is not None)
            raise InputError(f"{place}: {patterns[lines.index(None)]} has no such line; get the files again")
        yield lines[0][0], tuple(text for _, text in lines)


def table_rows(
    source: Source,
    pattern: str,
    columns: Sequence[str] = (),
    *,
    delimiter: str = ",",
    quoted: bool = True,
    names: Sequence[str] = (),
) -> Iterator[tuple[str, dict[str, str]]]:
    """Read the rows of CSV or TSV files."""
    for name, stream in source.files(pattern):
        text = io.TextIOWrapper(stream, "utf-8-sig", newline="")
        csv.field_size_limit(LONGEST_CELL)
        reader = csv.reader(text, delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE)
        header = list(names)
        try:
            for cells in reader:
                if not header:
                    header = cells
                    _check_columns(name, header, columns)
                elif cells:
                    row = dict(zip(header, cells, strict=False))
                    if len(cells) > len(header):
                        row[""] = delimiter.join(cells[len(header) :])
                    yield f"{name}:{reader.line_num}", row
        except csv.Error as error:
            raise InputError(f"{name}:{reader.line_num}: broken CSV ({error}); {GET_AGAIN}") from None
        except UnicodeDecodeError as error:
            raise InputError(
                f"{name}: broken UTF-8 after line {reader.line_num} ({error.reason}); {GET_AGAIN}"
            ) from None
        finally:
            text.detach()


def _check_columns(name: str, header: Sequence[str], columns: Sequence[str]) -> None:
    for column in columns:
        if column not in header:
            present = ", ".join(" ".join(column.split())[:40] for column in header[:20])
            raise InputError(f"{name}:1: column {column} is missing (found: {present}); get the file again")


def split_files(read: Callable[..., Records], files: Files, **options: Any) -> Reading:  # noqa: ANN401
    """Read the files of each split by the first of its patterns."""
    return lambda source, split: read(source, files[split][0], **options)


def out_of_all(read: Callable[..., Records], pattern: str, split_of: Callable[[Any], str]) -> Reading:
    """Read files that hold every split; a malformed record without a split, "", is part of each."""
    return lambda source, split: (record for record in read(source, pattern) if split_of(record[1]) in (split, ""))


def hashed_by(name: str) -> Callable[[Any], str]:
    """Choose the split by a hash of the field that is the id, where there is no official split."""
    return lambda raw: hashed_split(str(raw.get(name)) if isinstance(raw, dict) else "")


def named_by(name: str, splits: Mapping[str, str]) -> Callable[[Any], str]:
    """Choose the split by a field that names it in other words."""
    return lambda raw: splits.get(str(raw.get(name)), "") if isinstance(raw, dict) else ""


def without_empty(name: str, records: Reading) -> Reading:
    """Leave out the records whose list of turns, the field ``name``, is empty."""
    return lambda source, split: (
        record for record in records(source, split) if not isinstance(record[1], dict) or record[1].get(name) != []
    )


def with_split(records: Reading) -> Reading:
    """Put the split before each record, where ids repeat between the splits."""
    return lambda source, split: ((place, (split, raw)) for place, raw in records(source, split))


def numbered(records: Reading) -> Reading:
    """Put an id such as ``train/0`` before each record, where the files have none."""

    def named(source: Source, split: str) -> Records:
        for number, (place, raw) in enumerate(records(source, split)):
            yield place, (f"{split}/{number}", raw)

    return named


def grouped(rows: Iterable[tuple[str, Any]], key: Callable[[tuple[str, Any]], Any]) -> Records:
    """Put successive rows of the same key together; the place is that of the first."""
    for _, group in groupby(rows, key):
        placed = list(group)
        yield placed[0][0], [row for _, row in placed]
