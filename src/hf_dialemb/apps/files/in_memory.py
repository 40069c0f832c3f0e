"""Objects in memory and rows on the Hub, in any form in which people have their conversations."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, groupby, islice
from typing import Any

from ...data.conversations import conversation_fault
from ...data.hub_dataset import hub_rows
from ...data.reading_options import ReadingOptions
from ...dialogue import Dialogue
from ...errors import InputError
from .findings import Finding, Notes, dialogues, distinct, from_drafts, with_remarks
from .json_files import find_in_records
from .record_dialogues import RecordDrafts

_OPTIONS = "columns|roles|dates|gap|sheet"  # that take a value
_SURVEYED = 1000  # rows that decide who speaks, and how times are written


def read_objects(
    items: list[Any], options: ReadingOptions, *, rows: bool, strict: bool
) -> list[Dialogue]:
    """Read dialogues in memory, or the rows of a table; if ``strict``, leave none out."""
    notes, place = Notes(options), "dialogues"
    findings = with_remarks(_in_list(items, notes, rows), notes, place)
    try:
        return list(dialogues(map(_finding_in_python, findings), place, notes, strict=strict))
    except InputError as error:
        raise InputError(_in_python(str(error))) from None


def read_rows(identifier: str, split: str, options: ReadingOptions) -> Iterator[Dialogue]:
    """Read the dialogues of a dataset on the Hub as a stream, without a copy of it."""
    notes = Notes(options)
    return dialogues(find_in_hub_dataset(identifier, split, notes), identifier, notes)


def find_in_hub_dataset(identifier: str, split: str, notes: Notes) -> Iterator[Finding]:
    """Read a dataset on the Hub as `read_rows` does, malformed rows too."""
    rows = hub_rows(identifier, split, notes.options.revision, notes.options.token)
    first = list(islice(rows, _SURVEYED))  # a stream is read once: its first rows stand for all
    passes = chain([first, first, first], [chain(first, rows)])
    drafts = RecordDrafts(lambda: next(passes), identifier)
    if drafts.header:
        columns = ", ".join(drafts.header)
        remedy = (
            "give the .parquet files of a dataset whose rows are turns, or rename or convert yours"
        )
        raise InputError(
            f"{identifier}: got no column with lists of messages (found: {columns}); {remedy}"
        )
    findings = distinct(from_drafts(drafts, notes), identifier, "rows with messages", notes)
    return with_remarks(findings, notes, identifier)


def _in_list(items: Iterable[Any], notes: Notes, rows: bool) -> Iterator[Finding]:
    """Read dialogues that stand together as one file."""
    placed = ((f"dialogues[{number}]", item) for number, item in enumerate(items))
    for made, group in groupby(placed, key=lambda pair: isinstance(pair[1], Dialogue)):
        if made:
            yield from (Finding(place, item) for place, item in group)
            continue
        records = [(place, item if rows else _record(item)) for place, item in group]
        yield from find_in_records(partial(iter, records), "the table", notes)


def _record(item: Any) -> Any:
    """Return what `find_in_records` reads, or an `InputError` in its place."""
    fault = conversation_fault(item)
    return InputError(fault) if fault else item


def _finding_in_python(finding: Finding) -> Finding:
    remarks = (replace(remark, message=_in_python(remark.message)) for remark in finding.remarks)
    return replace(finding, remarks=tuple(remarks))


def _in_python(sentence: str) -> str:
    """Write options of the command line as arguments."""
    sentence = re.sub(rf"--({_OPTIONS}) '([^']*)'|--({_OPTIONS}) ([\w-]+)", _argument, sentence)
    return re.sub(r"--(strict|raw)\b", r"\1=True", sentence)


def _argument(option: re.Match[str]) -> str:
    name, value = filter(None, option.groups())
    return f"load_dialogues(..., {name}={value!r})"
