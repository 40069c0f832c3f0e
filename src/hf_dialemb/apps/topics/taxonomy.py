"""Read topics that are given, with a description and examples, and assign dialogues to them."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...metrics.vectors import unit
from .edits import NOWHERE, Group, Groups

_COLUMNS = ("name", "description", "examples")
_BETWEEN = "|"  # examples
# the least cosine of a dialogue with what a topic is described by; chosen on the development split
# of SGD
_LIKE = 0.4


def read_taxonomy(path: Path) -> dict[str, list[str]]:
    """Read a table with the columns name, description and examples, between which there are bars.

    Returns for each name the texts that describe the topic: name, description, examples. An
    InputError says that the file cannot be read, lacks a column, or has a row without a name or
    with one a second time.
    """
    try:
        table = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline=""))
        columns, rows = list(table.fieldnames or ()), list(table)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"{path}: cannot be read ({error}); save the taxonomy as CSV in UTF-8"
        ) from None
    if "name" not in columns or not set(columns) <= set(_COLUMNS):
        got = ", ".join(map(str, columns)) or "nothing"
        raise InputError(
            f"{path}: got the columns {got}, expected name, description and examples; rename them"
        )
    texts: dict[str, list[str]] = {}
    for number, row in enumerate(rows, 2):
        name = (row["name"] or "").strip()
        if not name or name in texts or None in row:
            got = (
                f"'{name}' a second time"
                if name in texts
                else "no name"
                if not name
                else "more cells than columns"
            )
            raise InputError(
                f"{path}, row {number}: got {got}, expected a topic with a name of its own; "
                "correct it"
            )
        examples = (row.get("examples") or "").split(_BETWEEN)
        texts[name] = [
            text for text in map(str.strip, (name, row.get("description") or "", *examples)) if text
        ]
    if not texts:
        raise InputError(f"{path}: got no row, expected a topic in each; add some")
    return texts


def taxonomy_groups(
    texts: dict[str, list[str]],
    units: NDArray[np.float32],
    encode: Callable[[list[str]], NDArray[np.float32]],
) -> Groups:
    """Assign dialogues to given topics, first by what describes these, then by the means of their
    dialogues.

    ``texts`` are those of `read_taxonomy`, ``units`` the unit vectors of the dialogues, ``(N, D)``;
    ``encode`` encodes texts in the same space, ``(P, D)``.
    """
    means = np.stack([unit(encode(own)).mean(axis=0) for own in texts.values()])
    near = units @ unit(means).T
    labels = np.where(near.max(axis=1) >= _LIKE, near.argmax(axis=1), NOWHERE)
    for number in range(len(means)):
        if (labels == number).any():
            means[number] = units[labels == number].mean(axis=0)
    topics = tuple(Group(f"topic-{number}", name) for number, name in enumerate(texts, 1))
    groups = Groups(topics, means, np.full(len(units), NOWHERE, dtype=np.int32), len(topics))
    return replace(groups, labels=groups.assigned(units))
