"""Runs that are killed: an exception in this process stands for it, or another process gets the signal."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


class KilledError(Exception):
    """Stands for the end of the process."""


def kill(owner, name, calls, work, *request):
    """Works until a function has been called more often than so."""
    done, function = iter(range(calls)), getattr(owner, name)

    def until_killed(*arguments):
        if next(done, None) is None:
            raise KilledError
        return function(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, until_killed)
        with pytest.raises(KilledError):
            work(*request)


def process(words: list[str], expected: int = 0) -> None:
    """Runs Python, which is to end with that status."""
    environment = {**os.environ, "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}  # the same bits in all
    run = subprocess.run([sys.executable, *words], stderr=-1, text=True, check=False, env=environment, cwd=ROOT)
    assert run.returncode == expected, run.stderr[-3000:]


def files_of(folder: Path) -> dict[str, bytes]:
    """What lies in a folder, hidden files too."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
