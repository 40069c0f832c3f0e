"""Ranges of numbers; nothing heavy is imported, so that a wrong number is refused at once."""

from collections.abc import Mapping
from typing import NamedTuple

from .errors import InputError


class Range(NamedTuple):
    """Bounds of a number: ``low <= value <= high``, or ``low < value`` if exclusive."""

    low: float
    high: float | None = None
    exclusive: bool = False


ABOVE_ZERO = Range(0, exclusive=True)
Ranges = Mapping[str, Range]


def check_ranges(settings: object, ranges: Ranges) -> None:
    """Raise InputError unless all settings are in their ranges."""
    for name, allowed in ranges.items():
        check_range(name, getattr(settings, name), *allowed)


def check_range(
    name: str, value: float | None, low: float, high: float | None = None, exclusive: bool = False
) -> None:
    """Raise InputError unless ``low <= value <= high`` (``low < value`` if exclusive).

    None passes.
    """
    if value is None:
        return
    above = value > low if exclusive else value >= low  # NaN is neither
    if not above or (high is not None and value > high):
        bound = f"above {low}" if exclusive else f"at least {low}"
        if high is not None and not exclusive:
            bound = f"between {low} and {high}"
        raise InputError(
            f"{name}: got {value}, expected a value {bound}; change it in the config or on the "
            "command line"
        )
