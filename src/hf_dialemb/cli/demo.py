"""The command ``dialemb demo``: every step on real conversations."""

from __future__ import annotations

import argparse
from pathlib import Path

from .parser import Parser, add_command, say


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "demo",
        "Train an encoder on a part of STAR that comes with the package; measure, export, search and draw a flow.",
        "example: dialemb demo --output demo",
    )
    parser.add_argument("--output", type=Path, default=Path("demo"), help="folder for everything the demo writes")
    parser.add_argument("--max-steps", type=int, default=None, help="shorten the training (default: the recipe's)")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from ..demo import run_demo

    run_demo(options.output, options.max_steps, say)
