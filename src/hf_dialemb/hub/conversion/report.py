"""What a conversion did with every key of a foreign checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Placed:
    """A key whose values are in the model.

    Attributes:
        source: Its name in the foreign checkpoint.
        target: Its name in ours.
        shape: Of the target.
        change: What was done to it, such as ``"transposed"``; empty for nothing.
    """

    source: str
    target: str
    shape: tuple[int, ...]
    change: str


@dataclass
class Report:
    """An account of all keys, those of the source and those of the model.

    Attributes:
        kind: What was read, a key of `convert.KINDS`.
        source: Where it was read from.
        model_type: What it became.
        used: Keys of the source that are in the model.
        made: Keys of the model that need no source, and why.
        dropped: Keys of the source that the model has no use for, and why.
        missing: Keys of the model that the source should have and has not.
        unexpected: Keys of the source that nobody knows.
        notes: What else is to be known, a sentence each.
    """

    kind: str
    source: str
    model_type: str = ""
    used: list[Placed] = field(default_factory=list)
    made: dict[str, str] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether nothing is missing or unexpected."""
        return not self.missing and not self.unexpected

    def to_json(self) -> dict[str, Any]:
        """Returns what ``conversion.json`` holds."""
        return asdict(self)

    def lines(self) -> Iterator[str]:
        """Yields a line for every key, then the sums."""
        for placed in self.used:
            change = f" ({placed.change})" if placed.change else ""
            yield f"used        {placed.source} -> {placed.target} {list(placed.shape)}{change}"
        for key, reason in self.made.items():
            yield f"made        {key}: {reason}"
        for key, reason in self.dropped.items():
            yield f"dropped     {key}: {reason}"
        for name, keys in (("missing", self.missing), ("unexpected", self.unexpected)):
            for key in keys:
                yield f"{name:<11} {key}"
        yield from self.notes
        yield (
            f"{self.model_type}: {len({placed.source for placed in self.used})} keys used, {len(self.made)} made, "
            f"{len(self.dropped)} dropped, {len(self.missing)} missing, {len(self.unexpected)} unexpected"
        )
