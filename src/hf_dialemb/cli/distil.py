"""The command ``dialemb distil``: an encoder of texts becomes a table of word vectors."""

from __future__ import annotations

import argparse
from pathlib import Path

from .parser import Parser, add_command, named, own_options, say


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "distil",
        "Distil an encoder of texts into a table of word vectors: many times faster, small, no labels needed.",
        "example: dialemb distil --teacher runs/merged --corpus sgd/train multiwoz/train --output runs/static",
    )
    parser.add_argument("--teacher", required=True, help="folder or Hub id of an encoder of texts")
    parser.add_argument("--corpus", nargs="+", required=True, help="what to learn from: sgd/train, files, ...")
    parser.add_argument("--data-dir", help="folder that holds the corpora, unpacked or packed")
    own_options(parser)
    parser.add_argument("--exclude", nargs="+", metavar="SET", help="evaluation sets to keep out, such as sgd/test")
    parser.add_argument("--output", type=Path, required=True, help="folder to write; must not exist yet")
    parser.add_argument("--dimensions", type=int, default=256, help="width of the vectors (default: 256)")
    several = "at most so many texts of several turns, one of a dialogue (default: 60000)"
    parser.add_argument("--runs", type=int, default=60_000, help=several)
    parser.add_argument("--passes", type=int, default=6, help="how often it sees each text (default: 6)")
    parser.add_argument("--seed", type=int, default=0, help="for drawing texts and their order (default: 0)")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from ..training.distil import distil

    more = named(options, "data_dir", "columns", "roles", "exclude", "dimensions", "runs", "passes", "seed")
    run = distil(options.teacher, options.corpus, output_dir=options.output, **more)
    say(f"Wrote {run.path}")
