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
    name: f"dialogues.{name}" for name in ("user", "id", "domains", "digest", "metadata")
} | {
    name: f'turns."{name}"' for name in ("row", "turn", "role", "speaker", "time", "text", "words")
}
_ALSO = {"dialogue": "id"}
_PART = {"since": ">=", "until": "<="}


def chosen_rows(store: TurnStore, where: str | None, scope: Mapping[str, Any]) -> NDArray[np.int64]:
    """Return the rows of the turns that fulfil a condition in SQL, and have all values of a scope.

    Args:
        store: The turns.
        where: A condition on the columns ``user``, ``id``, ``domains``, ``turn``, ``role``,
            ``speaker``, ``time``, ``text`` and ``words``, and the names of metadata.
        scope: Values by ``row``, ``user``, ``dialogue``, ``turn``, ``role``, ``speaker``,
            ``since``, ``until`` or a name of metadata; a list stands for any of its values.

    Raises:
        InputError: The condition is none, or a name or a time is unknown.
    """
    scope = {_ALSO.get(name, name): value for name, value in scope.items()}
    columns = dict(_COLUMNS)
    if where is not None or scope.keys() - columns.keys() - _PART.keys():
        columns |= _metadata_columns(store)
    conditions: list[str] = ["TRUE"]
    values: list[Any] = []
    for name, value in scope.items():
        if name in _PART:
            conditions.append(f"time <> '' AND time {_PART[name]} ?")
            values.append(_moment(name, value))
            continue
        if name not in columns:
            raise InputError(
                f"scope: got {name!r}, expected one of {', '.join([*_ALSO, *_PART, *columns])}"
            )
        listed = list(value) if isinstance(value, list | tuple | set) else [value]
        conditions.append(f"{_quoted(name)} IN ({', '.join('?' * len(listed))})")
        values += [float(item) if isinstance(item, int) else item for item in listed]
    if where is not None:
        conditions.append(_checked(store, where, columns))
    rows = store(f"{_selected(columns)} WHERE {' AND '.join(conditions)}", *values)
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


def _metadata_columns(store: TurnStore) -> dict[str, str]:
    names = [name for (name,) in store("SELECT DISTINCT key FROM dialogues, json_each(metadata)")]
    paths = {name: _quoted(f"$.{json.dumps(name, ensure_ascii=False)}", "'") for name in names}
    return {
        f"metadata_{name}" if name.lower() in _COLUMNS else name: (
            f"json_extract(dialogues.metadata, {path})"
        )
        for name, path in paths.items()
    }


def _selected(columns: Mapping[str, str], what: str = '"row"') -> str:
    listed = ", ".join(f"{expression} AS {_quoted(name)}" for name, expression in columns.items())
    inner = f"SELECT {listed} FROM turns JOIN dialogues ON number = dialogue"
    return f"SELECT {what} FROM ({inner})"


def _checked(store: TurnStore, where: str, columns: Mapping[str, str]) -> str:
    """Return a condition in brackets, of its own line; refuse what is not one whole expression."""
    condition = f"(\n{where}\n)"
    try:
        if not isinstance(where, str) or "\0" in where:
            raise InputError("it is no text")
        # whatever leaves its brackets fits only one of both
        for whole in (condition, f"coalesce(\n{where}\n, FALSE)"):
            store(f"EXPLAIN {_selected(columns, whole)} WHERE {whole}")
    except InputError as error:
        reason = str(error).partition("(")[2].partition(");")[0] or str(error)
        raise InputError(
            f"where: got {where!r:.200}, which is no condition on the columns ({reason}); write it "
            f"as \"team = 'cards' and time > '2026-01-01'\", with the columns {', '.join(columns)}"
        ) from None
    return condition


def _moment(name: str, value: Any) -> str:
    """Return the time that turns are compared with; a date ends with its day."""
    if isinstance(value, datetime):
        return in_utc(value.isoformat(), name)
    if not isinstance(value, date):
        raise InputError(f"{name}: got {value!r}, expected a date or a datetime of Python's")
    later = timedelta(days=int(name == "until"), microseconds=-int(name == "until"))
    return (datetime(value.year, value.month, value.day) + later).isoformat()


def _quoted(text: str, mark: str = '"') -> str:
    return f"{mark}{text.replace(mark, 2 * mark)}{mark}"
