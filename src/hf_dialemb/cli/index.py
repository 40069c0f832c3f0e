"""The command ``dialemb index``: conversations in a vector database that grows."""

import argparse
from collections import deque
from pathlib import Path

from ..corpora.own.options import ReadingOptions
from ..errors import InputError
from .parser import Commands, add_command, chosen_model, model_option, own_options, reading_of


def add(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "index",
        "Keep conversations in a LanceDB table that you can search. Run it again with a new export, and it embeds only "
        "what is new.",
        "example: dialemb index calls.csv --output calls.lance\n"
        '         dialemb search --index calls.lance --query "card was stolen" --where "time > \'2026-01-01\'"',
    )
    parser.add_argument("input", nargs="?", help="conversations to add: a file, or a folder of them")
    own_options(parser)
    parser.add_argument("--output", type=Path, required=True, help="the index, a folder whose name ends in .lance")
    model_option(parser)
    help = "one row for each of: dialogues, speakers or utterances (default: dialogues)"
    parser.add_argument("--level", choices=("dialogues", "speakers", "utterances"), help=help)
    parser.add_argument(
        "--labels", type=Path, help="a CSV with the columns id and topic, or the dialogues.csv of dialemb topics"
    )
    parser.add_argument("--delete", nargs="+", metavar="ID", help="dialogues to delete")
    help = "write the index anew, so that what was deleted or replaced leaves the disk"
    parser.add_argument("--compact", action="store_true", help=help)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from ..corpora.own.reading import read_own
    from ..retrieval.dialogue_index import DialogueIndex, read_topics

    if not (options.input or options.labels or options.delete or options.compact):
        raise InputError("input: got nothing to do, expected conversations, --labels, --delete or --compact; name one")
    topics = read_topics(options.labels) if options.labels else {}
    how = ReadingOptions(**reading_of(options))
    if options.input:
        deque(read_own(options.input, how), maxlen=0)  # refuses it, and says what is left out, before all else
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
