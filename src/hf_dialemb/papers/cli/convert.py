"""The command ``dialemb papers convert``: PLATO's released checkpoints into dial2vec's."""

from __future__ import annotations

import argparse
from pathlib import Path

from ...cli.parser import Parser, add_command, named, say

_HELP = """The input is PLATO's parameters of paddle (a file, a folder or model.tar.gz), PLATO.pt of its port to
torch, or a .best_model.pkl of dial2vec's program. Encoders that transformers reads (aws-ai/dse-*, TODBERT/*,
sergioburdisso/dialog2flow-*) need no conversion: give their name as --model or --backbone.

No code in a pickle runs. The command prints the fate of every key, and writes it to conversion.json beside the weights.

example: dialemb papers convert model.tar.gz --vocab vocab.txt --output plato"""


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the command."""
    parser = add_command(commands, "convert", "Turn a checkpoint of PLATO into one that this package loads.", _HELP)
    parser.add_argument("source", metavar="input", help="file, folder or archive with the weights")
    parser.add_argument("--output", type=Path, required=True, help="folder to write; must not exist yet")
    parser.add_argument(
        "--vocab", dest="vocabulary", help="WordPiece vocabulary (default: vocab.txt beside the weights)"
    )
    parser.add_argument("--partial", action="store_true", help="convert even if keys are missing or unexpected")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from ..conversion.convert import convert

    say(f"Wrote {convert(options.source, options.output, report=say, **named(options, 'vocabulary', 'partial'))}")
