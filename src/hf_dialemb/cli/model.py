"""The commands ``dialemb export``, ``publish`` and ``model``: what is made of a trained encoder."""

import argparse

from ..errors import InputError
from .parser import TEXTS, Commands, add_command, add_group, named, reading_of, say


def add(commands: Commands) -> None:
    """Add the commands and the group."""
    add_command(commands, "export", _export)
    add_command(commands, "publish", _publish)
    group = add_group(commands, "model")
    for name, run in (("merge", _merge), ("distil", _distil), ("card", _card)):
        add_command(group, name, run, TEXTS["model"])


def _export(options: argparse.Namespace) -> None:
    from ..hub.export import export

    more = named(options, "dtype", "max_shard_size", "onnx", "int8")
    say(f"Wrote {export(options.model, options.output, report=say, **more)}")


def _publish(options: argparse.Namespace) -> None:
    from ..hub.publishing import publish, push

    more = named(options, "private", "revision", "dry_run", "verify")
    if options.repo_type == "model":
        push(options.path, options.repo_id, report=say, **more)
    else:
        publish(options.path, options.repo_id, repo_type=options.repo_type, report=say, **more)


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
