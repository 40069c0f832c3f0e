"""Times of a column of a file: its form is that of all its values."""

from datetime import UTC, datetime
from typing import NamedTuple

from ...dialogue import iso_time
from ...errors import InputError

_LONG_AGO = 1e8  # seconds since 1970; a smaller number counts from the start of a recording


class Moment(NamedTuple):
    """A time: as ISO 8601, and in seconds since 1970; empty, and in seconds of a recording."""

    iso: str
    seconds: float


class Times:
    """The times of a column: `see` all of them, then `read` them."""

    sorts = True  # whether their order is sure

    def __init__(self, dates: str | None = None) -> None:
        self.day_first = dates == "day-first"

    def see(self, value: object) -> None:
        """Take a value into account."""

    def read(self, value: object) -> Moment | None:
        """Return a moment; None where there is no day."""
        try:
            number = float(value)  # type: ignore[arg-type]
            if number < _LONG_AGO:
                return Moment("", number)  # seconds of a recording
            iso = iso_time(number / (1000 if number > 1000 * _LONG_AGO else 1))
        except (TypeError, ValueError, InputError):
            import pandas

            time = pandas.to_datetime(str(value), errors="coerce", format="mixed", dayfirst=self.day_first)
            iso = "" if pandas.isna(time) else str(time.isoformat())
        if not iso:
            return None
        moment = datetime.fromisoformat(iso)
        return Moment(iso, (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())

    def remarks(self) -> list[tuple[str, str]]:
        """Return what is to be told: a severity, and a sentence."""
        return []
