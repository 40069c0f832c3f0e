"""Processes that benchmarks measure in.

Each side has its own, as a child's peak memory starts from its parent's.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

OUT_OF_MEMORY = "-9 means out of memory"


def seconds_of(work: Callable[[], object]) -> float:
    """Return the seconds that some work takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def peak_bytes() -> int | None:
    """Return the most bytes of memory that this process has had.

    None on Windows, which does not count them so.
    """
    if sys.platform == "win32":
        return None
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )


def answer_of(*words: str | Path, environment: Mapping[str, str] | None = None) -> Any:
    """Run Python with these words, and read its last line, which is JSON."""
    command = [sys.executable, *map(str, words)]
    run = subprocess.run(
        command, check=False, stdout=subprocess.PIPE, text=True, env=_environment(environment)
    )
    if run.returncode:
        raise SystemExit(
            f"{' '.join(command)[:200]} ended (status {run.returncode}); {OUT_OF_MEMORY}"
        )
    return json.loads(run.stdout.splitlines()[-1])


class Side:
    """A process that answers each line with one of JSON; the first answer says that it is ready."""

    def __init__(
        self, name: str, *words: str | Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, *map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=_environment(environment),
        )

    def read(self) -> Any:
        """Wait for the next answer."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            status = self.process.wait()
            raise SystemExit(
                f"The process of '{self.name}' ended (status {status}); {OUT_OF_MEMORY}: ask for "
                "less"
            )
        return json.loads(line)

    def ask(self, line: str) -> Any:
        """Says a line, and waits for the answer."""
        print(line, file=self.process.stdin, flush=True)
        return self.read()

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()


def answers_in_turn(sides: Sequence[Side], rounds: int) -> dict[str, list[Any]]:
    """Let sides take a step in turn, after a round that warms up; return their answers."""
    answers: dict[str, list[Any]] = {side.name: [] for side in sides}
    for number in range(1 + rounds):
        for side in sides:
            answer = side.ask("step")
            print(f"round {number}: {side.name}: {answer['seconds']:.2f} s", file=sys.stderr)
            if number:
                answers[side.name].append(answer)
    return answers


def _environment(more: Mapping[str, str] | None) -> dict[str, str]:
    return {**os.environ, **(more or {})}
