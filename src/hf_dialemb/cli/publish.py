"""The commands ``dialemb export`` and ``dialemb publish``: from a checkpoint to the Hub."""

import argparse
from pathlib import Path

from .parser import Commands, add_command, method_option, named, say


def add(commands: Commands) -> None:
    """Add ``dialemb export`` and ``dialemb publish``."""
    parser = add_command(commands, "export", _export)
    parser.add_argument("--model", required=True, help="folder of the training, or one of its checkpoints")
    method_option(parser)
    parser.add_argument("--output", type=Path, required=True, help="folder to write; must not exist yet")
    parser.add_argument("--dtype", choices=("bf16", "fp16", "fp32"), help="precision of the weights (default: fp32 for "
                        "encoders of utterances, otherwise as in the checkpoint)")  # fmt: skip
    parser.add_argument("--max-shard-size", help="largest file of weights, such as 1GB; larger weights are split")
    parser.add_argument("--onnx", action="store_true", help="also write an ONNX graph in float32")
    parser.add_argument("--int8", action="store_true", help="also write an 8-bit graph, and measure its loss")

    parser = add_command(commands, "publish", _publish)
    parser.add_argument("path", type=Path, help="the folder")
    method_option(parser)
    parser.add_argument("--repo-id", required=True, help="where to: org/name; created if absent")
    parser.add_argument("--repo-type", default="model", help="model, space or dataset (default: model)")
    parser.add_argument("--private", action="store_true", help="create a private repository")
    parser.add_argument("--revision", help="branch, created if absent (default: main)")
    parser.add_argument("--dry-run", action="store_true", help="only list the files and whatever stands in the way")
    parser.add_argument("--verify", action="store_true", help="download it afterwards and compare it with the folder")


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
