"""``dialemb corpus``: list what can be read; check, convert and show your own files."""

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...data import iterate_dialogues, write_jsonl
from ...data.published import catalogue
from ...dialogue import ROLES, Dialogue
from ...display import counted
from ...errors import InputError
from ...storage.files import check_writable
from .parser import (
    CONVERSATIONS,
    CORPUS,
    Command,
    Options,
    conversations,
    corpus_options,
    reading_of,
    say,
)
from .show import find_dialogue, render_dialogue, turn_lines

_CHECK = """\
example: dialemb corpus check calls.csv --columns id=call,role=speaker,content=text
  --roles Agent=assistant"""
_CONVERT_OPTIONS: Options = {
    "corpus": {"help": CORPUS},
    "--mask": {"action": "store_true", "help": "replace addresses, numbers, links and names"},
    "--mask-names": {"type": Path, "metavar": "FILE", "help": "names to mask too, one per line"},
    "--output": {"type": Path, "required": True, "help": "the file to write, .jsonl or .jsonl.gz"},
    **corpus_options("all"),
}
_SHOW_OPTIONS: Options = {
    "--id": {"required": True, "help": "the dialogue's id, or its number as #12"},
    **corpus_options("test"),
}


def _list(options: argparse.Namespace) -> None:
    print(catalogue())


def _check(options: argparse.Namespace) -> None:
    from ..files.account import Account
    from ..files.check import SHOWN, check
    from ..files.findings import Notes

    kinds = Notes()
    counts = Counter[str]()
    severe = Counter[str]()
    first = list[Dialogue]()
    account = Account()
    into: dict[str, Any] = {"counts": counts, "first": first, "account": account}
    for problem in check(options.file, options.split, **into, **reading_of(options)):
        severe[problem.severity] += 1
        kinds.put(problem)
    for problem in kinds.problems(options.file):
        say(f"{problem.place}: {problem.severity}: {problem.message}")
    if first:
        say("The first turns as they were read:")
    for line in (*turn_lines(first, SHOWN), *account.lines()):
        say(line)
    if severe["error"]:
        raise InputError(
            f"{options.file}: errors: {severe['error']:,}, warnings: {severe['warning']:,}; they "
            "are listed above, each with how to fix it"
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
    if options.mask_names and not options.mask:
        raise InputError(
            "--mask-names: got a list of names without --mask, expected both; add --mask"
        )
    output = options.output
    check_writable(output, options.corpus)
    is_device = output.exists() and not output.is_file()
    if not (is_device or output.name.endswith((".jsonl", ".jsonl.gz"))):
        raise InputError(
            f"output '{output}': expected a name that ends in .jsonl or .jsonl.gz; rename it"
        )
    dialogues = _dialogues(options)
    counts = Counter[str]()
    if options.mask:
        dialogues = _masked(dialogues, options.mask_names, counts)
    say(f"Wrote {write_jsonl(dialogues, output):,} dialogues to {output}")
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
    from ..files.findings import Notes
    from ..files.masking import mask
    from ..files.text_encoding import encoding_of, text_of

    if names is None:
        return mask(dialogues, counts=counts)
    with text_of(names, encoding_of(names, Notes())) as lines:
        return mask(dialogues, lines.read().splitlines(), counts)


def _dialogues(options: argparse.Namespace) -> Iterator[Dialogue]:
    return iterate_dialogues(options.corpus, options.data_dir, options.split, **reading_of(options))


def _show(options: argparse.Namespace) -> None:
    print(render_dialogue(find_dialogue(_dialogues(options), options.id)))


COMMANDS = (
    Command(
        "corpus list",
        _list,
        "list the corpora that can be read",
        "example: dialemb corpus list",
        {},
    ),
    Command(
        "corpus check",
        _check,
        "list every problem in a file of conversations, its line, and how to fix it",
        _CHECK,
        {"file": {"help": CONVERSATIONS}, **corpus_options("all")},
    ),
    Command(
        "corpus convert",
        _convert,
        "convert conversations from any form into JSONL, with roles instead of names",
        "example: dialemb corpus convert calls.xlsx --output calls.jsonl",
        _CONVERT_OPTIONS,
    ),
    Command(
        "corpus show",
        _show,
        "print one dialogue",
        "example: dialemb corpus show sgd --data-dir data --id test/1_00000",
        _SHOW_OPTIONS,
        (conversations("corpus"),),
    ),
)
