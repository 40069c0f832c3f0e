"""The group ``dialemb model``: merge trainings, distil an encoder into a table, write a model card."""

import argparse
from pathlib import Path

from ..errors import InputError
from .parser import (
    HELP,
    Commands,
    add_command,
    add_group,
    conversations,
    method_option,
    named,
    own_options,
    reading_of,
    say,
)


def add(commands: Commands) -> None:
    """Add the group and its commands."""
    group = add_group(commands, "model")
    parser = add_command(group, "merge", _merge, HELP["model"])
    parser.add_argument("--backbone", required=True, help="folder or Hub id of the model that all of them started from")
    parser.add_argument("--model", nargs="+", required=True, help="FOLDER=WEIGHT ..., or FOLDER for a weight of 1")
    method_option(parser)
    parser.add_argument("--rank", type=int, help="keep only this many singular values of the change, as a LoRA adapter")
    parser.add_argument("--max-tokens", type=int, default=512, help="where texts are cut (default: 512)")
    parser.add_argument("--output", type=Path, required=True, help="folder to write; must not exist yet")

    parser = add_command(group, "distil", _distil, HELP["model"])
    parser.add_argument("--model", required=True, help="folder or Hub id of an encoder of texts, the teacher")
    method_option(parser)
    conversations(parser, "corpus", "sets to learn from: sgd/train, files, ...", several=True)
    parser.add_argument("--data-dir", help="folder that holds the corpora, unpacked or packed")
    own_options(parser)
    parser.add_argument("--exclude", nargs="+", metavar="SET", help="evaluation sets to keep out, such as sgd/test")
    parser.add_argument("--output", type=Path, required=True, help="folder to write; must not exist yet")
    for name, default, meaning in (
        ("--dimensions", 256, "width of the vectors"),
        ("--runs", 60_000, "at most this many texts of several turns, one of a dialogue"),
        ("--passes", 6, "how often it sees each text"),
        ("--seed", 0, "for drawing texts and their order"),
    ):
        parser.add_argument(name, type=int, default=default, help=f"{meaning} (default: {default})")

    parser = add_command(group, "card", _card, HELP["model"])
    parser.add_argument("--model", type=Path, required=True, help="folder that dialemb export wrote")
    method_option(parser)
    parser.add_argument("--run", dest="training", type=Path, required=True, help="folder of the training")
    parser.add_argument("--results", type=Path, nargs="+", default=[], help="results files of the model, if any")
    parser.add_argument("--repo-id", help="where you will publish it (default: org/ and the folder's name)")
    parser.add_argument("--corpus-licence", nargs="+", default=[], metavar="NAME=TERMS:LICENCE", help="see below")
    help = "file to write (default: README.md of the folder, with its figures in results/)"
    parser.add_argument("--output", type=Path, help=help)
    parser.add_argument("--record", type=Path, help="keep the card's sources from both folders in this file")


def _merge(options: argparse.Namespace) -> None:
    parts = dict(map(_weighted, options.model))
    if len(parts) < len(options.model):
        raise InputError("--model: got one folder twice, expected each once; add their weights")
    from ..training.merge import merge

    run = merge(options.backbone, parts, options.rank, output_dir=options.output, max_tokens=options.max_tokens)
    say(f"Wrote {run.path}")


def _weighted(given: str) -> tuple[str, float]:
    path, _, weight = given.rpartition("=")
    if not path:
        return given, 1.0
    try:
        return path, float(weight)
    except ValueError:
        raise InputError(f"--model {given}: got the weight {weight!r}, expected a number, as in {path}=0.5") from None


def _distil(options: argparse.Namespace) -> None:
    from ..training.distil import distil

    more = named(options, "data_dir", "exclude", "dimensions", "runs", "passes", "seed") | reading_of(options)
    run = distil(options.model, options.corpus, output_dir=options.output, **more)
    say(f"Wrote {run.path}")


def _card(options: argparse.Namespace) -> None:
    from ..hub.card.card import write_card

    parts = [word.rpartition("=") for word in options.corpus_licence]
    if wrong := next((licence for name, _, licence in parts if not name), ""):
        raise InputError(f"--corpus-licence {wrong}: expected NAME=TERMS:LICENCE; write the corpus before a =")
    more = {"licences": {name: licence for name, _, licence in parts}, **named(options, "repo_id", "output", "record")}
    for path in write_card(options.model, options.training, options.results, **more):
        say(f"Wrote {path}")
