"""Files of records, such as JSON and Parquet: each is a conversation of some form, or a row of a table."""

from collections.abc import Iterator

from .columns import parse_columns
from .findings import Finding, Notes, from_drafts
from .forms import RecordDrafts, Records
from .tables import Row, find_in_table, rows_of


def find_in_records(read: Records, name: str, notes: Notes) -> Iterator[Finding]:
    """Read conversations of any known form; the file's form is that of most of its records.

    Records without messages are the rows of a table; ``name`` is its place.
    """
    drafts = RecordDrafts(read, notes.options.columns)
    if not drafts.header:
        yield from from_drafts(drafts, notes)
        return

    def rows(_: Notes) -> Iterator[Row]:
        cells = ([record.get(field) for field in drafts.header] for record in drafts.rows())
        return iter(rows_of(drafts.header, cells))

    yield from find_in_table(rows, name, parse_columns(notes.options.columns), notes)
