"""The command ``dialemb model card``: the model card of a published folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..errors import InputError
from .parser import Parser, add_command, named, say

_HELP = """Figures are optional: without --results the card says that it has none. They come from dialemb papers
benchmark or dialemb evaluate, for the model and for its backbone (for an ensemble: the single ranker) to compare with.
If the model learnt from your own file, give that file's licence:
--corpus-licence 'calls.jsonl=permissive:CC BY 4.0' (permissive, share-alike or research).

example: dialemb model card --model published/dse-minilm --run runs/dse-minilm --results benchmark/dse.json"""


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the command."""
    parser = add_command(commands, "card", "Write the model card of an exported folder from its results.", _HELP)
    parser.add_argument("--model", type=Path, required=True, help="folder that dialemb export wrote")
    parser.add_argument("--run", dest="training", type=Path, required=True, help="folder of the training")
    parser.add_argument("--results", type=Path, nargs="+", default=[], help="results files of the model, if any")
    parser.add_argument("--repo-id", help="where you will publish it (default: org/ and the folder's name)")
    parser.add_argument("--corpus-licence", nargs="+", default=[], metavar="NAME=TERMS:LICENCE", help="see below")
    parser.add_argument(
        "--output", type=Path, help="file to write (default: README.md of the folder, with its figures in results/)"
    )
    parser.add_argument("--record", type=Path, help="keep the card's sources from both folders in this file")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from ..hub.card.card import write_card

    parts = [word.rpartition("=") for word in options.corpus_licence]
    if wrong := next((licence for name, _, licence in parts if not name), ""):
        raise InputError(f"--corpus-licence {wrong}: expected NAME=TERMS:LICENCE; write the corpus before a =")
    more = {"licences": {name: licence for name, _, licence in parts}, **named(options, "repo_id", "output", "record")}
    for path in write_card(options.model, options.training, options.results, **more):
        say(f"Wrote {path}")
