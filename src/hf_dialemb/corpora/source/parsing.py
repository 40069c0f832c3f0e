"""Records out of the files of corpora: JSON, tables and lines, each with its place, read piece by piece, by split."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, zip_longest
from typing import Any

from ...errors import InputError
from ..corpus import Files, Reading, Records, Source
from ..records import hashed_split, never_empty
from .json_stream import GET_AGAIN, JsonStream, check_encodable

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LONGEST_CELL = 1 << 24  # characters in a cell of a table; csv's own limit is less than what some annotations take


def parse_json(name: str, content: bytes, remedy: str = GET_AGAIN) -> Any:  # noqa: ANN401 - whatever it holds
    """Parses JSON text."""
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
        check_encodable(value, name)
    return value


def json_list(source: Source, pattern: str, *path: str) -> Iterator[tuple[str, Any]]:
    """Reads the elements of a list out of JSON files, one at a time; `path` are the keys that lead to the list."""
    for place, (_, element) in _children(source, pattern, path, "["):
        yield place, element


def json_members(source: Source, pattern: str, *path: str) -> Iterator[tuple[str, tuple[str, Any]]]:
    """Reads the members of an object out of JSON files, one at a time."""
    for place, (key, value) in _children(source, pattern, path, "{"):
        yield place, (str(key), value)


def _children(source: Source, pattern: str, path: Sequence[str], bracket: str) -> Iterator[tuple[str, Any]]:
    form = "a list" if bracket == "[" else "an object"
    for name, stream in source.files(pattern):
        children = JsonStream(name, stream).children(path, bracket)
        if path:
            got = f"{name}: field {'.'.join(path)}: got nothing, expected {form} of records; get the file again"
            children = never_empty(children, InputError(got))
        for key, value in children:
            yield f"{name}: record {key}", (key, value)


def json_lines(source: Source, pattern: str) -> Iterator[tuple[str, Any]]:
    """Reads files that hold one JSON value per line; lines that are blank are passed over."""
    for name, stream in source.files(pattern):
        for number, line in enumerate(stream, start=1):
            if line.strip():
                yield f"{name}:{number}", parse_json(f"{name}:{number}", line)


def text_lines(source: Source, pattern: str) -> Iterator[tuple[str, str]]:
    """Reads text files line by line, blank lines too."""
    for name, stream in source.files(pattern):
        for number, line in enumerate(stream, start=1):
            text = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
            try:
                yield f"{name}:{number}", text.decode("utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise InputError(f"{name}:{number}: broken UTF-8 at byte {error.start}; {GET_AGAIN}") from None


def parallel_lines(source: Source, patterns: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Reads text files whose lines of one number belong together."""
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
    """Reads the rows of CSV or TSV files."""
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
            found = ", ".join(" ".join(column.split())[:40] for column in header[:20])
            raise InputError(f"{name}:1: column {column} is missing (found: {found}); get the file again")


def split_files(read: Callable[..., Records], files: Files, **options: Any) -> Reading:  # noqa: ANN401
    """Reads the files that each split has; where there are several patterns, the first."""
    return lambda source, split: read(source, files[split][0], **options)


def out_of_all(read: Callable[..., Records], pattern: str, split_of: Callable[[Any], str]) -> Reading:
    """Reads files that hold every split; a malformed record of no split, "", is told whichever split is read."""
    return lambda source, split: (each for each in read(source, pattern) if split_of(each[1]) in (split, ""))


def hashed_by(name: str) -> Callable[[Any], str]:
    """Lets a hash of the field that is the id decide, where there is no official split."""
    return lambda raw: hashed_split(str(raw.get(name)) if isinstance(raw, dict) else "")


def named_by(name: str, splits: Mapping[str, str]) -> Callable[[Any], str]:
    """Lets a field decide that says the split, in words of its own."""
    return lambda raw: splits.get(str(raw.get(name)), "") if isinstance(raw, dict) else ""


def without_empty(name: str, records: Reading) -> Reading:
    """Leaves out the records whose list of turns, the field `name`, is empty: nothing was said there."""
    return lambda source, split: (
        each for each in records(source, split) if not isinstance(each[1], dict) or each[1].get(name) != []
    )


def with_split(records: Reading) -> Reading:
    """Puts the split before each record, where ids repeat between the splits."""
    return lambda source, split: ((place, (split, raw)) for place, raw in records(source, split))


def numbered(records: Reading) -> Reading:
    """Puts an id such as ``train/0`` before each record, where the files have none."""

    def named(source: Source, split: str) -> Records:
        for number, (place, raw) in enumerate(records(source, split)):
            yield place, (f"{split}/{number}", raw)

    return named


def grouped(rows: Iterable[tuple[str, Any]], key: Callable[[tuple[str, Any]], Any]) -> Records:
    """Puts rows together that follow each other and have one key; the place is that of the first."""
    for _, group in groupby(rows, key):
        placed = list(group)
        yield placed[0][0], [row for _, row in placed]
