"""The commands ``dialemb embed``, ``search``, ``index`` and ``rank``."""

from __future__ import annotations

import argparse
import json
from collections import deque
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...data.reading_options import ReadingOptions
from ...errors import InputError
from ...storage.files import check_writable, write_text_atomically
from .parser import (
    CONVERSATIONS,
    METHOD,
    MODEL,
    READING,
    Command,
    Options,
    chosen_model,
    conversations,
    corpus_options,
    loaded,
    reading_of,
    say,
)

if TYPE_CHECKING:
    from ..search.turn_index import TurnIndex

_SEARCH = """\
example: dialemb search calls.csv --query "what did Anna say about her card?"
         dialemb search calls.csv --query "card was stolen" --whole"""
_INDEX = """\
example: dialemb index calls.csv --output calls.memory
         dialemb search --index calls.memory --query card --where since=2026-01-01"""
_RANK = """\
example: dialemb rank --model runs/mgt-multiwoz/multi-granularity --context calls.jsonl
  --candidates responses.txt --top 5"""
_ASKED = {"query", "top", "whole", "at_least", "now"}  # arguments of `TurnIndex.search`
_EMBED_OPTIONS: Options = {
    "--output": {
        "type": Path,
        "required": True,
        "help": "Parquet file with the columns id, said, metadata (JSON) and embedding",
    },
    **MODEL,
    **READING,
}
_SEARCH_OPTIONS: Options = {
    "--where": {
        "nargs": "+",
        "default": [],
        "metavar": "NAME=VALUE",
        "help": "of these turns alone: user, dialogue, role, speaker, since, until, or metadata",
    },
    "--whole": {"action": "store_true", "help": "find conversations instead of turns"},
    "--query": {"required": True, "help": "what to look for, in words"},
    "--top": {"type": int, "default": 5, "help": "how many to show (default: 5)"},
    "--output": {"type": Path, "help": "also write hits here, one JSON object a line"},
    **MODEL,
    **corpus_options("test"),
}
_INDEX_OPTIONS: Options = {
    "input": {"nargs": "?", "help": CONVERSATIONS},
    "--output": {"type": Path, "required": True, "help": "the index, a folder"},
    "--delete": {"nargs": "+", "metavar": "ID", "help": "dialogues to delete"},
    "--reembed": {"action": "store_true", "help": "embed all that is there with another --model"},
    **MODEL,
    **READING,
}
_RANK_OPTIONS: Options = {
    "--model": {"required": True, "help": "a ranker: a folder, or an id as org/name"},
    "--context": {"type": Path, "required": True, "help": "the dialogues so far: a file"},
    "--candidates": {
        "type": Path,
        "required": True,
        "help": "text file with one response per line",
    },
    "--top": {"type": int, "default": 10, "help": "responses to show (default: 10)"},
    **METHOD,
    **READING,
}


def _embed(options: argparse.Namespace) -> None:
    from ..search.embed import embed_file

    rows = embed_file(
        chosen_model(options, options.model),
        Path(options.input),
        options.output,
        **reading_of(options),
    )
    say(f"Wrote {rows:,} embeddings to {options.output}")


def _search(options: argparse.Namespace) -> None:
    if options.output:
        check_writable(options.output, options.corpus or "")
    scope = _scope(options.where)
    hits = _index_of(options).search(options.query, options.top, whole=options.whole, **scope)
    print(hits)
    if options.output:
        lines = (json.dumps(asdict(hit), ensure_ascii=False) + "\n" for hit in hits)
        write_text_atomically(options.output, "".join(lines))
        say(f"Wrote {options.output}")


def _scope(words: list[str]) -> dict[str, Any]:
    """Return what turns must have; a number stands for its text too."""
    scope: dict[str, Any] = {}
    for word in words:
        name, _, value = word.partition("=")
        if not value or name in _ASKED:
            raise InputError(f"--where: got {word!r}, expected NAME=VALUE, such as team=cards")
        scope[name] = [value, float(value)] if value.isdecimal() else value
    return scope


def _index_of(options: argparse.Namespace) -> TurnIndex:
    """Return the index that is asked, or one of the turns of a corpus."""
    from ..search.search import index_of, kept_index
    from ..search.turn_index import TurnIndex

    if options.index:
        return TurnIndex(options.index, chosen_model(options, options.model, needed=False))
    model = chosen_model(options, options.model, "turn")
    reading = reading_of(options)
    if Path(options.corpus).is_file():
        return kept_index(Path(options.corpus), model, **reading)
    return index_of(loaded(options, options.corpus), model)


def _index(options: argparse.Namespace) -> None:
    from ..files.reading import read_path
    from ..search.turn_index import TurnIndex

    how = ReadingOptions(**reading_of(options))
    if options.input:
        # refuses it, and says what is left out, before all else
        deque(read_path(options.input, how), maxlen=0)
    made = options.output.exists() or not options.input
    model = chosen_model(options, options.model, "turn", needed=not made)
    index = TurnIndex(options.output, None if options.reembed else model)
    if options.reembed:
        index.reembed(model)
    if options.delete:
        print(f"Deleted {index.delete(dialogue=options.delete):,} turns")
    if options.input:
        added = index.add(read_path(options.input, how, silent=True))
        print(f"Embedded {added:,} dialogues that are new or changed")
    print(f"{options.output}: {len(index):,} turns")


def _rank(options: argparse.Namespace) -> None:
    from ..search.rank import rank_file

    for line in rank_file(
        options.model, options.context, options.candidates, top=options.top, **reading_of(options)
    ):
        print(line)


COMMANDS = (
    Command(
        "embed",
        _embed,
        "turn conversations into vectors, in a Parquet file; run again, it goes on",
        "example: dialemb embed calls.csv --output vectors.parquet",
        _EMBED_OPTIONS,
        (conversations("input", CONVERSATIONS),),
    ),
    Command(
        "search",
        _search,
        "find what was said, in words",
        _SEARCH,
        _SEARCH_OPTIONS,
        (
            {
                **conversations("corpus"),
                "--index": {"type": Path, "help": "an index made by dialemb index, instead"},
            },
        ),
    ),
    Command(
        "index",
        _index,
        "keep conversations in a folder; run again, it embeds what is new",
        _INDEX,
        _INDEX_OPTIONS,
    ),
    Command(
        "rank",
        _rank,
        "rank a pool of responses: which should come next in a dialogue?",
        _RANK,
        _RANK_OPTIONS,
    ),
)
