"""The group ``dialemb model``: merge trainings, distil an encoder into a table, write a model card."""

import argparse

from ..errors import InputError
from .parser import (
    TEXTS,
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
    group, texts = add_group(commands, "model"), TEXTS["model"]
    method_option(add_command(group, "merge", _merge, texts))
    parser = add_command(group, "distil", _distil, texts)
    method_option(parser)
    conversations(parser, "corpus", "sets to learn from: sgd/train, files, ...", several=True)
    own_options(parser)
    method_option(add_command(group, "card", _card, texts))


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
