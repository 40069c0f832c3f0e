"""The command ``dialemb papers ensemble``: multi-granularity training and its measurement, from one recipe."""

from __future__ import annotations

import argparse
from pathlib import Path

from ...cli.parser import Parser, add_command, named, own_options, say

_HELP = """This trains a baseline, L models on negatives of one granularity each, and L - 1 more baselines with other
seeds. It builds three ensembles (of granularities, of the baseline's best checkpoints, of seeds) and measures all of
them on the same candidates. If it stops, give the same command again. Add settings of the runs as --field value.

example: dialemb papers ensemble --config dual_encoder_multiwoz --corpus multiwoz --output runs/mgt-multiwoz
example: dialemb papers ensemble --config dual_encoder_multiwoz --corpus train.jsonl --dev dev.jsonl --test test.jsonl
  --output runs/mine"""
_CORPUS = """a public corpus: its dev split chooses checkpoints, its test split measures (the recipe says what to learn
from); or your own file to learn from, with --dev and --test"""
_NUMBERS = {
    "candidates": "how many to rank for each context (default: as in training)",
    "analysis-dialogues": "training dialogues that probes and fine-tuning learn from, drawn at random (default: all)",
    "test-dialogues": "test dialogues to measure on, drawn once (default: all)",
}


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the command."""
    parser = add_command(commands, "ensemble", "Train an ensemble of response rankers at several granularities.", _HELP)
    parser.add_argument("--config", required=True, help="recipe of the baseline: a YAML file, or a recipe's name")
    parser.add_argument("--corpus", "--input", required=True, help=_CORPUS)  # words after settings are their values
    parser.add_argument("--dev", help="your own dialogues to choose checkpoints by")
    parser.add_argument("--test", help="your own dialogues to measure on")
    own_options(parser)
    parser.add_argument("--data-dir", help="folder that holds the corpora, unpacked or packed")
    parser.add_argument("--output", type=Path, required=True, help="folder for all runs, candidates and results")
    parser.add_argument("--size", type=int, default=5, help="how many granularities and members (default: 5)")
    parser.add_argument("--similarity", help="folder of the ranker that compares responses (default: the baseline)")
    parser.add_argument("--launch", default="", help="more options for accelerate launch, in quotes")
    parser.add_argument("--skip-analyses", action="store_true", help="only train and rank: no probes, no fine-tuning")
    for name, meaning in _NUMBERS.items():
        parser.add_argument(f"--{name}", type=int, help=meaning)
    parser.set_defaults(run=_run, takes_settings=True)


def _run(options: argparse.Namespace) -> None:
    from ...training.arguments import read_words
    from ..ensemble.plan import EnsemblePlan
    from ..ensemble.report import report_ensemble
    from ..ensemble.training import train_ensemble

    overrides = read_words(options.rest)
    overrides |= {name: value for name, value in named(options, "columns", "roles").items() if value}
    names = ("size", "data_dir", "candidates", "similarity", "analysis_dialogues", "dev", "test")
    more = named(options, *names, "test_dialogues") | {"launch": tuple(options.launch.split())}
    plan = EnsemblePlan(options.config, options.corpus, options.output, overrides, **more)
    train_ensemble(plan, say)
    print(report_ensemble(plan, analyses=not options.skip_analyses, report=say))
