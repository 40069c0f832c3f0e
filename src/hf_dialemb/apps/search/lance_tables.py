"""LanceDB tables in folders of their own: opened, with conditions on their columns checked."""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...encoders.stored_vectors import METADATA
from ...errors import InputError

_CELLS = 80  # how many cells of an approximate index are searched
_REFINED = 1_000  # rows that are compared exactly afterwards, and at least ten for each wanted


def connected(folder: Path) -> Any:
    """Connect to the database of the tables in a folder."""
    try:
        import lancedb
    except ImportError:
        raise InputError('lancedb is not installed; run: pip install "hf-dialemb[index]"') from None
    return lancedb.connect(str(folder))


def opened(database: Any, path: Path) -> tuple[Any, dict[str, Any]] | None:
    """Open the newest version of a table, with what is recorded of it.

    Return None if there is none yet, or only what a run left that was killed before its first
    batch.
    """
    if any(path.glob("_versions/*.manifest")):
        with explained_failures(path):
            table = database.open_table(path.stem)
        if METADATA in (table.schema.metadata or {}):
            return table, json.loads(table.schema.metadata[METADATA])
    elif not path.exists() or (path.is_dir() and not any(path.glob("data/*"))):
        return None
    raise InputError(
        f"index {path}: is none that dialemb index made, or lost its files in _versions; restore "
        "the folder, or choose another name"
    )


@contextmanager
def explained_failures(path: Path, where: str = "") -> Iterator[None]:
    """Raise an InputError where LanceDB finds its files damaged, or a condition fails on a row."""
    try:
        yield
    except Exception as error:  # a panic of LanceDB is a plain Exception
        if isinstance(error, InputError) or not re.search("lance|rust", str(error), re.IGNORECASE):
            raise
        reason = _reason(error)
        if where and "filter expression" in str(error):
            raise InputError(f"where: got {where!r}, which fails on a row ({reason})") from None
        remedy = "if its files are damaged or lost, restore the folder or make another index"
        raise InputError(f"index {path}: LanceDB cannot use it ({reason}); {remedy}") from None


def checked_condition(table: Any, where: Any) -> str:
    """Return a condition in brackets.

    Refuse what is not one whole expression of SQL that is true or false.

    LanceDB drops whatever follows an expression. So the condition is planned twice: where only
    ``)`` may follow it, and where only ``AS`` may. No text that holds more than one expression
    passes both.
    """
    try:
        if not isinstance(where, str):
            raise TypeError("it is no text")
        for alone in (f"({where})", f"CAST({where} AS STRING) = 'true'"):
            table.search().where(alone).limit(1).explain_plan()
    except Exception as error:  # a panic of LanceDB's parser is a plain Exception
        columns = ", ".join(name for name in table.schema.names if name not in ("digest", "vector"))
        reason = _reason(error)
        raise InputError(
            f"where: got {where!r:.200}, which is no condition on the columns ({reason}); write it "
            f"as \"topic = 'cards' and time > '2026-01-01'\", with the columns {columns}"
        ) from None
    return f"({where})"


def nearest_rows(table: Any, vector: NDArray[np.float32], count: int) -> Any:
    """Return the query for the rows of a table nearest to a vector (D,) by cosine."""
    asked = table.search(vector, vector_column_name="vector").distance_type("cosine").limit(count)
    return asked.nprobes(_CELLS).refine_factor(max(10, -(-_REFINED // count)))


def _reason(error: Exception) -> str:
    """Return the first line of an error, without LanceDB's own source files."""
    return re.split(r", /|\n", str(error))[0][:200]


def quoted(names: Iterable[str]) -> str:
    """Write texts as a list in SQL."""
    return ", ".join("'" + name.replace("'", "''") + "'" for name in names)


def unchanged_words() -> Any:
    """Return the full-text index of words that stand between spaces as they are."""
    from lancedb.index import FTS

    return FTS(
        base_tokenizer="whitespace",
        max_token_length=None,
        lower_case=False,
        stem=False,
        remove_stop_words=False,
        ascii_folding=False,
    )
