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
from .parser import Commands, add_command, chosen_model, model_and_vectors, named, reading_of, say

if TYPE_CHECKING:
    from ..search.hits import Hits


def add(commands: Commands) -> None:
    """Add the commands."""
    for name, run in (("embed", _embed), ("search", _search), ("index", _index), ("rank", _rank)):
        add_command(commands, name, run)


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
    from ...data import load_dialogues
    from ..search.search import describe, search
    from .show import find_dialogue

    if options.where is not None:
        raise InputError(
            "--where: is of an index, but got --corpus; make an index with dialemb index"
        )
    dialogues = load_dialogues(
        options.corpus, options.data_dir, options.split, **reading_of(options)
    )
    query = options.query
    if options.id is not None:
        start = find_dialogue(dialogues, options.id)  # before all of them are encoded
        query = next(row for row, dialogue in enumerate(dialogues) if dialogue is start)
        print(describe(start))
    model, vectors = model_and_vectors(options, dialogues, options.corpus)
    return search(model, dialogues, query, options.top, vectors, options.whole)


def _index(options: argparse.Namespace) -> None:
    from ..files.reading import read_own
    from ..search.dialogue_index import DialogueIndex, read_topics

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
