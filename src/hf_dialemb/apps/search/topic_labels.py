"""Read which topic each dialogue has."""

import csv
from pathlib import Path

from ...errors import InputError, explained
from ..files.table_rows import plain_cell


def read_topics(path: Path) -> dict[str, str]:
    """Read topics from a CSV with the columns ``id`` and ``topic``.

    Of the ``dialogues.csv`` of `dialemb topics`, which has both, the names of topics are read.
    """
    with (
        explained(f"--labels {path}", "give a CSV in UTF-8"),
        path.open(encoding="utf-8-sig", newline="") as file,
    ):
        reader = csv.DictReader(file)
        columns = reader.fieldnames or ()
        if not {"id", "topic"} <= set(columns):
            raise InputError(
                f"--labels {path}: got the columns {', '.join(columns)}, expected id and topic; "
                "rename them, or give the dialogues.csv that dialemb topics wrote"
            )
        topic = "name" if {"name", "similarity"} <= set(columns) else "topic"
        return {plain_cell(row["id"]): row[topic] for row in reader if row["id"] and row[topic]}
