"""``dialemb corpus``.

List and read corpora and your own files, check, convert, count, show, and find leaks.
"""

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ...dialogue import ROLES, Dialogue
from ...errors import InputError
from ...storage.files import check_writable, write_json_atomically
from ...storage.frames import counted
from .parser import (
    CONVERSATIONS,
    CORPUS,
    Commands,
    add_command,
    add_conversations,
    add_corpus_options,
    add_data_dir,
    add_group,
    add_output,
    add_reading_options,
    named,
    reading_of,
    say,
)

_CHECK = """\
example: dialemb corpus check calls.csv --columns id=call,role=speaker,content=text
  --roles Agent=assistant"""
_LEAKAGE = """\
example: dialemb corpus leakage --train multiwoz/train sgd/train --evaluation multiwoz/test
  --data-dir data --output leakage.json"""


def add(commands: Commands) -> None:
    """Add the command and its actions."""
    actions = add_group(commands, "corpus", "corpora and your own conversations")
    _add_candidates(actions)
    _add_list(actions)
    _add_check(actions)
    _add_convert(actions)
    _add_stats(actions)
    _add_show(actions)
    _add_leakage(actions)


def _add_candidates(actions: Commands) -> None:
    summary = "hide each true response among others, so that all models rank the same candidates"
    epilog = "example: dialemb corpus candidates multiwoz --responses assistant --output test.jsonl"
    parser = add_command(actions, "candidates", _candidates, summary, epilog)
    add_conversations(parser)
    parser.add_argument(
        "--num-candidates", type=int, default=20, help="the true one included (default: 20)"
    )
    parser.add_argument(
        "--responses",
        default="any",
        choices=["assistant", "any", "last"],
        help="which turns are responses: the assistant's, all but the first, or only the last",
    )
    parser.add_argument("--seed", type=int, default=13, help="for random draws (default: 13)")
    add_output(parser, "file to write (JSONL)")
    add_corpus_options(parser, "test")


def _add_list(actions: Commands) -> None:
    epilog = "example: dialemb corpus list"
    add_command(actions, "list", _list, "list the corpora that can be read", epilog)


def _add_check(actions: Commands) -> None:
    summary = "list every problem in a file of conversations, its line, and how to fix it"
    parser = add_command(actions, "check", _check, summary, _CHECK)
    parser.add_argument("file", help=CONVERSATIONS)
    add_corpus_options(parser, "all")


def _add_convert(actions: Commands) -> None:
    summary = "convert conversations from any form into JSONL, with roles instead of names"
    epilog = "example: dialemb corpus convert calls.xlsx --output calls.jsonl"
    parser = add_command(actions, "convert", _convert, summary, epilog)
    parser.add_argument("corpus", help=CORPUS)
    parser.add_argument(
        "--mask", action="store_true", help="replace addresses, numbers, links and names"
    )
    parser.add_argument(
        "--mask-names", type=Path, metavar="FILE", help="names to mask too, one per line"
    )
    add_output(parser, "the file to write, .jsonl or .jsonl.gz")
    add_corpus_options(parser, "all")


def _add_stats(actions: Commands) -> None:
    epilog = "example: dialemb corpus stats sgd --data-dir data"
    parser = add_command(actions, "stats", _stats, "count what is in a corpus", epilog)
    add_conversations(parser)
    add_corpus_options(parser, "test")


def _add_show(actions: Commands) -> None:
    epilog = "example: dialemb corpus show sgd --data-dir data --id test/1_00000"
    parser = add_command(actions, "show", _show, "print one dialogue", epilog)
    add_conversations(parser)
    parser.add_argument("--id", required=True, help="the dialogue's id, or its number as #12")
    add_corpus_options(parser, "test")


def _add_leakage(actions: Commands) -> None:
    summary = "find what evaluation sets and training sets share, exactly or nearly"
    parser = add_command(actions, "leakage", _leakage, summary, _LEAKAGE)
    for option, text in (("--train", "to train on"), ("--evaluation", "to evaluate on")):
        parser.add_argument(
            option, nargs="+", required=True, metavar="CORPUS/SPLIT", help=f"sets {text}, or all"
        )
    parser.add_argument("--output", type=Path, help="write the report here (JSON)")
    add_data_dir(parser)
    add_reading_options(parser)


def _candidates(options: argparse.Namespace) -> None:
    from ...data import load_dialogues
    from ...data.examples import draw_candidates, write_candidates

    if options.num_candidates < 2 or options.seed < 0:
        got = f"{options.num_candidates} and {options.seed}"
        raise InputError(f"--num-candidates and --seed: got {got}, expected at least 2 and 0")
    check_writable(options.output, options.corpus)
    dialogues = load_dialogues(
        options.corpus, options.data_dir, options.split, **reading_of(options)
    )
    drawn_from = named(options, "corpus", "split", "seed", "num_candidates", "responses")
    selections = draw_candidates(dialogues, options.num_candidates, options.responses, options.seed)
    write_candidates(options.output, selections, drawn_from)
    print(
        f"{len(dialogues):,} dialogues gave {len(selections):,} contexts with "
        f"{options.num_candidates} candidates each"
    )
    say(f"Wrote {options.output}")


def _list(options: argparse.Namespace) -> None:
    from ...data.published import catalogue

    print(catalogue())


def _check(options: argparse.Namespace) -> None:
    from ..files.check import SHOWN, check
    from ..files.findings import Notes
    from .show import turn_lines

    kinds, counts, severe, first = Notes(), Counter[str](), Counter[str](), list[Dialogue]()
    for problem in check(
        options.file, options.split, counts=counts, first=first, **reading_of(options)
    ):
        severe[problem.severity] += 1
        kinds.put(problem)
    for problem in kinds.problems(options.file):
        say(f"{problem.place}: {problem.severity}: {problem.message}")
    for line in ["The first turns as they were read:", *turn_lines(first, SHOWN)] if first else ():
        say(line)
    if severe["error"]:
        numbers = f"errors: {severe['error']:,}, warnings: {severe['warning']:,}"
        raise InputError(
            f"{options.file}: {numbers}; they are listed above, each with how to fix it"
        )
    words = (("warning", "warning", ""), ("guess", "thing", " guessed"), ("note", "note", ""))
    more = [counted(severe[kind], noun) + end for kind, noun, end in words if severe[kind]]
    worse = ", ".join(["No errors", *more]) if more else "No problems"
    roles = {role: counts[role] for role in ROLES if counts[role]}
    turns = (
        f"{counted(sum(roles.values()), 'turn')}: "
        f"{', '.join(f'{role} {count:,}' for role, count in roles.items())}"
    )
    say(f"{options.file}: {counted(counts['dialogue'], 'dialogue')}, {turns}. {worse}.")


def _convert(options: argparse.Namespace) -> None:
    from ...data.jsonl import write_jsonl
    from ..files.json_files import check_target

    if options.mask_names and not options.mask:
        raise InputError(
            "--mask-names: got a list of names without --mask, expected both; add --mask"
        )
    check_target(options.output, options.corpus)
    dialogues, counts = _dialogues(options), Counter[str]()
    if options.mask:
        dialogues = _masked(dialogues, options.mask_names, counts)
    say(f"Wrote {write_jsonl(dialogues, options.output):,} dialogues to {options.output}")
    if options.mask:
        kinds = (
            ", ".join(f"{kind} {count:,}" for kind, count in counts.most_common() if count)
            or "nothing"
        )
        say(
            f"Masked: {kinds}. This is no guarantee: what no rule and no list knows is still "
            "there. Read the result."
        )


def _masked(
    dialogues: Iterator[Dialogue], names: Path | None, counts: Counter[str]
) -> Iterator[Dialogue]:
    from ..files.encoding import text_of
    from ..files.findings import Notes
    from ..files.masking import mask

    if names is None:
        return mask(dialogues, counts=counts)
    with text_of(names, Notes()) as lines:
        return mask(dialogues, lines.read().splitlines(), counts)


def _dialogues(options: argparse.Namespace) -> Iterator[Dialogue]:
    from ...data import iterate_dialogues

    more = named(options, "data_dir", "split")
    return iterate_dialogues(options.corpus, **more, **reading_of(options))


def _stats(options: argparse.Namespace) -> None:
    from ...data import describe

    say(describe(_dialogues(options)))


def _show(options: argparse.Namespace) -> None:
    from .show import find_dialogue, render_dialogue

    print(render_dialogue(find_dialogue(_dialogues(options), options.id)))


def _leakage(options: argparse.Namespace) -> None:
    from ...data.audit.leakage import find_leakage

    if options.output:
        check_writable(options.output, *options.train, *options.evaluation)
    more = named(options, "data_dir") | reading_of(options)
    report = find_leakage(options.train, options.evaluation, **more)
    print(report.markdown())
    if options.output:
        write_json_atomically(options.output, report.to_json())
        say(f"Wrote {options.output}")
