"""The command ``dialemb search``: the dialogues nearest to one of them."""

from __future__ import annotations

import argparse

from ..models.errors import InputError
from .parser import Parser, add_command, chosen_model, corpus_options, model_option


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "search",
        "Find the dialogues of a corpus nearest to one of them.",
        "example: dialemb search --model runs/dial2vec-minilm --corpus dialogues.jsonl --id call-17",
    )
    model_option(parser)
    corpus_options(parser)
    parser.add_argument("--id", required=True, help="the dialogue to start from: its id, or its number as #12")
    parser.add_argument("--top", type=int, default=5, help="how many to show (default: 5)")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from ..apps.search import describe_nearest
    from ..corpora import load_dialogues
    from ..corpora.show import find_dialogue
    from ..encoders.specs import load_encoder

    if options.top < 1:
        raise InputError(f"--top: got {options.top}, expected at least 1")
    dialogues = load_dialogues(options.corpus, options.data_dir, options.split)
    find_dialogue(dialogues, options.id)  # before all of them are encoded
    vectors = load_encoder(chosen_model(options.model)).encode(dialogues)
    for line in describe_nearest(dialogues, vectors, options.id, options.top):
        print(line)
