"""The shared parts of the commands: errors of one sentence, options that many take."""

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from ...data.reading_options import OPTIONS
from ...errors import InputError, nearest

CORPUS = "your file, folder or Hub dataset, or a corpus, as sgd or sgd/test"
CONVERSATIONS = "your conversations: a file, or a folder of them"


class Parser(argparse.ArgumentParser):
    """A parser whose errors are `InputError`, and whose help can end in names found on demand."""

    names: Callable[[], str] = str

    def format_help(self) -> str:
        """Return the help, and below it the names."""
        return super().format_help() + self.names()

    def error(self, message: str) -> NoReturn:
        """Raise argparse's message."""
        raise InputError(f"{message}; see '{self.prog} --help'")


Commands: TypeAlias = "argparse._SubParsersAction[Parser]"
"""The commands of ``dialemb`` or of a group, to which more are added."""


def unknown_argument(got: str, program: str, known: Iterable[str]) -> InputError:
    """Return the error for an argument that a command does not take, with the nearest it knows."""
    return InputError(f"unknown argument '{got}'; see '{program} --help'.{nearest(got, known)}")


def add_command(
    commands: Commands,
    name: str,
    run: Callable[[argparse.Namespace], None],
    summary: str,
    epilog: str,
) -> Parser:
    """Add a command that calls ``run``; commands of two words are not listed."""
    listed: dict[str, Any] = {} if " " in name else {"help": summary}
    parser = commands.add_parser(
        name,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        **listed,
    )
    parser.set_defaults(run=run)
    return parser


def add_group(commands: Commands, name: str, summary: str) -> Any:
    """Add a command that has commands; return their list, to add to."""
    parser = commands.add_parser(name, help=summary, description=f"{summary.capitalize()}.")
    return parser.add_subparsers(
        dest="subcommand", required=True, metavar="command", parser_class=Parser
    )


def add_conversations(parser: Parser, name: str = "corpus", text: str = CORPUS) -> Any:
    """Add the input, as a word or as ``--corpus``; return the group of which one is needed."""
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument(name, nargs="?", default=argparse.SUPPRESS, metavar="corpus", help=text)
    group.add_argument("--corpus", "--input", dest=name, metavar="CORPUS", help="the same")
    return group


def add_method(parser: Parser) -> None:
    """Add the option for methods of one's own."""
    parser.add_argument(
        "--method", metavar="FILE.py", help="for a model of a method of your own: its file"
    )


def add_loading_options(parser: Parser) -> None:
    """Add the options of loading a model, but its name."""
    parser.add_argument("--revision", help="for a Hub id: a branch, a tag or a commit")
    parser.add_argument("--device", help="such as cpu, cuda:1 or mps (default: the accelerator)")
    parser.add_argument(
        "--batch-size", type=int, help="texts or conversations in the model at once (default: 32)"
    )
    parser.add_argument("--dtype", help="float32 (the default), bfloat16 or float16")
    add_method(parser)


def add_model_options(parser: Parser) -> None:
    """Add the options of a model."""
    parser.add_argument(
        "--model",
        help="a checkpoint folder, a Hub id, or an encoder from the package, such as "
        "dialogue-minilm (default: the best one available)",
    )
    add_loading_options(parser)


def add_reading_options(parser: Parser) -> None:
    """Add the options of reading files of one's own."""
    parser.add_argument(
        "--columns",
        help="for tables: which column is what, such as id=call,role=speaker,content=text",
    )
    parser.add_argument("--roles", help="who is who, such as Agent=assistant,Customer=user")
    parser.add_argument(
        "--dates", choices=["day-first", "month-first"], help="the order of numbers in dates"
    )
    parser.add_argument("--gap", help="the pause that ends a conversation, such as 30m, 4h or 2d")
    parser.add_argument("--sheet", help="the sheet of a workbook, or all")
    parser.add_argument(
        "--strict",
        action="store_true",
        help="stop at what is malformed, and guess nothing (default: leave it out and count it)",
    )
    parser.add_argument(
        "--raw", action="store_true", help="leave HTML, quoted mail and signatures in the texts"
    )


def add_data_dir(parser: Parser) -> None:
    """Add the option for the folder of public corpora."""
    parser.add_argument("--data-dir", help="folder that holds the corpora, unpacked or packed")


def add_corpus_options(parser: Parser, split: str) -> None:
    """Add the options of reading a corpus, with the split that is the default."""
    add_data_dir(parser)
    add_reading_options(parser)
    parser.add_argument(
        "--split",
        help=f"for public corpora and Hub datasets: train, dev, test or all (default: {split})",
    )
    parser.set_defaults(default_split=split)


def add_output(parser: Parser, text: str, default: str | None = None) -> None:
    """Add the place that a command writes; without a default it must be named."""
    ending = f" (default: {default})" if default else ""
    parser.add_argument(
        "--output", type=Path, default=default, required=not default, help=f"{text}{ending}"
    )


def say(line: str) -> None:
    """Print a line of a command that goes on working; names in it cannot command the terminal."""
    from ...drawing import visible

    letters = (letter if letter in "\n\t" else visible(letter) for letter in line)
    print("".join(letters), flush=True)


def named(options: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Return some of the options, for a function whose arguments have the same names."""
    return {name: getattr(options, name) for name in names}


def chosen_model(
    options: argparse.Namespace, given: str | None, of: str = "dialogue", *, needed: bool = True
) -> Any:
    """Return the model ``given``, or else the best one available, which is printed.

    With options of loading it is an encoder, otherwise a name. If none is given or ``needed``,
    return None, and refuse the options of loading.
    """
    loading = named(options, "revision", "device", "batch_size", "dtype")
    loading["level"] = getattr(options, "model_level", None)
    loading = {name: value for name, value in loading.items() if value is not None}
    if not given and not needed:
        for name, value in loading.items():
            option = f"--{name.replace('_', '-')}"
            raise InputError(
                f"{option}: got {value} without a model to load; name one with --model, or leave "
                "it out"
            )
        return None
    if not given:
        from ...storage.pretrained import default_encoder

        given = default_encoder(of)
        print(f"Model: {given} (choose another with --model)", file=sys.stderr)
    if not loading:
        return given
    from ...encoders import load_encoder

    return load_encoder(given, **loading)


def model_and_vectors(options: argparse.Namespace, dialogues: Any, corpus: str) -> tuple[str, Any]:
    """Return the stored vectors of the dialogues with their model, or the chosen model and None."""
    if not options.vectors:
        return chosen_model(options, options.model), None
    from ...encoders.stored_vectors import stored_vectors

    chosen_model(options, None, needed=False)
    stored = stored_vectors(options.vectors, options.model)
    return stored.source.model, stored.of_dialogues(dialogues, corpus)


def check_split(options: argparse.Namespace) -> None:
    """Fill in the default split, and refuse a split of a file, which is read whole."""
    if "default_split" not in options:
        return
    from ...data import CORPORA
    from ...data.corpus import ALL
    from ...data.corpus_names import check_no_split, is_own, with_split

    for name in ("corpus", "file", "input"):
        corpus = getattr(options, name, None)
        if corpus and corpus not in CORPORA and is_own(corpus):
            check_no_split(corpus, options.split)
            options.split = ALL
        elif corpus and with_split(corpus)[0] != corpus:  # such as sgd/test
            known, options.split = with_split(corpus, options.split)
            setattr(options, name, known)
    if options.split is None:
        options.split = options.default_split


def reading_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return how files are to be read, for functions that take the options of `load_dialogues`."""
    return named(options, *OPTIONS)
