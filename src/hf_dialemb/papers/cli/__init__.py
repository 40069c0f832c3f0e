"""The group ``dialemb papers``: reproduce the five papers."""

from __future__ import annotations

import argparse
from importlib import import_module

from ...cli.parser import Parser, add_group

_COMMANDS = ("benchmark", "ensemble", "convert", "flow", "corpus")
_HELP = "example: dialemb papers benchmark --suite dial2vec --output runs/measured --model all-MiniLM-L6-v2"


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the group and its commands."""
    summary = "Reproduce the five papers: benchmark, ensemble, convert, flow, corpus."
    group = add_group(commands, "papers", summary, _HELP)
    for name in _COMMANDS:
        import_module(f"{__name__}.{name}").add(group)
