"""Records out of the files of corpora: JSON, tables and lines, each with its place, by split."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ..errors import InputError
from .corpus import Files, Reading, Records, Source

GET_AGAIN = "the file is damaged or incomplete: get it again"
# characters in a cell of a table; csv's own limit is less than some annotations take
LONGEST_CELL = 1 << 24
_FORMS: dict[type, str] = {list: "a list", dict: "an object"}


def parse_json(name: str, content: bytes, remedy: str = GET_AGAIN) -> Any:
    """Parse JSON text."""
    start = f"{name}: " if name else ""
    try:
        value = json.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError(f"{start}broken UTF-8 at byte {error.start}; {remedy}") from None
    except json.JSONDecodeError as error:
        line = f"line {error.lineno} " if error.lineno > 1 else ""
        raise InputError(
            f"{start}broken JSON at {line}column {error.colno} ({error.msg}); {remedy}"
        ) from None
    except (
        ValueError,
        RecursionError,
    ) as error:  # numbers of thousands of digits, thousands of brackets
        raise InputError(f"{start}JSON that cannot be parsed ({error}); {remedy}") from None
    if b"\\ud" in content or b"\\uD" in content:
        try:  # JSON can spell half a character as an escape; no tokenizer and no file can hold it
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            raise InputError(
                f"{start}got half a character (a lone surrogate), expected text; remove it"
            ) from None
    return value


def json_list(source: Source, pattern: str, *path: str) -> Iterator[tuple[str, Any]]:
    """Parse the elements of a list in JSON files; ``path`` are the keys that lead to the list."""
    for place, (_, element) in _children(source, pattern, path, list):
        yield place, element


def json_members(source: Source, pattern: str, *path: str) -> Iterator[tuple[str, tuple[str, Any]]]:
    """Parse the members of an object in JSON files.

    ``path`` are the keys that lead to the object.
    """
    return _children(source, pattern, path, dict)


def _children(
    source: Source, pattern: str, path: Sequence[str], kind: type
) -> Iterator[tuple[str, Any]]:
    for name, stream in source.files(pattern):
        value = parse_json(name, stream.read())
        outer = dict if path else kind
        if not isinstance(value, outer):
            got = _FORMS.get(type(value), "a single value")
            raise InputError(f"{name}: got {got}, expected {_FORMS[outer]}; {GET_AGAIN}")
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if path and not (isinstance(value, kind) and value):
            wanted = f"field {'.'.join(path)}: got nothing, expected {_FORMS[kind]} of records"
            raise InputError(f"{name}: {wanted}; get the file again")
        children: Iterable[tuple[Any, Any]] = value.items() if kind is dict else enumerate(value)
        for key, child in children:
            yield f"{name}: record {key}", (key, child)


def json_lines(source: Source, pattern: str) -> Iterator[tuple[str, Any]]:
    """Parse files that hold one JSON value per line; pass over blank lines."""
    for name, stream in source.files(pattern):
        for number, line in enumerate(stream, start=1):
            if line.strip():
                yield f"{name}:{number}", parse_json(f"{name}:{number}", line)


def table_rows(
    source: Source,
    pattern: str,
    columns: Sequence[str] = (),
    *,
    delimiter: str = ",",
    quoted: bool = True,
    names: Sequence[str] = (),
    errors: str = "strict",
) -> Iterator[tuple[str, dict[str, str]]]:
    """Read the rows of CSV or TSV files."""
    for name, stream in source.files(pattern):
        text = io.TextIOWrapper(stream, "utf-8-sig", errors, newline="")
        csv.field_size_limit(LONGEST_CELL)
        reader = csv.reader(
            text, delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
        )
        header = list(names)
        try:
            for cells in reader:
                if not header:
                    header = cells
                    if missing := next(
                        (column for column in columns if column not in header), None
                    ):
                        present = ", ".join(" ".join(column.split())[:40] for column in header[:20])
                        raise InputError(
                            f"{name}:1: column {missing} is missing (found: {present}); get the "
                            "file again"
                        )
                elif cells:
                    row = dict(zip(header, cells, strict=False))
                    if len(cells) > len(header):
                        row[""] = delimiter.join(cells[len(header) :])
                    yield f"{name}:{reader.line_num}", row
        except csv.Error as error:
            raise InputError(
                f"{name}:{reader.line_num}: broken CSV ({error}); {GET_AGAIN}"
            ) from None
        except UnicodeDecodeError as error:
            raise InputError(
                f"{name}: broken UTF-8 after line {reader.line_num} ({error.reason}); {GET_AGAIN}"
            ) from None
        finally:
            text.detach()


def split_files(read: Callable[..., Records], files: Files, **options: Any) -> Reading:
    """Read the files of each split by the first of its patterns."""
    return lambda source, split: read(source, files[split][0], **options)


def with_split(records: Reading) -> Reading:
    """Put the split before each record, where ids repeat between the splits."""
    return lambda source, split: ((place, (split, raw)) for place, raw in records(source, split))


def numbered(records: Reading) -> Reading:
    """Put an id such as ``train/0`` before each record, where the files have none."""

    def named(source: Source, split: str) -> Records:
        for number, (place, raw) in enumerate(records(source, split)):
            yield place, (f"{split}/{number}", raw)

    return named
