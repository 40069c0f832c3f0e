"""Turns in an SQLite database, in a folder or in memory.

A transaction that ends is on the disk; one that is killed never was. What is deleted is
overwritten.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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
        values = self("SELECT value FROM record")
        return json.loads(values[0][0]) if values else {}

    def write_record(self, record: dict[str, Any]) -> None:
        """Record something of the index, in place of what was recorded."""
        self("DELETE FROM record")
        self("INSERT INTO record VALUES (?)", json.dumps(record))
