"""Figures that differ by no more than noise, by paired differences over the same items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..tasks.sampling import mean_interval
from .rows import Row, place_of


def with_ties(rows: Sequence[Row]) -> list[Row]:
    """Name in every row the models of the same run that it ties with.

    Two figures tie if the 95 % bootstrap interval of the mean of their paired differences holds 0. The pairs are the
    items that both models were measured on, or the repeats. Figures without pairs tie with none.
    """
    places: dict[object, list[Row]] = {}
    for row in rows:
        if row.quoted_from is None and len(row.scores) > 1:
            places.setdefault((place_of(row), len(row.scores)), []).append(row)
    tied: dict[int, list[str]] = {}
    for compared in places.values():
        for place, row in enumerate(compared):
            for other in compared[:place]:
                low, high = mean_interval(np.subtract(row.scores, other.scores))
                if low <= 0 <= high:
                    tied.setdefault(id(row), []).append(other.model)
                    tied.setdefault(id(other), []).append(row.model)
    return [replace(row, tied=tuple(tied[id(row)])) if id(row) in tied else row for row in rows]
