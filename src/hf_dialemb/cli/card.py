"""The command ``dialemb model card``: the model card of a published folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..errors import told
from .parser import Parser, add_command, say

_HELP = """Figures are optional: without --results the card says that it has none. They come from dialemb papers
benchmark or dialemb evaluate, for the model and for its backbone (for an ensemble: the single ranker) to compare with.
If the model learnt from your own file, give that file's licence:
--corpus-licence 'calls.jsonl=permissive:CC BY 4.0' (permissive, share-alike or research).

example: dialemb model card --model published/dse-minilm --run runs/dse-minilm --results benchmark/dse.json"""


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Adds the command."""
    parser = add_command(commands, "card", "Write the model card of an exported folder from its results.", _HELP)
    parser.add_argument("--model", type=Path, required=True, help="folder that dialemb export wrote")
    parser.add_argument("--run", dest="training", type=Path, required=True, help="folder of the training")
    parser.add_argument("--results", type=Path, nargs="+", default=[], help="results files of the model, if any")
    parser.add_argument("--repo-id", help="where you will publish it (default: org/ and the folder's name)")
    parser.add_argument("--corpus-licence", nargs="+", default=[], metavar="NAME=TERMS:LICENCE", help="see below")
    parser.add_argument(
        "--output", type=Path, help="file to write (default: README.md of the folder, with its figures in results/)"
    )
    parser.add_argument("--record", type=Path, help="keep what the card needs from both folders in this file")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from ..hub.card.card import figures_of, render_record, repository
    from ..hub.card.figures import write_published_results
    from ..hub.card.record import make_record
    from ..runs.files import check_writable, write_json_atomically, write_text_atomically

    for written in filter(None, (options.output, options.record)):
        check_writable(written, *options.results)
    with told(f"{options.model}, {options.training} and the results", "write them again, by export, train, benchmark"):
        record = make_record(options.model, options.training, options.corpus_licence)
        wanted = options.results or options.output or not options.record
        card = render_record(record, options.results, options.repo_id) if wanted else ""
    if card:
        written = []
        if options.output is None and options.results:
            name = repository(record, options.repo_id)
            written = write_published_results(figures_of(record, options.results), options.results, name, options.model)
        output = options.output or options.model / "README.md"
        write_text_atomically(output, card)
        print("\n".join(f"Wrote {path}" for path in (output, *written)))
    if options.record:
        write_json_atomically(options.record, record)
        say(f"Wrote {options.record}")
