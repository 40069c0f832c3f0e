"""What the commands share: errors that are one sentence, help with an example, the options that name a corpus."""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from ..errors import InputError, nearest


class Parser(argparse.ArgumentParser):
    """A parser whose errors are `InputError`, and whose help lists names when it is asked for."""

    lists: Mapping[str, Callable[[], Iterable[str]]] = {}
    words: Sequence[str] = ()  # what is parsed

    def format_help(self) -> str:
        """Returns the help, with the lists that the epilog names in braces."""
        for name, listed in self.lists.items():
            text = textwrap.fill(", ".join(listed()), 100, subsequent_indent="  ", break_on_hyphens=False)
            self.epilog = str(self.epilog).replace(f"{{{name}}}", text)
        return super().format_help()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # noqa: ANN401 - as argparse has it
        """Parses words, which `error` looks at."""
        self.words = args or ()
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Raises what argparse has to say, or that an argument is unknown whose value it takes for another argument."""
        known = self._option_string_actions
        for word in self.words if "not allowed with" in message else ():
            if word.startswith("--") and not any(name.startswith(word.partition("=")[0]) for name in known):
                raise unknown_argument(word, self.prog, known)
        raise InputError(f"{message}; see '{self.prog} --help'")


def unknown_argument(got: str, program: str, known: Iterable[str]) -> InputError:
    """Makes the error for an argument that a command does not take; it suggests the nearest known one."""
    return InputError(f"unknown argument '{got}'; see '{program} --help'.{nearest(got, known)}")


def add_command(
    commands: argparse._SubParsersAction[Parser],
    name: str,
    summary: str,
    example: str,
    **lists: Callable[[], Iterable[str]],
) -> Parser:
    """Adds a command; ``{tasks}`` in its example stands for what ``tasks()`` lists, when the help is shown."""
    parser = commands.add_parser(
        name, help=summary, description=summary, epilog=example, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.lists = lists
    return parser


def say(line: str) -> None:
    """Prints a line of a command that has more to do than to print; names in it cannot command the terminal."""
    from ..drawing import visible

    try:
        print("".join(letter if letter in "\n\t" else visible(letter) for letter in line), flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def named(options: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Takes some of the options, for a function that calls them the same."""
    return {name: getattr(options, name) for name in names}


def conversations(
    parser: argparse.ArgumentParser,
    name: str = "input",
    told: str = "your conversations: a file, or a folder of them; or a corpus name",
) -> argparse._MutuallyExclusiveGroup:
    """Adds the word that says what to read, which an option may say too; returns the group, one of which is needed."""
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument(name, nargs="?", default=argparse.SUPPRESS, help=told)
    group.add_argument(f"--{name}", help="another way to name them")
    return group


def corpus_options(parser: argparse.ArgumentParser) -> argparse._MutuallyExclusiveGroup:
    """Adds the options that name a corpus, and say how it is to be read; returns the group of those that name it."""
    told = "your own file, folder or Hub dataset, or the name of a public corpus"
    group = conversations(parser, "corpus", told)
    reading_options(parser, "test")
    return group


def reading_options(parser: argparse.ArgumentParser, split: str) -> None:
    """Adds the options that say where a corpus lies, which split is wanted, and how a file of one's own is read."""
    parser.add_argument("--data-dir", help="folder that holds the corpora, unpacked or packed")
    split_option(parser, split)
    own_options(parser)


def model_option(parser: argparse._ActionsContainer, **options: Any) -> None:  # noqa: ANN401 - of add_argument
    """Adds the option that names a model, which may be left out; see `chosen_model`."""
    told = "a checkpoint folder, a Hub id, or an encoder from the package, such as dialogue-minilm "
    parser.add_argument("--model", help=told + "(default: the best one available)", **options)


def chosen_model(given: str | None, of: str = "dialogue") -> str:
    """Takes the model that was named, or chooses one and says which."""
    if given:
        return given
    from ..checkpoints.pretrained import default_encoder

    name = default_encoder(of)
    print(f"Model: {name} (choose another with --model)", file=sys.stderr)
    return name


def model_and_vectors(options: argparse.Namespace, dialogues: Any, corpus: str) -> tuple[str, Any]:  # noqa: ANN401
    """Takes the dialogues' vectors that were named and the model that made them, or the model and None."""
    if not options.vectors:
        return chosen_model(options.model), None
    from ..encoders.stored_vectors import stored_vectors

    stored = stored_vectors(options.vectors, options.model)
    return stored.model, stored.of_dialogues(dialogues, corpus)


def split_option(parser: argparse._ActionsContainer, split: str, default: str | None = None) -> None:
    """Adds the option that names a split."""
    told = f"for public corpora and Hub datasets: train, dev, test or all (default: {split})"
    parser.add_argument("--split", action=_Split, default=split if default is None else default, help=told)


class _Split(argparse.Action):
    """Remembers that the split was given, which `check_split` asks for."""

    def __call__(self, _: object, options: argparse.Namespace, given: object, option: str | None = None) -> None:
        options.split = options.given_split = given


def check_split(options: argparse.Namespace) -> None:
    """Refuses a split of a file of one's own, which is read whole."""
    if "split" not in options:
        return
    from ..corpora import CORPORA
    from ..corpora.corpus import ALL
    from ..corpora.loading import check_no_split, with_split
    from ..corpora.own.reading import is_own

    for name in ("corpus", "file", "input"):
        corpus, given = getattr(options, name, None), getattr(options, "given_split", None)
        if corpus and corpus not in CORPORA and is_own(corpus):
            check_no_split(corpus, given)
            options.split = ALL
        elif corpus and with_split(corpus)[0] != corpus:  # such as sgd/test
            known, options.split = with_split(corpus, given)
            setattr(options, name, known)


def engine_option(parser: argparse.ArgumentParser) -> None:
    """Adds the option that says where the work is done."""
    from ..runs.shards import ENGINES

    told = "where: on this machine, or on those of a Ray cluster (RAY_ADDRESS; default: local)"
    parser.add_argument("--engine", choices=ENGINES, default=ENGINES[0], help=told)


def own_options(parser: argparse._ActionsContainer) -> None:
    """Adds the options that say how a file of one's own is to be read."""
    parser.add_argument("--columns", help="for tables: which column is what, such as id=call,role=speaker,content=text")
    parser.add_argument("--roles", help="who is who, such as Agent=assistant,Customer=user")
