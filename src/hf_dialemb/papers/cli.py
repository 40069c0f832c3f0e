"""The group ``dialemb papers``: reproduce the five papers."""

import argparse
from pathlib import Path

from ..apps.cli.parser import Commands, add_command, add_group, named, read_texts, reading_of, say

_TEXTS = read_texts(Path(__file__).with_name("commands.toml"))


def add(commands: Commands) -> None:
    """Add the group and its commands."""
    group, texts = add_group(commands, "papers", _TEXTS), _TEXTS["papers"]
    add_command(group, "benchmark", _benchmark, texts, suites=_suites)
    add_command(group, "ensemble", _ensemble, texts).set_defaults(takes_settings=True)
    add_command(group, "convert", _convert, texts)
    add_command(group, "flow", _flow, texts)
    actions = add_group(group, "corpus", texts)
    add_command(actions, "unify", _unify, texts["corpus"])
    add_command(actions, "benchmark", _six_corpora, texts["corpus"])


def _suites() -> list[str]:
    from .suites import SUITES

    return list(SUITES)


def _benchmark(options: argparse.Namespace) -> None:
    from .benchmark import run_benchmark

    more = named(options, "data_dir", "limit", "fine_tune")
    run_benchmark(
        options.suite, options.model, options.output, seeds=range(options.seeds), report=say, **more
    )


def _ensemble(options: argparse.Namespace) -> None:
    from ..training.arguments import read_words
    from .ensemble.ensemble_report import report_ensemble
    from .ensemble.plan import EnsemblePlan
    from .ensemble.training import train_ensemble

    overrides = read_words(options.rest)
    overrides |= {name: value for name, value in reading_of(options).items() if value}
    names = (
        "size",
        "data_dir",
        "candidates",
        "similarity",
        "analysis_dialogues",
        "dev",
        "test",
        "test_dialogues",
    )
    more = named(options, *names) | {"launch": tuple(options.launch.split())}
    plan = EnsemblePlan(options.config, options.corpus, options.output, overrides, **more)
    train_ensemble(plan, say)
    print(report_ensemble(plan, analyses=not options.skip_analyses, report=say))


def _convert(options: argparse.Namespace) -> None:
    from .convert import convert

    say(
        f"Wrote {convert(options.source, options.output, report=say, **named(options, 'vocabulary', 'partial'))}"
    )


def _flow(options: argparse.Namespace) -> None:
    from ..evaluation.evaluating import command_line, evaluate
    from .paper_tables import flow_tables

    more = named(options, "data_dir", "split", "output", "limit") | reading_of(options)
    results = evaluate(
        options.model, options.corpus, tasks=["flow-extraction"], command=command_line(), **more
    )
    print(flow_tables(results.results))
    say(f"Wrote {options.output}")


def _unify(options: argparse.Namespace) -> None:
    from .corpora.dataset_card import excluded
    from .corpora.unify import unify

    stats = unify(**named(options, "names", "data_dir", "output", "terms", "strict", "evaluation"))
    print("\n".join(stats["table"]))
    print(excluded(stats))
    say(f"Wrote {options.output}")


def _six_corpora(options: argparse.Namespace) -> None:
    from .corpora.benchmark_corpora import build_benchmark

    print("\n".join(build_benchmark(options.data_dir, options.output, say)["table"]))
    say(f"Wrote {options.output}")
