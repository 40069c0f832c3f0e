"""The shared parts of the commands: errors of one sentence, options that many take."""

import argparse
import stat
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeAlias

from ...data import CORPORA, load_dialogues
from ...data.corpus import ALL
from ...data.corpus_names import is_own, with_split
from ...data.reading_options import OPTIONS
from ...display import visible
from ...errors import InputError, nearest

Options: TypeAlias = Mapping[str, Mapping[str, Any]]
"""The arguments of ``add_argument``, by the names of an option."""

CORPUS = "your file, folder or Hub dataset, or a corpus, as sgd or sgd/test"
CONVERSATIONS = "your conversations: a file, or a folder of them"

METHOD: Options = {
    "--method": {"metavar": "FILE.py", "help": "for a model of a method of your own: its file"}
}
LOADING: Options = {
    "--revision": {"help": "for a Hub id: a branch, a tag or a commit"},
    "--device": {"help": "such as cpu, cuda:1 or mps (default: the accelerator)"},
    "--batch-size": {"type": int, "help": "texts in the model at once (default: 32)"},
    "--dtype": {"help": "float32 (the default), bfloat16 or float16"},
    **METHOD,
}
"""How a model is loaded."""

MODEL: Options = {
    "--model": {
        "help": "a checkpoint folder, a Hub id, or an encoder from the package, such as "
        "dialogue-minilm (default: the best one available)"
    },
    **LOADING,
}
LANGUAGE: Options = {
    "--language": {
        "default": "",
        "help": "of the conversations, such as en or de: ends are read in English alone (default: "
        "told from each conversation)",
    }
}
DATA: Options = {"--data-dir": {"help": "folder that holds the corpora, unpacked or packed"}}
READING: Options = {
    "--columns": {
        "help": "for tables: which column is what, such as id=call,role=speaker,content=text"
    },
    "--roles": {"help": "who is who, such as Agent=assistant,Customer=user"},
    "--dates": {"choices": ["day-first", "month-first"], "help": "the order of numbers in dates"},
    "--gap": {"help": "the pause that ends a conversation, such as 30m, 4h or 2d"},
    "--sheet": {"help": "the sheet of a workbook (default: all)"},
    "--strict": {
        "action": "store_true",
        "help": "stop at what is malformed, and guess nothing (default: leave it out and count it)",
    },
    "--raw": {"action": "store_true", "help": "leave HTML, quoted mail and signatures in texts"},
}
"""The options that say how to read the user's own files."""


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


class Command(NamedTuple):
    """A command of ``dialemb``, or of a group of commands."""

    name: str  # of a group's command the group's name comes first
    run: Callable[[argparse.Namespace], None]
    summary: str  # what stands in the list of commands and above its help
    epilog: str  # what stands below its help
    options: Options  # as ``add_argument`` takes them, by their names
    one_of: tuple[Options, ...] = ()  # of each of which exactly one must be given
    names: Callable[[], str] = str  # what ends its help
    takes_settings: bool = False  # whether further words are settings


def add_command(commands: Commands, command: Command) -> None:
    """Add a command; one with a name of two words is not listed."""
    name = command.name
    summary = command.summary
    listed: dict[str, Any] = {} if " " in name else {"help": summary}
    parser = commands.add_parser(
        name,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=command.epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        **listed,
    )
    parser.names = command.names
    parser.set_defaults(run=command.run, takes_settings=command.takes_settings)
    for option, how in command.options.items():
        parser.add_argument(option, **how)
    for several in command.one_of:
        group = parser.add_mutually_exclusive_group(required=True)
        for names, how in several.items():
            group.add_argument(*names.split(), **how)


def add_group(commands: Commands, name: str, summary: str) -> Any:
    """Add a command that has commands; return their list, to add to."""
    parser = commands.add_parser(name, help=summary, description=f"{summary.capitalize()}.")
    return parser.add_subparsers(
        dest="subcommand", required=True, metavar="command", parser_class=Parser
    )


def conversations(name: str, text: str = CORPUS) -> Options:
    """Return the options for the input, a word or ``--corpus``."""
    word = {"nargs": "?", "default": argparse.SUPPRESS, "metavar": "corpus", "help": text}
    return {name: word, "--corpus --input": {"dest": name, "metavar": "CORPUS", "help": "the same"}}


class DefaultSplit(str):
    """The split of a corpus where none is given."""


def corpus_options(split: str) -> Options:
    """Return the options of reading a corpus, with the split that is the default."""
    return {
        **DATA,
        **READING,
        "--split": {
            "default": DefaultSplit(split),
            "help": "for public corpora and Hub datasets: train, dev, test or all (default: "
            f"{split})",
        },
    }


def say(line: str) -> None:
    """Print a line of a command that goes on working; names in it cannot command the terminal."""
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


def fill_split(options: argparse.Namespace) -> None:
    """Fill in the default split of a corpus; a person's own file is read whole."""
    for name in ("corpus", "file", "input"):
        corpus = getattr(options, name, None)
        if corpus and isinstance(getattr(options, "split", None), DefaultSplit):
            known, split = with_split(corpus)  # such as sgd/test
            whole = known not in CORPORA and is_own(known)
            setattr(options, name, known)
            options.split = split or (ALL if whole else str(options.split))


def reading_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return how files are to be read, for functions that take the options of `load_dialogues`."""
    return named(options, *OPTIONS)


def loaded(options: argparse.Namespace, source: str) -> Any:
    """Load the dialogues of a corpus as the options say."""
    return load_dialogues(source, options.data_dir, options.split, **reading_of(options))


def check_regular(*names: object) -> None:
    """Refuse pipes and devices among words that may name files: reading them might never end."""
    for name in names:
        try:
            mode = Path(str(name)).stat().st_mode
        except (OSError, ValueError):
            continue
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise InputError(
                f"{name}: got a pipe or a device, expected a file; save what it gives into one"
            )
