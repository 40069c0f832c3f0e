"""The command ``dialemb papers benchmark``: whole suites, all models, one report."""

from __future__ import annotations

import argparse
from pathlib import Path

from ...cli.parser import Parser, add_command, named, say

_HELP = """suites: {suites}, or all.

Models are checkpoint folders, Hub ids, or baselines: tfidf, lda, doc2vec, words:FILE (GloVe or word2vec text),
api:MODEL (an OpenAI-compatible endpoint; OPENAI_BASE_URL and OPENAI_API_KEY). After a model's name you can write @ and
one or more of these, with commas between: utterances (the mean of a dialogue's turns), cls (the first token), bfloat16
or int8 (fewer bits, faster), whitened.

The folder gets SUITE.json, .md and .tex for each suite, with the papers' figures beside yours, and report.html with all
of them and pictures. A model embeds each text once. If it stops, give the same command again and it goes on.

example: dialemb papers benchmark --suite dialog2flow dse --model all-MiniLM-L6-v2 runs/dse-minilm tfidf
  --output benchmark"""


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "benchmark",
        "Compare encoders on everything the papers measure, in one report.",
        _HELP,
        suites=_suites,
    )
    parser.add_argument("--suite", nargs="+", required=True, help="see below")
    parser.add_argument("--model", nargs="+", required=True, help="see below")
    parser.add_argument("--data-dir", help="folder that holds the corpora, unpacked or packed")
    parser.add_argument("--output", type=Path, required=True, help="folder for figures, tables, vectors and the report")
    parser.add_argument("--fine-tune", action="store_true", help="also fine-tune where papers do; takes hours")
    parser.add_argument("--limit", type=int, help="measure each task on a fixed random sample of this many items")
    parser.add_argument("--seeds", type=int, default=10, help="repeats with other random seeds")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from ..benchmark import run_benchmark

    more = named(options, "data_dir", "limit", "fine_tune")
    run_benchmark(options.suite, options.model, options.output, seeds=range(options.seeds), report=say, **more)


def _suites() -> list[str]:
    from ..suites import SUITES

    return list(SUITES)
