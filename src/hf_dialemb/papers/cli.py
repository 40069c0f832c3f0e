"""The group ``dialemb papers``: reproduce the five papers."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..apps.cli.parser import Commands, Parser, named, say

_BENCHMARK = """\
suites: dial2vec, dse, dialog2flow, dialogue_cse, mgt, or all.

The folder gets SUITE.json and SUITE.md for each suite, with the papers' figures beside yours. A
model embeds each text once, also if the command stops and is given again.

example: dialemb papers benchmark --suite dialog2flow dse --model all-MiniLM-L6-v2 runs/dse-minilm
  --output benchmark"""
_ENSEMBLE = """\
This trains a baseline, L models on negatives of one granularity each, and L - 1 more baselines with
other seeds. It builds three ensembles (of granularities, of the baseline's best checkpoints, of
seeds) and measures all of them on the same candidates. If it stops, give the same command again.
Add settings of the runs as --field value.

example: dialemb papers ensemble --config dual_encoder_multiwoz --corpus multiwoz
  --output runs/mgt-multiwoz
example: dialemb papers ensemble --config dual_encoder_multiwoz --corpus train.jsonl --dev dev.jsonl
  --test test.jsonl --output runs/mine"""
_CONVERT = """\
The input is PLATO's parameters of paddle (a file, or the folder that tar unpacks from
model.tar.gz), PLATO.pt of its port to torch, or a .best_model.pkl of dial2vec's program. Encoders
that transformers reads (aws-ai/dse-*, TODBERT/*, sergioburdisso/dialog2flow-*) need no conversion:
give their name as --model or --backbone.

No code in a pickle runs. The command prints the fate of every key, and writes it to conversion.json
beside the weights.

example: dialemb papers convert model --vocab vocab.txt --output plato"""
_UNIFY = """\
example: dialemb papers corpus unify sgd multiwoz --data-dir data --output unified
example: dialemb papers corpus unify woz2 kvret --licence research --output unified"""


def add(commands: Commands) -> None:
    """Add the group and its commands."""
    group = _group(commands, "papers", "reproduce the five papers")
    _add_benchmark(group)
    _add_ensemble(group)
    _add_convert(group)
    _add_unify(_group(group, "corpus", "corpora as the papers prepare them"))


def _group(commands: Commands, name: str, summary: str) -> Any:
    parser = commands.add_parser(name, help=summary, description=f"{summary.capitalize()}.")
    return parser.add_subparsers(
        dest="subcommand", required=True, metavar="command", parser_class=Parser
    )


def _command(
    commands: Commands,
    name: str,
    run: Callable[[argparse.Namespace], None],
    summary: str,
    epilog: str,
) -> Parser:
    parser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary.capitalize()}.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser


def _add_data_dir(parser: Parser) -> None:
    parser.add_argument("--data-dir", help="folder that holds the corpora, unpacked or packed")


def _add_benchmark(group: Commands) -> None:
    summary = "compare encoders on everything the papers measure"
    parser = _command(group, "benchmark", _benchmark, summary, _BENCHMARK)
    parser.add_argument("--suite", nargs="+", required=True, help="see below")
    parser.add_argument(
        "--model", nargs="+", required=True, help="checkpoint folders, Hub ids or baselines"
    )
    parser.add_argument(
        "--output", type=Path, required=True, help="folder for figures, tables and vectors"
    )
    parser.add_argument("--method", metavar="FILE.py", help="the method's file, for its models")
    parser.add_argument(
        "--limit", type=int, help="measure each task on a fixed random sample of this many items"
    )
    parser.add_argument("--seeds", type=int, default=10, help="repeats with other random seeds")
    _add_data_dir(parser)


def _benchmark(options: argparse.Namespace) -> None:
    from .benchmark import run_benchmark

    more = named(options, "data_dir", "limit")
    seeds = range(options.seeds)
    run_benchmark(options.suite, options.model, options.output, seeds=seeds, report=say, **more)


def _add_ensemble(group: Commands) -> None:
    summary = "train an ensemble of response rankers at several granularities"
    parser = _command(group, "ensemble", _ensemble, summary, _ENSEMBLE)
    parser.set_defaults(takes_settings=True)
    parser.add_argument("--config", required=True, help="recipe of the baseline: a file or a name")
    parser.add_argument(
        "--corpus",
        required=True,
        help="a public corpus: its dev split chooses checkpoints, its test split measures; or your "
        "own file to learn from, with --dev and --test",
    )
    parser.add_argument("--dev", help="your own dialogues to choose checkpoints by")
    parser.add_argument("--test", help="your own dialogues to measure on")
    parser.add_argument(
        "--output", type=Path, required=True, help="folder for all runs, candidates and results"
    )
    parser.add_argument("--size", type=int, default=5, help="granularities, members (default: 5)")
    parser.add_argument(
        "--similarity", help="folder of the ranker that compares responses (default: the baseline)"
    )
    parser.add_argument(
        "--candidates",
        type=int,
        help="responses to rank for each context (default: as in training)",
    )
    parser.add_argument(
        "--skip-analyses", action="store_true", help="only train and rank, without probes"
    )
    parser.add_argument(
        "--analysis-dialogues",
        type=int,
        help="training dialogues that probes learn from, drawn once (default: all)",
    )
    parser.add_argument(
        "--test-dialogues", type=int, help="test dialogues to measure on, drawn once (default: all)"
    )
    _add_data_dir(parser)


def _ensemble(options: argparse.Namespace) -> None:
    from ..training.arguments import read_words
    from .ensemble.ensemble_report import report_ensemble
    from .ensemble.plan import EnsemblePlan
    from .ensemble.training import train_ensemble

    names = ("size", "data_dir", "candidates", "similarity", "analysis_dialogues", "dev", "test")
    plan = EnsemblePlan(
        options.config,
        options.corpus,
        options.output,
        read_words(options.rest),
        test_dialogues=options.test_dialogues,
        **named(options, *names),
    )
    train_ensemble(plan, say)
    print(report_ensemble(plan, analyses=not options.skip_analyses, report=say))


def _add_convert(group: Commands) -> None:
    summary = "turn a checkpoint of PLATO into one that this package loads"
    parser = _command(group, "convert", _convert, summary, _CONVERT)
    parser.add_argument("source", metavar="input", help="file or folder with the weights")
    parser.add_argument("--output", type=Path, required=True, help="new folder to write")
    parser.add_argument(
        "--vocab", help="WordPiece vocabulary (default: vocab.txt beside the weights)"
    )


def _convert(options: argparse.Namespace) -> None:
    from .convert import convert

    written = convert(options.source, options.output, vocabulary=options.vocab, report=say)
    say(f"Wrote {written}")


def _add_unify(group: Commands) -> None:
    summary = "convert corpora into one form with normalised acts, slots and domains"
    parser = _command(group, "unify", _unify, summary, _UNIFY)
    parser.add_argument("names", nargs="+", help="corpora with dialogue acts or slots")
    parser.add_argument("--output", type=Path, required=True, help="new folder to write")
    parser.add_argument(
        "--licence",
        dest="terms",
        default="share-alike",
        choices=["permissive", "share-alike", "research"],
        help="the strictest licence that a part may have (default: share-alike)",
    )
    parser.add_argument(
        "--strict", action="store_true", help="stop at the first malformed dialogue"
    )
    _add_data_dir(parser)


def _unify(options: argparse.Namespace) -> None:
    from .corpora.unify import unify

    stats = unify(**named(options, "names", "data_dir", "output", "terms", "strict"))
    print("\n".join(stats["table"]))
    say(f"Wrote {options.output}")
