"""The command ``dialemb topics``."""

import argparse
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...storage.files import check_writable
from .parser import (
    CONVERSATIONS,
    LANGUAGE,
    MODEL,
    Command,
    Options,
    chosen_model,
    conversations,
    corpus_options,
    loaded,
    say,
)

_EPILOG = """\
example: dialemb topics january.csv
then open topics/index.html
next month: dialemb topics february.csv --from topics"""
_TOPICS_OPTIONS: Options = {
    "--topics": {"type": int, "help": "number of topics (default: from the data)"},
    "--names": {"default": "phrases", "help": "phrases, or api:MODEL (default: phrases)"},
    "--from": {
        "type": Path,
        "dest": "earlier",
        "help": "an earlier output: its topics keep ids and names",
    },
    "--compare": {"help": "compare parts: month, or a column such as team, channel or score"},
    "--output": {
        "type": Path,
        "help": "folder to write (default: topics; with --from topics, topics-february)",
    },
    **LANGUAGE,
    **MODEL,
    **corpus_options("all"),
}


def _run(options: argparse.Namespace) -> None:
    from ..flow.differences import parts_of
    from ..flow.extract import unread_ends
    from ..topics.edits import EDITS, NO_EDITS, read_edits
    from ..topics.topic_comparison import lines_of
    from ..topics.topics import PAGE

    output = _checked_output(options)
    dialogues = loaded(options, options.input)
    check_writable(output / PAGE, options.input)
    if options.compare:
        parts_of(dialogues, options.compare)  # before all that takes longer
    edits = read_edits(output / EDITS) if (output / EDITS).is_file() else NO_EDITS
    topics = _topics_of(options, dialogues, output / "cache", edits)
    for topic in topics.by_size:
        say(f"{topic.size:7,} {topic.name}")
    for line in unread_ends(topics.ends):
        say(line)
    if options.earlier:
        topics = topics.compared_with(options.earlier)
    if options.compare:
        topics = topics.compared(options.compare)
    if topics.comparisons:
        say("\n".join(lines_of(topics.comparisons)))
    topics.save(output)
    say(f"Wrote {output / PAGE}: {topics.counts}")
    if options.topics is None and not options.earlier:
        say("More or fewer topics: --topics NUMBER")


def _checked_output(options: argparse.Namespace) -> Path:
    """Return the folder to write, which is not the one of ``--from``."""
    if not options.earlier:
        return options.output or Path("topics")
    if options.topics is not None:
        raise InputError("got --from and --topics, expected one of them; leave one out")
    output: Path = options.output or Path(f"{options.earlier}-{Path(options.input).stem}")
    if output.resolve() == options.earlier.resolve():
        raise InputError(
            f"--output {output}: is what --from goes on from, and would be lost; choose another "
            "folder"
        )
    return output


def _topics_of(options: argparse.Namespace, dialogues: Any, cache: Path, edits: Any) -> Any:
    """Find topics, or go on with those of an earlier folder."""
    from ..topics.model import find_topics, load_topics

    more = {
        "names": options.names,
        "title": f"Topics of {Path(options.input).name}",
        "cache": cache,
        "edits": edits,
        "language": options.language,
    }
    model = chosen_model(options, options.model, needed=not options.earlier)
    if options.earlier:
        return load_topics(options.earlier, model).update(dialogues, **more)
    return find_topics(dialogues, model, topics=options.topics, **more)


COMMANDS = (
    Command(
        "topics",
        _run,
        "find what conversations are about, without labels: topics with names, on a web page",
        _EPILOG,
        _TOPICS_OPTIONS,
        (conversations("input", CONVERSATIONS),),
    ),
)
