"""What users say of their files, where a file can be read in more than one way."""

import re
from dataclasses import dataclass, field, fields
from datetime import timedelta

from ..errors import InputError

DATE_ORDERS = ("day-first", "month-first")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


@dataclass
class ReadingOptions:
    """How files are read; what is None, the whole file decides.

    Attributes:
        columns: The columns of a table, as id=call,role=speaker,content=text.
        roles: The speakers' roles, as Agent=assistant,Customer=user.
        dates: The order of numbers in dates, day-first or month-first.
        gap: The pause that ends a conversation, as 4h, 30m or 2d.
        sheet: The sheet of a workbook to be read, or all.
        strict: Stop at what cannot be used, and guess nothing. By default it is left out.
        raw: Keep HTML, quoted mail and signatures.
        revision: The branch, tag or commit of a dataset on the Hub.
        token: The token for a dataset on the Hub.

    Raises:
        InputError: A value is not of its form.
    """

    columns: str | None = None
    roles: str | None = None
    dates: str | None = None
    gap: str | None = None
    sheet: str | None = None
    strict: bool = False
    raw: bool = False
    revision: str | None = None
    token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.dates not in (None, *DATE_ORDERS):
            raise InputError(
                f"dates: got {self.dates!r}, expected {' or '.join(DATE_ORDERS)}; correct it"
            )
        if self.gap is not None and not re.fullmatch(r"[1-9]\d{0,5}[mhd]", self.gap):
            raise InputError(
                f"gap: got {self.gap!r}, expected a number of minutes, hours or days such as 30m, "
                "4h or 2d"
            )

    @property
    def chosen(self) -> dict[str, str | bool]:
        """The options that are not left to the file."""
        return {name: value for name in OPTIONS if (value := getattr(self, name))}

    @property
    def pause(self) -> timedelta | None:
        """The pause that ends a conversation."""
        return None if self.gap is None else timedelta(**{_UNITS[self.gap[-1]]: int(self.gap[:-1])})


OPTIONS = tuple(item.name for item in fields(ReadingOptions))[:-2]
"""The names of the options of files; the others are of the Hub."""
