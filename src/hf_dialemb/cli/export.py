"""The command ``dialemb export``: from a training checkpoint to the form that other libraries load."""

from __future__ import annotations

import argparse
from pathlib import Path

from .parser import Parser, add_command, named, say

_HELP = """AutoModel and sentence-transformers load the written folder in fresh processes, and every embedding is
compared. ONNX graphs go into the folder onnx.

example: dialemb export --model runs/dial2vec-minilm --output published/dial2vec-minilm
example: dialemb export --model runs/dse-minilm --output published/dse --int8"""


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the command."""
    parser = add_command(
        commands, "export", "Turn a trained checkpoint into a form that other libraries load, and check it.", _HELP
    )
    parser.add_argument("--model", required=True, help="folder of the training, or one of its checkpoints")
    parser.add_argument("--output", type=Path, required=True, help="folder to write; must not exist yet")
    parser.add_argument("--dtype", choices=("bf16", "fp16", "fp32"), help="precision of the weights (default: fp32 for "
                        "encoders of utterances, otherwise as in the checkpoint)")  # fmt: skip
    parser.add_argument("--max-shard-size", help="largest file of weights, such as 1GB; larger weights are split")
    parser.add_argument("--onnx", action="store_true", help="also write an ONNX graph in float32")
    parser.add_argument("--int8", action="store_true", help="also write an 8-bit graph, and measure its loss")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from ..hub.export import export

    more = named(options, "dtype", "max_shard_size", "onnx", "int8")
    say(f"Wrote {export(options.model, options.output, report=say, **more)}")
