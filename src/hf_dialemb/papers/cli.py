"""The group ``dialemb papers``: reproduce the five papers."""

import argparse
from pathlib import Path
from typing import Any

from ..cli.parser import (
    Commands,
    Parser,
    add_command,
    add_group,
    corpus_options,
    method_option,
    named,
    own_options,
    read_help,
    reading_of,
    say,
)

_ENSEMBLE_CORPUS = """a public corpus: its dev split chooses checkpoints, its test split measures (the recipe says what
to learn from); or your own file to learn from, with --dev and --test"""


_HELP = read_help(Path(__file__).with_name("help.toml"))
_PAPERS = _HELP["papers"]


def add(commands: Commands) -> None:
    """Add the group and its commands."""
    group = add_group(commands, "papers", _HELP)
    for add_to in (_add_benchmark, _add_ensemble, _add_convert, _add_flow):
        add_to(group)
    actions = add_group(group, "corpus", _PAPERS)
    _add_unify(actions)
    _add_six_corpora(actions)


def _data_dir(parser: Parser) -> None:
    parser.add_argument("--data-dir", help="folder that holds the corpora, unpacked or packed")


def _output(parser: Parser, holds: str, **more: Any) -> None:  # noqa: ANN401 - of add_argument
    parser.add_argument("--output", type=Path, help=holds, **(more or {"required": True}))


def _add_benchmark(commands: Commands) -> None:
    parser = add_command(commands, "benchmark", _benchmark, _PAPERS, suites=_suites)
    parser.add_argument("--suite", nargs="+", required=True, help="see below")
    parser.add_argument("--model", nargs="+", required=True, help="see below")
    method_option(parser)
    _data_dir(parser)
    _output(parser, "folder for figures, tables, vectors and the report")
    parser.add_argument("--fine-tune", action="store_true", help="also fine-tune where papers do; takes hours")
    parser.add_argument("--limit", type=int, help="measure each task on a fixed random sample of this many items")
    parser.add_argument("--seeds", type=int, default=10, help="repeats with other random seeds")


def _suites() -> list[str]:
    from .suites import SUITES

    return list(SUITES)


def _benchmark(options: argparse.Namespace) -> None:
    from .benchmark import run_benchmark

    more = named(options, "data_dir", "limit", "fine_tune")
    run_benchmark(options.suite, options.model, options.output, seeds=range(options.seeds), report=say, **more)


def _add_ensemble(commands: Commands) -> None:
    parser = add_command(commands, "ensemble", _ensemble, _PAPERS)
    parser.add_argument("--config", required=True, help="recipe of the baseline: a YAML file, or a recipe's name")
    # Words after settings are their values, so the corpus is no positional argument.
    parser.add_argument("--corpus", "--input", required=True, help=_ENSEMBLE_CORPUS)
    parser.add_argument("--dev", help="your own dialogues to choose checkpoints by")
    parser.add_argument("--test", help="your own dialogues to measure on")
    own_options(parser)
    _data_dir(parser)
    _output(parser, "folder for all runs, candidates and results")
    parser.add_argument("--size", type=int, default=5, help="how many granularities and members (default: 5)")
    parser.add_argument("--similarity", help="folder of the ranker that compares responses (default: the baseline)")
    parser.add_argument("--launch", default="", help="more options for accelerate launch, in quotes")
    parser.add_argument("--skip-analyses", action="store_true", help="only train and rank: no probes, no fine-tuning")
    for name, meaning in (
        ("candidates", "how many to rank for each context (default: as in training)"),
        ("analysis-dialogues", "training dialogues that probes and fine-tuning learn from, drawn once (default: all)"),
        ("test-dialogues", "test dialogues to measure on, drawn once (default: all)"),
    ):
        parser.add_argument(f"--{name}", type=int, help=meaning)
    parser.set_defaults(takes_settings=True)


def _ensemble(options: argparse.Namespace) -> None:
    from ..training.arguments import read_words
    from .ensemble.plan import EnsemblePlan
    from .ensemble.report import report_ensemble
    from .ensemble.training import train_ensemble

    overrides = read_words(options.rest)
    overrides |= {name: value for name, value in reading_of(options).items() if value}
    names = ("size", "data_dir", "candidates", "similarity", "analysis_dialogues", "dev", "test", "test_dialogues")
    more = named(options, *names) | {"launch": tuple(options.launch.split())}
    plan = EnsemblePlan(options.config, options.corpus, options.output, overrides, **more)
    train_ensemble(plan, say)
    print(report_ensemble(plan, analyses=not options.skip_analyses, report=say))


def _add_convert(commands: Commands) -> None:
    parser = add_command(commands, "convert", _convert, _PAPERS)
    parser.add_argument("source", metavar="input", help="file, folder or archive with the weights")
    _output(parser, "folder to write; must not exist yet")
    vocabulary = "WordPiece vocabulary (default: vocab.txt beside the weights)"
    parser.add_argument("--vocab", dest="vocabulary", help=vocabulary)
    parser.add_argument("--partial", action="store_true", help="convert even if keys are missing or unexpected")


def _convert(options: argparse.Namespace) -> None:
    from .convert import convert

    say(f"Wrote {convert(options.source, options.output, report=say, **named(options, 'vocabulary', 'partial'))}")


def _add_flow(commands: Commands) -> None:
    parser = add_command(commands, "flow", _flow, _PAPERS)
    parser.add_argument("--model", nargs="+", required=True, help="checkpoint folders, Hub ids, or baselines")
    method_option(parser)
    corpus_options(parser)
    parser.add_argument("--limit", type=int, help="measure on a fixed random sample of this many dialogues")
    _output(parser, "results file (default: flow.json)", default=Path("flow.json"))


def _flow(options: argparse.Namespace) -> None:
    from ..evaluation.run import command_line, evaluate
    from .flow_tables import flow_tables

    more = named(options, "data_dir", "split", "output", "limit") | reading_of(options)
    results = evaluate(options.model, options.corpus, tasks=["flow-extraction"], command=command_line(), **more)
    print(flow_tables(results.results))
    say(f"Wrote {options.output}")


def _add_unify(actions: Commands) -> None:
    parser = add_command(actions, "unify", _unify, _PAPERS["corpus"])
    parser.add_argument("names", nargs="+", help="corpora, or all: every labelled one you have whose licence allows it")
    _data_dir(parser)
    _output(parser, "folder to write; must not exist yet")
    strictest = "the strictest licence that a part may have (default: share-alike)"
    terms = ("permissive", "share-alike", "research")
    parser.add_argument("--licence", dest="terms", default="share-alike", choices=terms, help=strictest)
    kept_out = "more sets to keep out of training, besides the dev and test splits of the parts"
    parser.add_argument("--evaluation", nargs="*", default=[], metavar="CORPUS/SPLIT", help=kept_out)
    parser.add_argument("--strict", action="store_true", help="stop at the first malformed dialogue")


def _unify(options: argparse.Namespace) -> None:
    from .corpora.dataset_card import excluded
    from .corpora.unify import unify

    stats = unify(**named(options, "names", "data_dir", "output", "terms", "strict", "evaluation"))
    print("\n".join(stats["table"]))
    print(excluded(stats))
    say(f"Wrote {options.output}")


def _add_six_corpora(actions: Commands) -> None:
    parser = add_command(actions, "benchmark", _six_corpora, _PAPERS["corpus"])
    _data_dir(parser)
    _output(parser, "folder to write")


def _six_corpora(options: argparse.Namespace) -> None:
    from .corpora.benchmark_corpora import build_benchmark

    print("\n".join(build_benchmark(options.data_dir, options.output, say)["table"]))
    say(f"Wrote {options.output}")
