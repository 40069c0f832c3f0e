"""The command ``dialemb topics``."""

import argparse
from pathlib import Path

from .parser import (
    Commands,
    add_command,
    conversations,
    model_and_vectors,
    model_option,
    named,
    reading_of,
    reading_options,
    say,
)


def add(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "topics", _run)
    conversations(parser)
    model_option(parser)
    reading_options(parser, "all")


def _run(options: argparse.Namespace) -> None:
    from ..corpora import load_dialogues
    from ..runs.files import check_writable
    from ..topics.model import find_topics
    from ..topics.topics import PAGE

    dialogues = load_dialogues(options.input, **named(options, "data_dir", "split"), **reading_of(options))
    check_writable(options.output / PAGE, options.input, options.vectors or "")
    model, vectors = model_and_vectors(options, dialogues, options.input)
    more = {**named(options, "topics", "names"), "title": f"Topics of {Path(options.input).name}"}
    topics = find_topics(dialogues, model, vectors=vectors, cache=options.output / "cache", **more)
    for topic in topics.by_size:
        say(f"{topic.size:7,} {topic.name}")
    topics.save(options.output)
    if options.flows:  # which takes longer
        topics.page(options.output / PAGE, topics.save_flows(options.output))
    say(f"Wrote {options.output / PAGE}: {topics.counts}")
    if options.topics is None:
        say("More or fewer topics: --topics NUMBER")
