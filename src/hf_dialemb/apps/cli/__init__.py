"""The command line ``dialemb``: parse, call, print; no logic.

Exit codes: 0 done, 1 the run failed, 2 the request was wrong, 130 interrupted.
"""

import argparse
import io
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

from ... import __version__
from ...display import visible
from ...errors import InputError
from ...hooks import entries
from ...methods import register
from . import corpus_commands, encoder_commands, flow_commands, search_commands, topic_commands
from .parser import Parser, add_command, add_group, check_regular, fill_split, unknown_argument

_COMMANDS = (
    *encoder_commands.COMMANDS,
    *search_commands.COMMANDS,
    *topic_commands.COMMANDS,
    *flow_commands.COMMANDS,
    *corpus_commands.COMMANDS,
)
_GROUPS = {"model": "write the card of a model", "corpus": "corpora and your own conversations"}
"""The groups of commands; names of two words in no group are commands themselves."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    _let_waiting_threads_sleep()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a corpus holds more than a terminal may
    try:
        _run(words)
    except KeyboardInterrupt:
        return _fail("interrupted; vectors are kept: run the same command again, it goes on", 130)
    except InputError as error:
        return _fail(str(error), 2)
    except BrokenPipeError:  # the reader of our output, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        return _fail(f"{error.filename or 'I/O'}: {error.strerror or error}", 1)
    except Exception as error:
        if sentence := _of_libraries(error):
            return _fail(sentence, 1)
        raise
    return 0


def _of_libraries(error: Exception) -> str:
    """Return a sentence for errors of libraries that no code of ours caused; nothing for others."""
    text = str(error)
    if isinstance(error, MemoryError) or "t allocate memory" in text or "out of memory" in text:
        return "there is not enough memory; give fewer or shorter dialogues"
    if isinstance(error, UnicodeEncodeError):
        return "I/O: got half a character (a lone surrogate), which no file can hold; remove it"
    if isinstance(error, ModuleNotFoundError):
        return f'the package {error.name} is missing; pip install "hf-dialemb[apps]"'
    if number := re.search(r"\(os error (\d+)\)", text):  # raised by a library in Rust
        return f"I/O: {os.strerror(int(number[1]))}; free space or change the rights, and run again"
    if "inline_container.cc" in text:  # torch.save on a full disk
        return "I/O: a checkpoint cannot be written; free space and run again"
    if type(error).__module__.startswith("safetensors"):
        return f"safetensors: {error}; free space or fetch the checkpoint again"
    return ""


def _run(words: list[str]) -> None:
    if " ".join(words[:2]) in {command.name for command in flow_commands.COMMANDS}:
        words = [" ".join(words[:2]), *words[2:]]
    options, rest = make_parser().parse_known_args(words)
    if rest and not getattr(options, "takes_settings", False):
        raise unknown_argument(
            rest[0],
            f"dialemb {options.command}",
            (f"--{name.replace('_', '-')}" for name in vars(options)),
        )
    options.rest = rest
    for name, value in vars(options).items():
        if not name.startswith(("output", "query")):  # an output may well be a device
            check_regular(*(value if isinstance(value, list) else [value]))
    if file := getattr(options, "method", None):
        register(file)
    fill_split(options)
    options.run(options)
    if sys.stdout is not None:
        sys.stdout.flush()  # here, where a reader that has left is noticed


def _fail(message: str, code: int) -> int:
    print(f"dialemb: error: {visible(' '.join(message.split()))}", file=sys.stderr)
    return code


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands, those of entry points too."""
    parser = Parser(
        prog="dialemb",
        description="Learn dialogue embeddings from conversations, measure them, publish them.",
        epilog="example: dialemb demo",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"dialemb {__version__}")
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="command", parser_class=Parser
    )
    places: dict[str, Any] = {}
    for command in _COMMANDS:
        group, _, name = command.name.rpartition(" ")
        if group in _GROUPS and group not in places:
            places[group] = add_group(commands, group, _GROUPS[group])
        own = command._replace(name=name) if group in _GROUPS else command
        add_command(places.get(group, commands), own)
    for _, entry in sorted(entries("commands").items()):
        entry.load()(commands)
    return parser


def _let_waiting_threads_sleep() -> None:
    """Make threads that wait for one another sleep after a short spin, and leave cores to others.

    Sets ``GOMP_SPINCOUNT`` and ``KMP_BLOCKTIME``, unless the user has set them or
    ``OMP_WAIT_POLICY``. Call it before torch is imported, which reads them then. Results stay the
    same, bit for bit.

    Threads that sleep at once wake late: on an idle machine, a step of many short products then
    takes up to half as long again. 4,000 looks for work, some tens of microseconds, cost it a
    twentieth; beside a busy process, it keeps two fifths of its rate.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "4000")
        os.environ.setdefault("KMP_BLOCKTIME", "0")
