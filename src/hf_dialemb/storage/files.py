"""Writing result files: whole or not at all, and refused before hours of work."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from typing import Any

from ..errors import InputError


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` make a file beside ``path``, then put it in place in one step."""
    if path.exists() and not path.is_file() and not path.is_dir():
        write(path)  # a pipe or a device
        return
    path = path.resolve()  # a link stays a link
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def working_folder(target: Path) -> Iterator[Path]:
    """Yield a new folder beside ``target``, and delete it afterwards."""
    target.parent.mkdir(parents=True, exist_ok=True)
    folder = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    folder.mkdir()
    try:
        yield folder
    finally:
        rmtree(folder, ignore_errors=True)


@contextmanager
def appearing_whole(output: Path) -> Iterator[Path]:
    """Yield a folder to write, which comes to ``output`` if nothing fails."""
    with working_folder(output) as folder:
        yield folder
        folder.replace(output)


@contextmanager
def locked(folder: Path, remedy: str) -> Iterator[None]:
    """Make a folder and keep other runs out of it; delete it again if it stays empty."""
    from filelock import FileLock, Timeout

    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise InputError(
            f"{folder}: another run writes there now; wait for it, or {remedy}"
        ) from None
    try:
        yield
    finally:
        lock.release()
        with suppress(OSError):
            (folder / ".lock").unlink()
            folder.rmdir()


def write_text_atomically(path: Path, text: str) -> None:
    """Write ``text`` to ``path`` in UTF-8, whole or not at all."""
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def write_json_atomically(path: Path, record: Any) -> None:
    """Write ``record`` to ``path`` as JSON, whole or not at all."""
    write_text_atomically(path, json.dumps(record, indent=1, ensure_ascii=False) + "\n")


def check_writable(path: Path, *sources: str | Path) -> None:
    """Refuse a ``path`` that cannot be written later; leave nothing there."""
    check_not_read(path, *sources)
    if path.is_dir():
        raise InputError(f"output '{path}': got a folder, expected a file; add a file name")
    parent = next(folder for folder in path.absolute().parents if folder.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise InputError(
            f"output '{path}': the folder {parent} cannot be written; choose another folder"
        )


# what of a folder of conversations is read
_READ = (".txt", ".json", ".jsonl", ".csv", ".tsv", ".xlsx")


def check_not_read(path: Path, *sources: str | Path) -> None:
    """Refuse a ``path`` whose writing would destroy an input."""
    if not path.exists():
        return
    for source in map(Path, sources):
        within = path.suffix in _READ and source.resolve() in path.resolve().parents
        if source.exists() and (path.samefile(source) or within):
            raise InputError(
                f"output '{path}': is what is read, and would be lost; choose another name"
            )
