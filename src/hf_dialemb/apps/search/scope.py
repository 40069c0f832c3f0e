"""Choose turns by whose they are, who said them and when, and by what is known of their dialogues.

Whatever is left out of a search is left out before anything is scored.
"""

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from .turn_store import TurnStore

_COLUMNS = {
    "user": "dialogues.user",
    "dialogue": "dialogues.id",
    **{name: f'turns."{name}"' for name in ("row", "turn", "role", "speaker")},
}
_PART = {"since": ">=", "until": "<="}


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
        if name in _PART:
            conditions.append(f"turns.time <> '' AND turns.time {_PART[name]} ?")
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
        expected = "a time of the years 1 to 9999 in UTC, such as 2026-01-31T14:05:00"
        raise InputError(f"{of}: got {time!r}, expected {expected}; correct it") from None
    return moment.isoformat() if moment else ""


def _path(store: TurnStore, name: str) -> str:
    """Return where a name of metadata stands in their JSON."""
    names = [key for (key,) in store("SELECT DISTINCT key FROM dialogues, json_each(metadata)")]
    if name not in names:
        known = ", ".join([*_COLUMNS, *_PART, *names])
        raise InputError(f"scope: got {name!r}, expected one of {known}")
    return f"$.{json.dumps(name, ensure_ascii=False)}"


def _moment(name: str, value: Any) -> str:
    """Return the time that turns are compared with; a date ends with its day."""
    try:
        day = date.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        return in_utc(value, name)
    if isinstance(day, datetime):
        return in_utc(day.isoformat(), name)
    if not isinstance(day, date):
        raise InputError(f"{name}: got {value!r}, expected a date or a datetime of Python's")
    later = timedelta(days=int(name == "until"), microseconds=-int(name == "until"))
    return (datetime(day.year, day.month, day.day) + later).isoformat()
