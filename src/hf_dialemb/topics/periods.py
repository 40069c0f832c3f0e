"""Counts topics over time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

_MOST = 60  # so many periods a curve has at most, unless years are more
_UNITS = {"h": "hour", "D": "day", "W": "week", "M": "month", "Y": "year"}


def counted_periods(
    times: Sequence[str], labels: NDArray[np.int32], topics: int
) -> tuple[list[str], str, NDArray[np.int64]]:
    """Counts the dialogues of each topic in each period, in the finest unit that leaves a readable number of periods.

    ``times`` are ISO 8601 or empty. Returns the beginnings of the P periods, their unit, and counts ``(topics, P)``;
    nothing where no dialogue has a time.
    """
    rows = [row for row, time in enumerate(times) if time]
    if not rows:
        return [], "", np.zeros((topics, 0), dtype=np.int64)
    moments = np.array([_moment(times[row]) for row in rows], dtype="datetime64[s]")
    for unit in _UNITS:
        places = moments.astype(f"datetime64[{unit}]").astype(np.int64)
        if np.ptp(places) < _MOST:
            break
    first = int(places.min())
    counts = np.zeros((topics, int(np.ptp(places)) + 1), dtype=np.int64)
    np.add.at(counts, (labels[rows], places - first), 1)
    begins = np.arange(first, first + counts.shape[1]).astype(f"datetime64[{unit}]")
    return [str(day.astype("datetime64[D]")) if unit == "W" else str(day) for day in begins], _UNITS[unit], counts


def _moment(time: str) -> datetime:
    moment = datetime.fromisoformat(time)
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
