"""The command ``dialemb convert``: official checkpoints into this package's own."""

from __future__ import annotations

import argparse
from pathlib import Path

from ...cli.parser import Parser, add_command, say

_HELP = """kinds:
  plato                  PLATO's parameters of paddle (file, folder, model.tar.gz) or PLATO.pt; as dial2vec's backbone
  dial2vec               a .best_model.pkl of dial2vec's program, over PLATO
  transformers           folder or Hub id: aws-ai/dse-*, sergioburdisso/dialog2flow-*, TODBERT/*, any encoder
  sentence-transformers  folder or Hub id: a transformer and the mean of its tokens

Pickles cannot run code here: only tensors are read from them. The command prints what it did with every key, and
writes that to conversion.json beside the weights.

example: dialemb convert --from plato --input model.tar.gz --vocab vocab.txt --output plato"""


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Adds the command."""
    parser = add_command(commands, "convert", "Turn an official checkpoint into one that this package loads.", _HELP)
    parser.add_argument("--from", dest="kind", required=True, metavar="KIND", help="see below")
    parser.add_argument("--input", required=True, help="file, folder or Hub id")
    parser.add_argument("--output", type=Path, required=True, help="folder to write; must not exist yet")
    parser.add_argument("--vocab", type=Path, help="WordPiece vocabulary (default: vocab.txt beside the weights)")
    parser.add_argument(
        "--method", help="dse, dialog2flow, dialogue_cse or dial2vec (default: the kind's own; dse for encoders)"
    )
    parser.add_argument("--partial", action="store_true", help="convert even if keys are missing or unexpected")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from ..conversion.convert import Request, convert

    request = Request(options.kind, options.input, options.vocab, options.method)
    for line in convert(request, options.output, options.partial):
        say(line)
    say(f"Wrote {options.output}")
