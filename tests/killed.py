"""Runs that are killed.

An exception in this process stands for it, or another process gets the signal.
"""

from pathlib import Path

import pytest


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


def contents_of(folder: Path) -> dict[str, bytes]:
    """What lies in a folder, hidden files too."""
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }
