"""The commands ``dialemb export`` and ``dialemb publish``: from a checkpoint to the Hub."""

import argparse

from .parser import Commands, add_command, method_option, named, say


def add(commands: Commands) -> None:
    """Add ``dialemb export`` and ``dialemb publish``."""
    method_option(add_command(commands, "export", _export))
    method_option(add_command(commands, "publish", _publish))


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
