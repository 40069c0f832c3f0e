"""The command ``dialemb papers``: what reproduces the five papers."""

from __future__ import annotations

import argparse
from importlib import import_module

from ...cli.parser import Parser, add_command

_COMMANDS = ("benchmark", "ensemble", "convert", "flow")
_HELP = "example: dialemb papers benchmark --suite dial2vec --output runs/measured --model all-MiniLM-L6-v2"


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the command with its own commands."""
    parser = add_command(commands, "papers", "Reproduce the five papers: benchmark, ensemble, convert, flow.", _HELP)
    inner = parser.add_subparsers(dest="papers_command", required=True, metavar="command", parser_class=Parser)
    for name in _COMMANDS:
        import_module(f"{__name__}.{name}").add(inner)
