"""The command line ``dialemb``: parse, call, print; no logic.

Exit codes: 0 done, 1 the run failed, 2 the request was wrong, 130 interrupted.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from threading import current_thread, main_thread
from typing import Any

from ... import __version__
from ...errors import InputError
from ...hooks import entries
from ...storage.files import check_regular
from ...storage.hardware import let_waiting_threads_sleep
from . import flow_commands
from .parser import Parser, check_split, unknown_argument

_COMMANDS = (
    "encoder_commands",
    "search_commands",
    "topic_commands",
    "flow_commands",
    "corpus_commands",
)
"""The modules of the commands, in the order of the help."""

_MOVED = {
    "distil": "model distil",
    "card": "model card",
    "benchmark": "papers benchmark",
    "ensemble": "papers ensemble",
    "convert": "papers convert",
    "candidates": "corpus candidates",
    "corpus unify": "papers corpus unify",
}
"""Former names of commands."""

# they skip finished work when run again
_RESUMED = {"train", "ensemble", "embed", "benchmark", "flow", "index"}
_PATIENCE = 3.0  # seconds that clearing away takes at most
_stops: list[int] = []  # signals that came; some libraries swallow what is raised below them


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    command = next((word for word in words if word != "papers"), "")
    try:
        let_waiting_threads_sleep()
        if isinstance(sys.stdout, io.TextIOWrapper):
            # a corpus holds characters that a terminal may not
            sys.stdout.reconfigure(errors="replace")
        for former in (words[0] if words else "", " ".join(words[:2])):
            if former in _MOVED:
                raise InputError(f"'dialemb {former}' is now 'dialemb {_MOVED[former]}'; use that")
        if " ".join(words[:2]) in flow_commands.COMMANDS:
            words[:2] = [" ".join(words[:2])]
        with _signals(command):
            _run(words)
    except BaseException as error:
        return _explain(error, command)
    return 0


def _explain(error: BaseException, command: str) -> int:
    """Print what went wrong in a sentence, and return the exit code; raise what nobody foresaw."""
    if _stops or _interrupted(error):
        then = "go on" if command in _RESUMED else "start over"
        return _fail(f"interrupted; run the same command again to {then}", 130)
    if isinstance(error, InputError):
        return _fail(str(error), 2)
    if isinstance(
        error, BrokenPipeError
    ):  # the reader of our output, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    if isinstance(error, OSError):
        return _fail(f"{error.filename or 'I/O'}: {error.strerror or error}", 1)
    if isinstance(error, Exception) and (sentence := _of_libraries(error)):
        return _fail(sentence, 1)
    raise error


def _interrupted(error: BaseException | None) -> bool:
    """Return whether this is an interrupt, or an error that came up while one was cleared away."""
    while error and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _of_libraries(error: Exception) -> str:
    """Return a sentence for errors of libraries that no code of ours caused; nothing for others."""
    text = str(error)
    if isinstance(error, MemoryError) or "t allocate memory" in text or "out of memory" in text:
        return (
            "there is not enough memory; close other programs, or give fewer or shorter dialogues"
        )
    if number := re.search(r"\(os error (\d+)\)", text):  # raised by a library in Rust
        return f"I/O: {os.strerror(int(number[1]))}; free space or change the rights, and run again"
    if type(error).__module__.startswith("safetensors"):
        return f"safetensors: {error}; free space or fetch the checkpoint again"
    return ""


def _stop(number: int, _: object) -> None:
    _stops.append(number)
    signal.setitimer(signal.ITIMER_REAL, _PATIENCE)  # raises again then
    raise KeyboardInterrupt


def _unraised(arguments: sys.UnraisableHookArgs) -> None:
    """Pass on what Python cannot raise, except an interrupt, such as one between two processes.

    It comes again.
    """
    if not issubclass(arguments.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(arguments)


@contextmanager
def _signals(command: str) -> Iterator[None]:
    """Turn the signals that end a command into an exception, so that it clears away what it began."""
    handlers: dict[int, Any] = {}
    _stops.clear()
    if current_thread() is main_thread():
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            handlers[signal.SIGTERM] = signal.default_int_handler
        ours = (
            hasattr(signal, "SIGALRM")
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        )
        if ours and command not in _RESUMED:
            handlers |= {signal.SIGINT: _stop, signal.SIGALRM: _stop}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    hook, sys.unraisablehook = sys.unraisablehook, _unraised
    try:
        yield
    finally:
        sys.unraisablehook = hook
        if signal.SIGINT in handlers:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def _run(words: list[str]) -> None:
    options, rest = make_parser().parse_known_args(words)
    if rest and "takes_settings" not in options:
        known = (f"--{name.replace('_', '-')}" for name in vars(options))
        raise unknown_argument(rest[0], f"dialemb {options.command}", known)
    options.rest = rest
    for name, value in vars(options).items():
        if not name.startswith(("output", "query")):  # an output may well be a device
            check_regular(*(value if isinstance(value, list) else [value]))
    if file := getattr(options, "method", None):
        _register(file)
    check_split(options)
    options.run(options)
    if sys.stdout is not None:
        sys.stdout.flush()  # here, where a reader that has left is told


def _register(file: str) -> None:
    if not file.endswith(".py"):
        raise InputError(
            f"--method: got {file}, expected the file of a method of your own (FILE.py); leave it "
            "out"
        )
    from ...methods import register

    register(file)


def _fail(message: str, code: int) -> int:
    from ...display import visible

    if "tqdm.std" in sys.modules:  # an open bar would have the sentence in its line
        for bar in list(sys.modules["tqdm.std"].tqdm._instances):
            with suppress(AttributeError):  # the interrupt came while it was made
                bar.close()
    print(f"dialemb: error: {visible(' '.join(message.split()))}", file=sys.stderr)
    return code


def make_parser() -> argparse.ArgumentParser:
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
    for name in _COMMANDS:
        import_module(f"{__name__}.{name}").add(commands)
    for _, entry in sorted(entries("commands").items()):
        entry.load()(commands)
    return parser
