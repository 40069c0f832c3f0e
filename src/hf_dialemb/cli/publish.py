"""The commands ``dialemb export`` and ``dialemb publish``: from a checkpoint to the Hub."""

import argparse
from pathlib import Path

from .parser import Commands, add_command, method_option, named, say

_EXPORT = """AutoModel and sentence-transformers load the written folder in fresh processes, and every embedding is
compared. ONNX graphs go into the folder onnx.

example: dialemb export --model runs/dial2vec-minilm --output published/dial2vec-minilm
example: dialemb export --model runs/dse-minilm --output published/dse --int8"""
_PUBLISH = """The folder is that of a training, which is exported first and gets a card; or one that dialemb export
wrote, with its card (dialemb model card). With --repo-type space a metric's name will do, with --repo-type dataset a
folder that dialemb papers corpus unify wrote. The repository then holds just that folder.

Before anything is sent, the folder is checked for pickles, secrets, paths on your machine, damaged or missing files. If
it stops, run it again and it goes on; it makes no commit if nothing has changed. Log in with 'hf auth login'.

example: dialemb publish runs/calls --repo-id org/calls --private
         dialemb publish published/dial2vec-minilm --repo-id org/dial2vec-minilm --verify
         dialemb publish published/dial2vec-minilm --repo-id org/dial2vec-minilm --dry-run"""


def add(commands: Commands) -> None:
    """Add ``dialemb export`` and ``dialemb publish``."""
    summary = "Turn a trained checkpoint into a form that other libraries load, and check it."
    parser = add_command(commands, "export", summary, _EXPORT)
    parser.add_argument("--model", required=True, help="folder of the training, or one of its checkpoints")
    method_option(parser)
    parser.add_argument("--output", type=Path, required=True, help="folder to write; must not exist yet")
    parser.add_argument("--dtype", choices=("bf16", "fp16", "fp32"), help="precision of the weights (default: fp32 for "
                        "encoders of utterances, otherwise as in the checkpoint)")  # fmt: skip
    parser.add_argument("--max-shard-size", help="largest file of weights, such as 1GB; larger weights are split")
    parser.add_argument("--onnx", action="store_true", help="also write an ONNX graph in float32")
    parser.add_argument("--int8", action="store_true", help="also write an 8-bit graph, and measure its loss")
    parser.set_defaults(run=_export)

    summary = "Publish a model, a metric or a dataset on the Hub in one commit."
    parser = add_command(commands, "publish", summary, _PUBLISH)
    parser.add_argument("path", type=Path, help="the folder")
    method_option(parser)
    parser.add_argument("--repo-id", required=True, help="where to: org/name; created if absent")
    parser.add_argument("--repo-type", default="model", help="model, space or dataset (default: model)")
    parser.add_argument("--private", action="store_true", help="create a private repository")
    parser.add_argument("--revision", help="branch, created if absent (default: main)")
    parser.add_argument("--dry-run", action="store_true", help="only list the files and whatever stands in the way")
    parser.add_argument("--verify", action="store_true", help="download it afterwards and compare it with the folder")
    parser.set_defaults(run=_publish)


def _export(options: argparse.Namespace) -> None:
    from ..hub.export import export

    more = named(options, "dtype", "max_shard_size", "onnx", "int8")
    say(f"Wrote {export(options.model, options.output, report=say, **more)}")


def _publish(options: argparse.Namespace) -> None:
    from ..hub.publishing import publish
    from ..hub.push import push

    more = named(options, "private", "revision", "dry_run", "verify")
    if options.repo_type == "model":
        push(options.path, options.repo_id, report=say, **more)
    else:
        publish(options.path, options.repo_id, repo_type=options.repo_type, report=say, **more)
