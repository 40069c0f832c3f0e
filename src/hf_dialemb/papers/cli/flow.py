"""The command ``dialemb papers flow``: compare encoders by the flows that they find."""

from __future__ import annotations

import argparse
from pathlib import Path

from ...cli.parser import Parser, add_command, corpus_options, named, say


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "flow",
        "Compare encoders by the flows they find in annotated dialogues: sizes of graphs as in Dialog2Flow's Table 6, "
        "and whether the states and steps are right.",
        "example: dialemb papers flow --model runs/dialog2flow-single-minilm all-MiniLM-L6-v2 --corpus sgd "
        "--data-dir data",
    )
    parser.add_argument("--model", nargs="+", required=True, help="checkpoint folders, Hub ids, or baselines")
    corpus_options(parser)
    parser.add_argument("--limit", type=int, help="measure on a fixed random sample of this many dialogues")
    parser.add_argument("--output", type=Path, default=Path("flow.json"), help="results file (default: flow.json)")
    parser.add_argument("--cache", type=Path, help="folder to keep vectors in, such as BENCHMARK/embeddings")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from ...evaluation.run import command_line, evaluate
    from ..flow_tables import flow_tables

    more = named(options, "data_dir", "split", "output", "limit", "cache", "columns", "roles")
    results = evaluate(options.model, options.corpus, tasks=["flow-extraction"], command=command_line(), **more)
    print(flow_tables(results.results))
    say(f"Wrote {options.output}")
