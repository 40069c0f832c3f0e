"""Texts of messages without markup, quoted mail and signatures."""

from collections.abc import Mapping
from typing import Any


class Texts:
    """The texts of a file: `see` all of them, then `clean` them."""

    def __init__(self, raw: bool = False) -> None:
        self.raw = raw

    def see(self, message: Mapping[str, Any], mail: bool) -> None:
        """Take a message into account."""

    def clean(self, message: Mapping[str, Any], mail: bool) -> str:
        """Return the text of a message."""
        return str(message["content"])

    def remarks(self) -> list[str]:
        """Return what was removed, counted."""
        return []
