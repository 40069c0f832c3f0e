"""The command line ``dialemb``: parse, call, print; no logic.

Exit codes: 0 done, 1 the run failed, 2 the request was wrong.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from .. import __version__
from ..models.errors import InputError
from . import flow
from .parser import Parser, check_split

_COMMANDS = (
    "demo", "train", "evaluate", "embed", "search", "benchmark", "card", "convert", "corpus", "ensemble", "export",
    "flow", "merge", "distil", "publish", "rank",
)  # fmt: skip
"""The modules of the commands, in the order of the help; each adds its own."""

_RESUMED = {"train", "ensemble", "embed", "benchmark", "flow"}  # what they have done already they take up again


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a corpus holds characters that a terminal may not
    try:
        if " ".join(words[:2]) in flow.COMMANDS:
            words[:2] = [" ".join(words[:2])]
        _run(words)
    except InputError as error:
        return _fail(str(error), 2)
    except KeyboardInterrupt:
        again = "to go on" if words[:1] and words[0] in _RESUMED else "to start over"
        return _fail(f"interrupted; run the same command again {again}", 130)
    except BrokenPipeError:  # whoever read our output, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _fail(f"{error.filename or 'I/O'}: {error.strerror or error}", 1)
    except Exception as error:
        if type(error).__module__.startswith("safetensors"):  # a full disk or a damaged file, told by the Rust side
            return _fail(f"safetensors: {error}; free space or fetch the checkpoint again", 1)
        raise
    return 0


def _run(words: list[str]) -> None:
    options, rest = _parser().parse_known_args(words)
    if rest and options.command not in ("train", "ensemble"):
        raise InputError(f"unknown argument '{rest[0]}'; see 'dialemb {options.command} --help'")
    options.rest = rest
    check_split(options)
    options.run(options)
    if sys.stdout is not None:
        sys.stdout.flush()  # here, where it is told when nobody reads any more


def _fail(message: str, code: int) -> int:
    print(f"dialemb: error: {' '.join(message.split())}", file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="dialemb",
        description="Learn dialogue embeddings from conversations, measure them, publish them.",
        epilog="example: dialemb demo",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"dialemb {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command", parser_class=Parser)
    for name in _COMMANDS:
        import_module(f"{__name__}.{name}").add(commands)
    return parser
