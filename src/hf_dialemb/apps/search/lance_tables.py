"""LanceDB tables in folders of their own.

Opened, their failures explained, and conditions on their columns checked.
"""

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
_REFINED = (
    1_000  # rows that are compared exactly afterwards, and at least ten for each that is wanted
)
_BEGUN = {".lock", "data", "_transactions", "_versions"}
_REWORDED = {
    r"^Error parsing statement: .*\(sql parser error: (.*)\)": r"\1",
    r"^Expected: \), found: EOF.*": "a bracket or a comment does not end",
    r"^Expected: \), found: (\S+).*": r"it goes on with \1 where it should end",
    r"^rust future panicked.*": "LanceDB does not know such values",
}


def connected(folder: Path) -> Any:
    """Connect to the database of the tables in a folder."""
    try:
        import lancedb
    except ImportError:
        raise InputError('lancedb is not installed; run: pip install "hf-dialemb[index]"') from None
    return lancedb.connect(str(folder))


def opened(database: Any, path: Path) -> tuple[Any, dict[str, Any]] | None:
    """Open the newest version of a table, with what is recorded of it.

    Return None if there is none yet.
    """
    if not path.exists():
        return None
    names = {file.name for file in path.iterdir()} if path.is_dir() else {path.name}
    if not any(path.glob("_versions/*.manifest")):
        if names <= _BEGUN and not any(path.glob("data/*")):
            return None  # of a run that was killed before its first batch
        if "data" in names:
            raise InputError(
                f"index {path}: lost the files in _versions; restore the folder, or make another "
                "index"
            )
    else:
        with explained_failures(path):
            table = database.open_table(path.stem)
        if METADATA in (table.schema.metadata or {}):
            return table, json.loads(table.schema.metadata[METADATA])
    raise InputError(f"index {path}: is none that dialemb index made; choose another name")


@contextmanager
def explained_failures(path: Path, table: Any = None, where: str = "") -> Iterator[None]:
    """Raise an InputError where files are cut, damaged, lost or cannot be written, or a condition
    fails on a row.
    """
    try:
        yield
    except InputError:
        raise
    except (OSError, RuntimeError, ValueError) as error:
        if where and "filter expression" in str(error):
            raise _no_condition(table, where, _reason(error).rpartition("to batch: ")[2]) from None
        remedy = "if its files are damaged or lost, restore the folder or make another index"
        raise InputError(
            f"index {path}: LanceDB cannot use it ({_reason(error)}); {remedy}"
        ) from None


def checked_condition(table: Any, where: Any) -> str:
    """Return a condition in brackets.

    Refuse what is not one whole expression of SQL that is true or false.

    LanceDB drops whatever follows an expression. So the condition is planned twice: where only
    ``)`` may follow it, and where only ``AS`` may. No text that holds more than one expression
    passes both.
    """
    reason = "" if isinstance(where, str) else "it is no text"
    for alone in () if reason else (f"({where})", f"CAST({where} AS STRING) = 'true'"):
        try:
            table.search().where(alone).limit(1).explain_plan()
        except Exception as error:  # a panic of LanceDB's parser is a plain Exception
            reason = reason or (
                "it closes a bracket that is not open" if alone[0] == "C" else _reason(error)
            )
    if reason:
        raise _no_condition(table, where, reason)
    return f"({where})"


def nearest_rows(table: Any, vector: NDArray[np.float32], count: int) -> Any:
    """Return the query for the rows of a table nearest to a vector (D,) by cosine."""
    asked = table.search(vector, vector_column_name="vector").distance_type("cosine").limit(count)
    return asked.nprobes(_CELLS).refine_factor(max(10, -(-_REFINED // count)))


def quoted(names: Iterable[str]) -> str:
    """Write texts as a list in SQL."""
    return ", ".join("'" + name.replace("'", "''") + "'" for name in names)


def _no_condition(table: Any, where: Any, reason: str) -> InputError:
    columns = ", ".join(name for name in table.schema.names if name not in ("digest", "vector"))
    return InputError(
        f"where: got {where!r:.200}, which is no condition on the columns ({reason}); write it as "
        "\"topic = 'cards' "
        f"and time > '2026-01-01'\", with the columns {columns}"
    )


def _reason(error: Exception) -> str:
    """Say in a line what LanceDB said, without its own source files and without the statement that
    it parsed.
    """
    reason = str(error).removeprefix("lance error: ").replace("Invalid input, ", "")
    for pattern, words in _REWORDED.items():
        reason = re.sub(pattern, words, reason, flags=re.DOTALL)
    return re.split(r", /|\. Valid|\n", reason)[0][:200]
