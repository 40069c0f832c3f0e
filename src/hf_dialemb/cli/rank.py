"""``dialemb rank`` ranks responses after dialogues; ``dialemb corpus candidates`` draws the sets to rank."""

import argparse
from pathlib import Path

from ..errors import InputError
from ..runs.files import check_writable
from .parser import Commands, add_command, corpus_options, method_option, named, own_options, reading_of, say


def add(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "rank",
        "Rank a pool of responses: which one should come next in a dialogue?",
        "example: dialemb rank --model runs/mgt-multiwoz/multi-granularity --context calls.jsonl "
        "--candidates responses.txt --top 5",
    )
    parser.add_argument("--model", required=True, help="folder or Hub id (org/name@v1) of a ranker or an ensemble")
    method_option(parser)
    parser.add_argument("--context", type=Path, required=True, help="the dialogues so far: your file or folder")
    own_options(parser)
    parser.add_argument("--candidates", type=Path, required=True, help="text file with one response per line")
    parser.add_argument("--top", type=int, default=10, help="responses to show for each dialogue (default: 10)")
    parser.add_argument("--output", type=Path, help="also write them here, one dialogue per line (JSONL)")
    parser.set_defaults(run=_rank)


def add_candidates(actions: Commands) -> None:
    """Add the action ``candidates`` of ``dialemb corpus``."""
    parser = add_command(
        actions,
        "candidates",
        "Hide each true response of a corpus among others, so that all models rank the same candidates.",
        "example: dialemb corpus candidates multiwoz --data-dir data --responses assistant --output test.jsonl",
    )
    corpus_options(parser)
    parser.add_argument("--num-candidates", type=int, default=20, help="K, the true one included (default: 20)")
    parser.add_argument(
        "--responses",
        default="any",
        choices=["assistant", "any", "last"],
        help="which turns are responses: the assistant's, all but the first, or only the last (default: any)",
    )
    parser.add_argument("--seed", type=int, default=13, help="for random draws (default: 13)")
    parser.add_argument("--output", type=Path, required=True, help="file to write (JSONL)")
    parser.set_defaults(run=_candidates)


def _rank(options: argparse.Namespace) -> None:
    from ..retrieval.rank import rank_file

    more = {**named(options, "top", "output"), **reading_of(options)}
    for line in rank_file(options.model, options.context, options.candidates, **more):
        (print if options.output is None else say)(line)
    if options.output:
        say(f"Wrote {options.output}")


def _candidates(options: argparse.Namespace) -> None:
    from ..corpora import load_dialogues
    from ..corpora.examples import draw_candidates, write_candidates

    if options.num_candidates < 2 or options.seed < 0:
        got = f"{options.num_candidates} and {options.seed}"
        raise InputError(f"--num-candidates and --seed: got {got}, expected at least 2 and 0")
    check_writable(options.output, options.corpus)
    dialogues = load_dialogues(options.corpus, options.data_dir, options.split, **reading_of(options))
    drawn_from = named(options, "corpus", "split", "seed", "num_candidates", "responses")
    selections = draw_candidates(dialogues, options.num_candidates, options.responses, options.seed)
    write_candidates(options.output, selections, drawn_from)
    print(
        f"{len(dialogues):,} dialogues gave {len(selections):,} contexts with {options.num_candidates} candidates each"
    )
    say(f"Wrote {options.output}")
