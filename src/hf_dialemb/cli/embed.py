"""The command ``dialemb embed``: a file of dialogues becomes a file of vectors."""

from __future__ import annotations

import argparse
from pathlib import Path

from .parser import Parser, add_command, chosen_model, model_option


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "embed",
        "Embed a JSONL file of dialogues into a Parquet file; resumes when run again. With an encoder of texts a "
        "dialogue's embedding is the mean of its utterances' embeddings.",
        "example: dialemb embed --model runs/dial2vec-minilm --input dialogues.jsonl --output vectors.parquet",
    )
    model_option(parser)
    parser.add_argument("--input", type=Path, required=True, help="dialogues, one JSON object a line")
    parser.add_argument("--output", type=Path, required=True, help="Parquet file with the columns id and embedding")
    parser.add_argument("--shard-size", type=int, default=2000, help="dialogues per shard (default: 2000)")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from ..apps.embed import embed_file

    rows = embed_file(chosen_model(options.model), options.input, options.output, options.shard_size)
    print(f"Wrote {rows:,} embeddings to {options.output}")
