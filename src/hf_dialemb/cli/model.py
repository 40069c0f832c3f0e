"""The group ``dialemb model``: merge trainings, distil an encoder into a table, write a model card."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..errors import InputError
from . import card
from .parser import Parser, add_command, add_group, conversations, named, own_options, say

_MERGE = """This adds to the backbone what each training changed, times its weight. The result is a run folder like any
other. With --rank it also holds a LoRA adapter.

example: dialemb model merge --backbone all-MiniLM-L6-v2 --model runs/dse=1 runs/dialogue-cse=1 --output runs/both
example: dialemb model merge --backbone all-MiniLM-L6-v2 --model runs/dse runs/dialogue-cse runs/flow --output runs/best
         --choose-by sgd/dev multiwoz/dev"""
_DISTIL = "example: dialemb model distil sgd/train multiwoz/train --model runs/merged --output runs/static"


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the group and its commands."""
    group = add_group(commands, "model", "Merge or distil models, or write a card: merge, distil, card.", _DISTIL)
    _add_merge(group)
    _add_distil(group)
    card.add(group)


def _add_merge(group: argparse._SubParsersAction[Parser]) -> None:
    parser = add_command(group, "merge", "Merge trainings of one backbone into one encoder.", _MERGE)
    parser.add_argument("--backbone", required=True, help="folder or Hub id of the model that all of them started from")
    parser.add_argument("--model", nargs="+", required=True, help="FOLDER=WEIGHT ..., or FOLDER for a weight of 1")
    parser.add_argument("--rank", type=int, help="keep only this many singular values of the change, as a LoRA adapter")
    parser.add_argument("--choose-by", nargs="+", help="choose weights on these sets, such as sgd/dev (by labels) or "
                        "speakers:sgd/dev (without labels); OUTPUT-search.json keeps each try")  # fmt: skip
    parser.add_argument("--data-dir", help="folder that holds the corpora, unpacked or packed")
    parser.add_argument(
        "--limit", type=int, default=300, help="use at most this many dialogues of each set (default: 300)"
    )
    parser.add_argument("--max-tokens", type=int, default=512, help="where texts are cut (default: 512)")
    parser.add_argument("--output", type=Path, required=True, help="folder to write; must not exist yet")
    parser.set_defaults(run=_merge)


def _merge(options: argparse.Namespace) -> None:
    parts = dict(map(_weighted, options.model))
    if len(parts) < len(options.model):
        raise InputError("--model: got one folder twice, expected each once; add their weights")
    from ..training.merge import merge

    if options.choose_by:
        if any(path + "=" in given for path, given in zip(parts, options.model, strict=True)):
            raise InputError("--choose-by: got weights in --model too; leave them out")
        from ..training.merge_search import Search

        log = options.output.with_name(f"{options.output.name}-search.json")
        more = named(options, "rank", "data_dir", "limit")
        parts = Search(options.backbone, [*parts], options.choose_by, log, **more).best()
        say("Chosen: " + " ".join(f"{path}={weight:g}" for path, weight in parts.items()))
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


def _add_distil(group: argparse._SubParsersAction[Parser]) -> None:
    summary = "Distil an encoder of texts into a table of word vectors: many times faster, small, no labels needed."
    parser = add_command(group, "distil", summary, _DISTIL)
    parser.add_argument("--model", required=True, help="folder or Hub id of an encoder of texts, the teacher")
    conversations(parser, "corpus", "sets to learn from: sgd/train, files, ...", several=True)
    parser.add_argument("--data-dir", help="folder that holds the corpora, unpacked or packed")
    own_options(parser)
    parser.add_argument("--exclude", nargs="+", metavar="SET", help="evaluation sets to keep out, such as sgd/test")
    parser.add_argument("--output", type=Path, required=True, help="folder to write; must not exist yet")
    parser.add_argument("--dimensions", type=int, default=256, help="width of the vectors (default: 256)")
    help = "at most this many texts of several turns, one of a dialogue (default: 60000)"
    parser.add_argument("--runs", type=int, default=60_000, help=help)
    parser.add_argument("--passes", type=int, default=6, help="how often it sees each text (default: 6)")
    parser.add_argument("--seed", type=int, default=0, help="for drawing texts and their order (default: 0)")
    parser.set_defaults(run=_distil)


def _distil(options: argparse.Namespace) -> None:
    from ..training.distil import distil

    more = named(options, "data_dir", "columns", "roles", "exclude", "dimensions", "runs", "passes", "seed")
    run = distil(options.model, options.corpus, output_dir=options.output, **more)
    say(f"Wrote {run.path}")
