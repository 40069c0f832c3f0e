"""Turns in an SQLite database, in a folder or in memory.

A transaction that ends is on the disk; one that is killed never was. What is deleted is
overwritten. Turns are chosen by whose they are, who said them and when, and by what is known of
their dialogues.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError

FILE = "turns.sqlite"
FORGET = "PRAGMA wal_checkpoint(TRUNCATE)"
"""Lets what was overwritten leave the log too."""

_SETTINGS = """
PRAGMA auto_vacuum = FULL; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
PRAGMA secure_delete = ON;
"""
# A dialogue whose turns changed is no longer that of its digest. A deleted turn keeps its row,
# empty, so that other processes notice.
_TABLES = """
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS record (value TEXT);
CREATE TABLE IF NOT EXISTS dialogues (
    number INTEGER PRIMARY KEY, user TEXT, id TEXT, digest TEXT, metadata TEXT,
    UNIQUE (user, id)
);
CREATE TABLE IF NOT EXISTS turns (
    "row" INTEGER PRIMARY KEY, version INTEGER, dialogue INTEGER, turn INTEGER, role TEXT,
    speaker TEXT, time TEXT, text TEXT, words TEXT, before INTEGER, vector BLOB
);
CREATE INDEX IF NOT EXISTS by_id ON dialogues (id);
CREATE INDEX IF NOT EXISTS by_version ON turns (version);
CREATE INDEX IF NOT EXISTS by_dialogue ON turns (dialogue, turn);
CREATE TRIGGER IF NOT EXISTS turn_added AFTER INSERT ON turns BEGIN
    UPDATE dialogues SET digest = NULL WHERE number = NEW.dialogue;
END;
CREATE TRIGGER IF NOT EXISTS turn_changed AFTER UPDATE OF text ON turns BEGIN
    UPDATE dialogues SET digest = NULL WHERE number = OLD.dialogue;
END;
COMMIT;
"""

_COLUMNS = {
    "user": "dialogues.user",
    "dialogue": "dialogues.id",
    **{name: f'turns."{name}"' for name in ("row", "turn", "role", "speaker")},
}
_BOUNDS = {"since": ">=", "until": "<="}


class TurnStore:
    """The database of a folder, which is made if it is not there; without a folder, in memory."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        if path is not None:
            others = [file.name for file in path.iterdir()] if path.is_dir() else []
            if path.is_file() or (others and FILE not in others):
                raise InputError(
                    f"index {path}: is none that dialemb index made, or lost its file {FILE}; "
                    "restore the folder, or choose another name"
                )
            path.mkdir(parents=True, exist_ok=True)
        with self.explained():
            # turns are written by one thread at a time: those of an index wait for its lock
            self._database = sqlite3.connect(
                path / FILE if path else ":memory:",
                timeout=60,
                isolation_level=None,
                check_same_thread=False,
            )
            self._database.executescript(_SETTINGS)
            if not self("SELECT 1 FROM sqlite_master"):
                self._database.executescript(_TABLES)

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Raise an InputError where SQLite cannot read or write its file."""
        try:
            yield
        except sqlite3.Error as error:
            raise InputError(
                f"index {self.path or 'in memory'}: SQLite cannot use it ({error}); if it is "
                "damaged, restore the folder or make another index"
            ) from None

    def __call__(self, statement: str, *values: Any) -> list[Any]:
        """Return the rows of a statement."""
        with self.explained():
            return self._database.execute(statement, values).fetchall()

    def many(self, statement: str, rows: Any) -> None:
        """Run a statement once for each row of values."""
        with self.explained():
            self._database.executemany(statement, rows)

    @contextmanager
    def at_once(self, begin: str = "BEGIN IMMEDIATE") -> Iterator[int]:
        """Write all or nothing, while no other process writes; yield the number of this version.

        Begun by ``BEGIN`` alone, all is read of one version.
        """
        self(begin)
        try:
            yield self.version + 1
            self("COMMIT")
        except BaseException:
            self("ROLLBACK")
            raise

    @property
    def version(self) -> int:
        """The number of the newest version that wrote a turn; 0 for none."""
        return int(self("SELECT coalesce(max(version), 0) FROM turns")[0][0])

    @property
    def record(self) -> dict[str, Any]:
        """What is recorded of the index; empty for a new one."""
        return next((json.loads(value) for (value,) in self("SELECT value FROM record")), {})

    def write_record(self, record: dict[str, Any]) -> None:
        """Record something of the index, in place of what was recorded."""
        self("DELETE FROM record")
        self("INSERT INTO record VALUES (?)", json.dumps(record))


def chosen_rows(store: TurnStore, scope: Mapping[str, Any]) -> NDArray[np.int64]:
    """Return the rows of the turns that have all values of a scope.

    Args:
        store: The turns.
        scope: Values by ``row``, ``user``, ``dialogue``, ``turn``, ``role``, ``speaker``,
            ``since``, ``until`` or a name of metadata; a list stands for any of its values.

    Raises:
        InputError: A name or a time is unknown.
    """
    conditions = ["TRUE"]
    values: list[Any] = []
    for name, value in scope.items():
        if name in _BOUNDS:
            conditions.append(f"turns.time <> '' AND turns.time {_BOUNDS[name]} ?")
            values.append(_moment(name, value))
            continue
        expression = _COLUMNS.get(name)
        if expression is None:
            expression = "json_extract(dialogues.metadata, ?)"
            values.append(_path(store, name))
        listed = list(value) if isinstance(value, list | tuple | set) else [value]
        conditions.append(f"{expression} IN ({', '.join('?' * len(listed))})")
        values += [float(item) if isinstance(item, int) else item for item in listed]
    rows = store(
        'SELECT "row" FROM turns JOIN dialogues ON number = dialogue'
        f" WHERE {' AND '.join(conditions)}",
        *values,
    )
    return np.fromiter((row for (row,) in rows), np.int64, len(rows))


def in_utc(time: str, of: str) -> str:
    """Return a time in ISO 8601 as it is stored: in UTC, if its offset is known."""
    try:
        moment = datetime.fromisoformat(time) if time else None
        if moment and moment.tzinfo:
            moment = moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise InputError(
            f"{of}: got {time!r}, expected a time of the years 1 to 9999 in UTC, such as "
            "2026-01-31T14:05:00; correct it"
        ) from None
    return moment.isoformat() if moment else ""


def _path(store: TurnStore, name: str) -> str:
    """Return where a name of metadata stands in their JSON."""
    names = [key for (key,) in store("SELECT DISTINCT key FROM dialogues, json_each(metadata)")]
    if name not in names:
        raise InputError(
            f"scope: got {name!r}, expected one of {', '.join([*_COLUMNS, *_BOUNDS, *names])}"
        )
    return f"$.{json.dumps(name, ensure_ascii=False)}"


def _moment(name: str, value: Any) -> str:
    """Return the time that turns are compared with; a date ends with its day."""
    written = value.isoformat() if isinstance(value, date) else value
    if not isinstance(written, str):
        raise InputError(f"{name}: got {value!r}, expected a date or a datetime of Python's")
    is_day = len(written) <= len("2026-01-31")
    return in_utc(written + "T23:59:59.999999" * (is_day and name == "until"), name)
