"""The command ``dialemb embed``: a file of dialogues becomes a file of vectors."""

import argparse

from ..runs.addresses import path_or_address
from .parser import (
    Commands,
    add_command,
    chosen_model,
    conversations,
    model_option,
    named,
    own_options,
    reading_of,
    say,
)


def add(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "embed",
        "Turn conversations into vectors, one for each, in a Parquet file. If it stops, run it again and it goes on. "
        "Texts that are too long for the model are cut. With --model MODEL@utterances, a vector is the mean of the "
        "utterances' vectors.",
        "example: dialemb embed calls.csv --output vectors.parquet",
    )
    model_option(parser)
    help = "your conversations: a file, a folder of them, or the address of a file, such as s3://BUCKET/FILE.parquet"
    conversations(parser, help=help)
    own_options(parser)
    help = "Parquet file with the columns id, said, metadata (JSON) and embedding; or its address"
    parser.add_argument("--output", type=path_or_address, required=True, help=help)
    levels = ("dialogues", "utterances")
    parser.add_argument("--level", choices=levels, default=levels[0], help="what each row holds (default: dialogues)")
    parser.add_argument("--shard-size", type=int, default=2000, help="dialogues per shard (default: 2000)")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from ..retrieval.embed import embed

    more = named(options, "shard_size", "level") | reading_of(options)
    rows = embed(chosen_model(options, options.model), path_or_address(options.input), options.output, **more)
    say(f"Wrote {rows:,} embeddings to {options.output}")
