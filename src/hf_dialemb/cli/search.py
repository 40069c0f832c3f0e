"""The command ``dialemb search``: turns that answer a question, or dialogues nearest to a text or to another."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InputError
from ..runs.files import check_writable, write_text_atomically
from .parser import (
    Commands,
    add_command,
    chosen_model,
    corpus_options,
    model_and_vectors,
    model_option,
    reading_of,
    say,
)

if TYPE_CHECKING:
    from ..retrieval.hits import Hits


def add(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "search",
        "Find what was said, or the conversations nearest to a text or to one of them.",
        'example: dialemb search calls.csv --query "what did Anna say about her card?"\n'
        '         dialemb search calls.csv --query "card was stolen" --whole\n'
        "         dialemb search calls.csv --vectors vectors.parquet --id call-17",
    )
    model_option(parser)
    group = corpus_options(parser)
    group.add_argument("--index", type=Path, help="an index made by dialemb index, instead of a corpus")
    parser.add_argument("--where", help="with --index: a condition such as \"topic = 'cards' and time > '2026-01-01'\"")
    wanted = parser.add_mutually_exclusive_group(required=True)
    wanted.add_argument("--query", help="what to look for, in words")
    wanted.add_argument("--id", help="the dialogue to start from: its id, or its number as #12")
    parser.add_argument("--whole", action="store_true", help="with --query: find conversations instead of turns")
    parser.add_argument(
        "--vectors", type=Path, help="vectors of conversations from dialemb embed, instead of embedding again"
    )
    parser.add_argument("--top", type=int, default=5, help="how many to show (default: 5)")
    parser.add_argument("--output", type=Path, help="also write what is found here, one JSON object per line")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    if options.top < 1:
        raise InputError(f"--top: got {options.top}, expected at least 1")
    if options.output:
        check_writable(options.output, options.corpus or "", options.vectors or "")
    hits = _in_index(options) if options.index else _in_corpus(options)
    print(hits)
    if options.output:
        lines = [json.dumps(asdict(hit), ensure_ascii=False) for hit in hits]
        write_text_atomically(options.output, "\n".join([*lines, ""]))
        say(f"Wrote {options.output}")


def _in_index(options: argparse.Namespace) -> Hits:
    from ..retrieval.dialogue_index import DialogueIndex

    if options.vectors:
        raise InputError("--vectors: is of a corpus, but got --index, which has its own; leave it out")
    index = DialogueIndex(options.index, chosen_model(options, options.model, needed=False))
    if options.id is not None:
        return index.near(options.id, options.top, options.where)
    return index.search(options.query, options.top, options.where)


def _in_corpus(options: argparse.Namespace) -> Hits:
    from ..corpora import load_dialogues
    from ..corpora.show import find_dialogue
    from ..retrieval.search import describe, search

    if options.where is not None:
        raise InputError("--where: is of an index, but got --corpus; make an index with dialemb index")
    dialogues = load_dialogues(options.corpus, options.data_dir, options.split, **reading_of(options))
    query = options.query
    if options.id is not None:
        start = find_dialogue(dialogues, options.id)  # before all of them are encoded
        query = next(row for row, dialogue in enumerate(dialogues) if dialogue is start)
        print(describe(start))
    model, vectors = model_and_vectors(options, dialogues, options.corpus)
    return search(model, dialogues, query, options.top, vectors, options.whole)
