"""The commands ``dialemb embed``, ``search``, ``index`` and ``rank``."""

from __future__ import annotations

import argparse
import json
from collections import deque
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

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
    model_and_vectors,
    named,
    reading_of,
    say,
)

if TYPE_CHECKING:
    from ..search.hits import Hits

_SEARCH = """\
example: dialemb search calls.csv --query "what did Anna say about her card?"
         dialemb search calls.csv --query "card was stolen" --whole
         dialemb search calls.csv --vectors vectors.parquet --id call-17"""
_INDEX = """\
example: dialemb index calls.csv --output calls.lance
         dialemb search --index calls.lance --query card --where "time > '2026-01-01'\""""
_RANK = """\
example: dialemb rank --model runs/mgt-multiwoz/multi-granularity --context calls.jsonl
  --candidates responses.txt --top 5"""
_EMBED_OPTIONS: Options = {
    "--output": {
        "type": Path,
        "required": True,
        "help": "Parquet file with the columns id, said, metadata (JSON) and embedding",
    },
    "--level": {
        "choices": ["dialogues", "utterances"],
        "default": "dialogues",
        "help": "what each row holds (default: dialogues)",
    },
    "--shard-size": {"type": int, "default": 2000, "help": "dialogues per shard (default: 2000)"},
    **MODEL,
    **READING,
}
_SEARCH_OPTIONS: Options = {
    "--where": {
        "help": "with --index: a condition such as \"topic = 'cards' and time > '2026-01-01'\""
    },
    "--whole": {
        "action": "store_true",
        "help": "with --query: find conversations instead of turns",
    },
    "--vectors": {"type": Path, "help": "vectors from dialemb embed, instead of embedding again"},
    "--top": {"type": int, "default": 5, "help": "how many to show (default: 5)"},
    "--output": {"type": Path, "help": "also write hits here, one JSON object a line"},
    **MODEL,
    **corpus_options("test"),
}
_INDEX_OPTIONS: Options = {
    "input": {"nargs": "?", "help": CONVERSATIONS},
    "--output": {
        "type": Path,
        "required": True,
        "help": "the index, a folder whose name ends in .lance",
    },
    "--level": {
        "choices": ["dialogues", "turns"],
        "help": "one row for each of: dialogues, or turns, found by words too (default: dialogues)",
    },
    "--labels": {
        "type": Path,
        "help": "a CSV with the columns id and topic, as dialemb topics writes",
    },
    "--delete": {"nargs": "+", "metavar": "ID", "help": "dialogues to delete"},
    "--compact": {
        "action": "store_true",
        "help": "let what was deleted or replaced leave the disk",
    },
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
    "--output": {"type": Path, "help": "also write them here (JSONL)"},
    **METHOD,
    **READING,
}


def _embed(options: argparse.Namespace) -> None:
    from ..search.embed import embed_file

    more = named(options, "shard_size", "level") | reading_of(options)
    model = chosen_model(options, options.model)
    rows = embed_file(model, Path(options.input), options.output, **more)
    say(f"Wrote {rows:,} embeddings to {options.output}")


def _search(options: argparse.Namespace) -> None:
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
    from ..search.dialogue_index import DialogueIndex

    if options.vectors:
        raise InputError(
            "--vectors: is of a corpus, but got --index, which has its own; leave it out"
        )
    index = DialogueIndex(options.index, chosen_model(options, options.model, needed=False))
    if options.id is not None:
        return index.near(options.id, options.top, options.where)
    return index.search(options.query, options.top, options.where)


def _in_corpus(options: argparse.Namespace) -> Hits:
    from ..search.search import describe, search
    from .show import find_dialogue

    if options.where is not None:
        raise InputError(
            "--where: is of an index, but got --corpus; make an index with dialemb index"
        )
    dialogues = loaded(options, options.corpus)
    query = options.query
    if options.id is not None:
        start = find_dialogue(dialogues, options.id)  # before all of them are encoded
        query = next(row for row, dialogue in enumerate(dialogues) if dialogue is start)
        print(describe(start))
    model, vectors = model_and_vectors(options, dialogues, options.corpus)
    return search(model, dialogues, query, options.top, vectors, options.whole)


def _index(options: argparse.Namespace) -> None:
    from ..files.reading import read_own
    from ..search.dialogue_index import DialogueIndex
    from ..search.topic_labels import read_topics

    if not (options.input or options.labels or options.delete or options.compact):
        raise InputError(
            "input: got nothing to do, expected conversations, --labels, --delete or --compact; "
            "name one"
        )
    topics = read_topics(options.labels) if options.labels else {}
    how = ReadingOptions(**reading_of(options))
    if options.input:
        # refuses it, and says what is left out, before all else
        deque(read_own(options.input, how), maxlen=0)
    dialogues = read_own(options.input, how, silent=True) if options.input else None
    made = options.output.exists() or dialogues is None
    model = chosen_model(options, options.model, needed=not made)
    index = DialogueIndex(options.output, model, options.level)
    if options.delete:
        stays = "" if options.compact else "; their text stays on disk until --compact"
        print(f"Deleted {index.delete(options.delete):,} dialogues{stays}")
    if dialogues is not None:
        print(f"Embedded {index.add(dialogues):,} dialogues that are new or changed")
    if topics:
        print(f"Named the topic of {index.label(topics):,} dialogues")
    if options.compact:
        index.compact()
    print(f"{options.output}: {len(index):,} rows")


def _rank(options: argparse.Namespace) -> None:
    from ..search.rank import rank_file

    more = {**named(options, "top", "output"), **reading_of(options)}
    for line in rank_file(options.model, options.context, options.candidates, **more):
        (print if options.output is None else say)(line)
    if options.output:
        say(f"Wrote {options.output}")


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
        "find what was said, or the conversations nearest to a text or to one of them",
        _SEARCH,
        _SEARCH_OPTIONS,
        (
            {
                **conversations("corpus"),
                "--index": {"type": Path, "help": "an index made by dialemb index, instead"},
            },
            {
                "--query": {"help": "what to look for, in words"},
                "--id": {"help": "the dialogue to start from: its id, or its number as #12"},
            },
        ),
    ),
    Command(
        "index",
        _index,
        "keep conversations in a LanceDB table; run again, it embeds what is new",
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
