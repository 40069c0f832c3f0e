"""``dialemb papers corpus``: one corpus of many in Dialog2Flow's form, and the six corpora of dial2vec."""

from __future__ import annotations

import argparse
from pathlib import Path

from ...cli.parser import Parser, add_command, add_group, named, say


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the command and its actions."""
    actions = add_group(
        commands,
        "corpus",
        "Corpora as the papers prepare them: unify, benchmark.",
        "example: dialemb papers corpus unify sgd multiwoz --data-dir data --output unified",
    )
    _add_unify(actions)
    _add_benchmark(actions)


def _add_unify(actions: argparse._SubParsersAction[Parser]) -> None:
    parser = add_command(
        actions,
        "unify",
        "Convert corpora into one form with normalised acts, slots and domains: Parquet, JSON, counts, a dataset card.",
        "example: dialemb papers corpus unify sgd multiwoz --data-dir data --output unified\n"
        "         dialemb papers corpus unify all --licence research --data-dir data --output unified",
    )
    parser.add_argument("names", nargs="+", help="corpora, or all: every labelled one you have whose licence allows it")
    parser.add_argument("--data-dir", help="folder that holds the corpora, unpacked or packed")
    parser.add_argument("--output", type=Path, required=True, help="folder to write; must not exist yet")
    parser.add_argument(
        "--licence",
        default="share-alike",
        choices=("permissive", "share-alike", "research"),
        help="the strictest licence that a part may have (default: share-alike)",
    )
    parser.add_argument(
        "--evaluation",
        nargs="*",
        default=[],
        metavar="CORPUS/SPLIT",
        help="more sets to keep out of training, besides the dev and test splits of the parts",
    )
    parser.add_argument("--skip-invalid", action="store_true", help="leave out malformed dialogues and list them")
    parser.set_defaults(run=_unify)


def _unify(options: argparse.Namespace) -> None:
    from ..corpora.dataset_card import excluded
    from ..corpora.unify import unify

    more = named(options, "skip_invalid", "evaluation")
    stats = unify(options.names, options.data_dir, options.output, terms=options.licence, **more)
    print("\n".join(stats["table"]))
    print(excluded(stats))
    say(f"Wrote {options.output}")


def _add_benchmark(actions: argparse._SubParsersAction[Parser]) -> None:
    parser = add_command(
        actions,
        "benchmark",
        "Build the six corpora of the dial2vec paper with its filters, and print its Table 1 beside ours.",
        "example: dialemb papers corpus benchmark --data-dir data --output benchmark",
    )
    parser.add_argument("--data-dir", help="folder that holds the corpora, unpacked or packed")
    parser.add_argument("--output", type=Path, required=True, help="folder to write")
    parser.set_defaults(run=_benchmark)


def _benchmark(options: argparse.Namespace) -> None:
    from ..corpora.benchmark_corpora import build_benchmark

    result = build_benchmark(options.data_dir, options.output, say)
    print("\n".join(result["table"]))
    say(f"Wrote {options.output}")
