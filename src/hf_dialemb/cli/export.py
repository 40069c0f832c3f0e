"""The command ``dialemb export``: from a training checkpoint to the form that strangers load."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..errors import InputError
from .parser import Parser, add_command, named, own_options, say, split_option

_HELP = """AutoModel and sentence-transformers load the written folder in fresh processes, and every embedding is
compared. ONNX graphs go into the folder onnx.

example: dialemb export --model runs/dial2vec-minilm --output published/dial2vec-minilm
example: dialemb export --model runs/dse-minilm --output published/dse --int8 --corpus clinc150 --data-dir data"""

_TASK_OPTIONS = ("corpus", "data_dir", "split", "columns", "roles", "task", "limit", "seeds")


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Adds the command."""
    parser = add_command(
        commands, "export", "Turn a trained checkpoint into a form that other libraries load, and check it.", _HELP
    )
    parser.add_argument("--model", required=True, help="folder of the training, or one of its checkpoints")
    parser.add_argument("--output", type=Path, required=True, help="folder to write; must not exist yet")
    parser.add_argument("--dtype", choices=("bf16", "fp16", "fp32"), help="precision of the weights (default: fp32 for "
                        "encoders of utterances, otherwise as in the checkpoint)")  # fmt: skip
    parser.add_argument("--max-shard-size", help="largest file of weights, such as 1GB; larger weights are split")
    parser.add_argument("--onnx", action="store_true", help="also write an ONNX graph in float32")
    parser.add_argument("--int8", action="store_true", help="also write an 8-bit graph, and say what it loses")
    group = parser.add_argument_group("where to measure what --int8 loses, besides probe texts")
    group.add_argument("--corpus", help="your own file, folder or Hub dataset, or the name of a public corpus")
    group.add_argument("--data-dir", help="folder that holds the corpora, unpacked or packed")
    split_option(group, "test", default="")
    own_options(group)
    group.add_argument("--task", nargs="+", help="tasks, see dialemb evaluate (default: what suits the corpus)")
    group.add_argument("--limit", type=int, help="measure on a fixed random sample of this many items")
    group.add_argument("--seeds", type=int, help="repeats with other random seeds (default: 10)")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    given = [name for name in _TASK_OPTIONS if getattr(options, name) not in (None, "")]
    for name in given:
        if not options.int8 or options.corpus is None:
            missing = "--corpus" if options.int8 else "--int8"
            raise InputError(f"--{name.replace('_', '-')}: got it without {missing}; add {missing} or leave it out")
    from ..hub.export import export
    from ..hub.forms.precision import WeightForm
    from ..hub.forms.quantisation import TaskChoice

    choice = None
    if options.corpus is not None:
        more = {"split": options.split or "test", "tasks": options.task or (), "limit": options.limit}
        more |= named(options, "columns", "roles")
        seeds = range(10 if options.seeds is None else options.seeds)
        choice = TaskChoice(options.corpus, options.data_dir, seeds=seeds, **more)
    forms = {"weights": WeightForm.named(options.dtype, options.max_shard_size), **named(options, "onnx", "int8")}
    for line in export(options.model, options.output, measured_on=choice, **forms):
        say(line)
    say(f"Wrote {options.output}")
