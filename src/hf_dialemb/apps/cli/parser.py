"""The shared parts of the commands.

Errors of one sentence, help with an example, the options that name things.
"""

import argparse
import os
import re
import sys
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from ...data.reading_options import OPTIONS
from ...errors import InputError, nearest


class Parser(argparse.ArgumentParser):
    """A parser whose errors are `InputError`, and whose help lists names when it is asked for."""

    lists: Mapping[str, Callable[[], Iterable[str]]] = {}
    words: Sequence[str] = ()  # to parse

    def format_help(self) -> str:
        """Return the help, with the lists that the epilog names in braces."""
        for name, listed in self.lists.items():
            text = textwrap.fill(
                ", ".join(listed()), 100, subsequent_indent="  ", break_on_hyphens=False
            )
            self.epilog = str(self.epilog).replace(f"{{{name}}}", text)
        return super().format_help()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse words, which `error` looks at."""
        self.words = args or ()
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Raise argparse's message.

        Name an unknown argument whose value argparse takes for another argument.
        """
        known = self._option_string_actions
        for word in self.words if "not allowed with" in message else ():
            if word.startswith("--") and not any(
                name.startswith(word.partition("=")[0]) for name in known
            ):
                raise unknown_argument(word, self.prog, known)
        raise InputError(f"{message}; see '{self.prog} --help'")


Commands: TypeAlias = "argparse._SubParsersAction[Parser]"
"""The commands of ``dialemb`` or of a group, to which more are added."""


def unknown_argument(got: str, program: str, known: Iterable[str]) -> InputError:
    """Return the error for an argument that a command does not take.

    It suggests the nearest known name.
    """
    return InputError(f"unknown argument '{got}'; see '{program} --help'.{nearest(got, known)}")


def read_texts(file: Path) -> dict[str, Any]:
    """Read the summary, the epilog and the options of commands.

    Those of a group stand beside the group's own.
    """
    return tomllib.loads(file.read_text(encoding="utf-8"))


TEXTS = read_texts(Path(__file__).with_name("commands.toml"))

_TYPES = {"int": int, "float": float, "path": Path}


def add_command(
    commands: Commands,
    name: str,
    run: Callable[[argparse.Namespace], None] | None,
    texts: Mapping[str, Any] = TEXTS,
    **lists: Callable[[], Iterable[str]],
) -> Parser:
    """Add a command with its options, which calls ``run``.

    The first clause of its summary stands in the list of all.

    ``{tasks}`` in its epilog stands for what ``tasks()`` lists, when the help is shown.
    """
    stated, form = texts[name], argparse.RawDescriptionHelpFormatter
    listed: dict[str, Any] = (
        {} if " " in name else {"help": re.split(r"[.:;,]( |$)", stated["summary"])[0]}
    )
    parser = commands.add_parser(
        name, description=stated["summary"], epilog=stated["epilog"], formatter_class=form, **listed
    )
    parser.lists = lists
    parser.set_defaults(run=run)
    if "conversations" in stated:
        _conversations(parser, **stated["conversations"])
    if "wanted" in stated:
        _add_options(parser.add_mutually_exclusive_group(required=True), stated["wanted"])
    own = stated.get("options", {})
    shared = {
        option: how
        for kind in stated.get("takes", ())
        for option, how in TEXTS["shared"][kind].items()
    }
    _add_options(
        parser,
        {option: {**shared.get(option, {}), **own.get(option, {})} for option in {**own, **shared}},
    )
    if split := stated.get("split"):
        parser.add_argument(
            "--split",
            help=f"for public corpora and Hub datasets: train, dev, test or all (default: {split})",
        )
        parser.set_defaults(default_split=split)
    return parser


def _add_options(
    parser: argparse._ActionsContainer, options: Mapping[str, Mapping[str, Any]]
) -> None:
    for option, how in options.items():
        kind = {"type": _TYPES[how["type"]]} if "type" in how else {}
        parser.add_argument(*option.split(), **{**how, **kind})


def _conversations(
    parser: argparse.ArgumentParser,
    name: str = "corpus",
    help: str = "your file, folder or Hub dataset, or a corpus, as sgd or sgd/test",
    several: bool = False,
    instead: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """Add the input, as a word or as ``--corpus`` (also ``--input``), or another option
    ``instead``: one is needed.
    """
    group, many = parser.add_mutually_exclusive_group(required=True), "+" if several else None
    group.add_argument(
        name, nargs="*" if several else "?", default=argparse.SUPPRESS, metavar="corpus", help=help
    )
    group.add_argument(
        "--corpus",
        "--input",
        dest=name,
        nargs=many,
        metavar="CORPUS",
        help="another way to name them",
    )
    _add_options(group, instead or {})


def add_group(commands: Commands, name: str, texts: Mapping[str, Any] = TEXTS) -> Any:
    """Add a command that has commands; return their list, to add to."""
    parser = add_command(commands, name, None, texts)
    return parser.add_subparsers(
        dest="subcommand", required=True, metavar="command", parser_class=Parser
    )


def say(line: str) -> None:
    """Print a line of a command that goes on working; names in it cannot command the terminal."""
    from ...display import visible

    try:
        print(
            "".join(letter if letter in "\n\t" else visible(letter) for letter in line), flush=True
        )
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def named(options: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Return some of the options, for a function whose arguments have the same names."""
    return {name: getattr(options, name) for name in names}


def chosen_model(
    options: argparse.Namespace, given: str | None, of: str = "dialogue", *, needed: bool = True
) -> Any:
    """Return the model ``given`` or the best one available, which is printed.

    A name, or with options an encoder.

    If none is given or ``needed``, return None, and refuse the options of loading.
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
    options.split = options.default_split if options.split is None else options.split


def reading_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return how files are to be read, for functions that take the options of `load_dialogues`."""
    return named(options, *OPTIONS)
