"""Writing result files.

Whole or not at all, and never after hours of work into a folder that cannot be written.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from shutil import rmtree
from socket import gethostname
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from ..errors import InputError

if TYPE_CHECKING:
    import numpy as np


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` make a file beside ``path``, then put it in place in one step."""
    if path.exists() and not path.is_file() and not path.is_dir():
        write(path)
        return
    path = path.resolve() if path.is_symlink() else path
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _beside(path, ".tmp")
    try:
        temporary.touch()
        # safetensors would leave a file that only its owner can read
        mode = temporary.stat().st_mode
        write(temporary)
        temporary.chmod(mode)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def working_folder(target: Path) -> Iterator[Path]:
    """Yield a new folder beside ``target``.

    Delete it afterwards, and those that killed processes left.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    folder = _beside(target)
    folder.mkdir()
    try:
        yield folder
    finally:
        rmtree(folder, ignore_errors=True)


@contextmanager
def appearing_whole(output: Path) -> Iterator[Path]:
    """Yield a folder to write, which comes to ``output`` if nothing fails, and not at all
    otherwise.
    """
    with working_folder(output) as folder:
        yield folder
        open_to_others(folder)
        folder.replace(output)


def _beside(target: Path, ending: str = "") -> Path:
    """Name this process's own file or folder beside ``target``.

    Remove those of processes that are gone.
    """
    beginning = f".{target.name}.{gethostname()}."
    for left in target.parent.glob(f"{escape(beginning)}*{ending}"):
        number = left.name.removeprefix(beginning).removesuffix(ending)
        if number.isdecimal() and not _runs(int(number)):
            rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)
    return target.with_name(f"{beginning}{os.getpid()}{ending}")


def _runs(process: int) -> bool:
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except PermissionError:  # another user's
        return True
    except (OSError, OverflowError):
        return False
    return True


@contextmanager
def locked(folder: Path, remedy: str) -> Iterator[None]:
    """Make a folder and keep other runs out of it; delete it again if it stays empty."""
    from huggingface_hub.utils import WeakFileLock  # type: ignore[attr-defined]

    made = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with WeakFileLock(folder / ".lock", timeout=0.1):
            try:
                yield
            finally:
                with suppress(OSError):
                    (folder / ".lock").unlink()
    except TimeoutError:
        raise InputError(
            f"{folder}: another run writes there now; wait for it, or {remedy}"
        ) from None
    finally:
        with suppress(OSError):
            for parent in made:
                parent.rmdir()


def open_to_others(folder: Path) -> None:
    """Give the weights in a folder the permissions of its other files.

    Safetensors leaves them to their owner.
    """
    mode = folder.stat().st_mode & 0o666
    for file in folder.rglob("*.safetensors"):
        if not file.is_symlink() and file.stat().st_mode & 0o777 == 0o600:
            file.chmod(mode)


@contextmanager
def replaced_together(folder: Path, old: Callable[[], Iterable[str]]) -> Iterator[Path]:
    """Yield a place for files that replace ``old`` ones in ``folder``, by name, all together.

    At any moment the files there are of one writing: all the old ones, or some or all of the new.
    The last one that was written comes last, and goes first.
    """
    with working_folder(folder / "files") as place:
        yield place
        new = sorted(place.iterdir(), key=lambda file: file.stat().st_mtime_ns)
        for name in dict.fromkeys([*(file.name for file in reversed(new)), *old()]):
            (folder / name).unlink(missing_ok=True)
        for file in new:
            file.replace(folder / file.name)


def kept_vectors(path: Path, make: Callable[[], np.ndarray]) -> np.ndarray:
    """Read vectors from a safetensors file, or make and keep them there."""
    from safetensors.numpy import load_file, save_file

    if not path.is_file():
        vectors = make()
        write_atomically(path, lambda temporary: save_file({"vectors": vectors}, temporary))
    return load_file(path)["vectors"]


def write_text_atomically(path: Path, text: str) -> None:
    """Write ``text`` to ``path`` in UTF-8, whole or not at all."""
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def write_json_atomically(path: Path, record: Any) -> None:
    """Write ``record`` to ``path`` as JSON, whole or not at all."""
    write_text_atomically(path, json.dumps(record, indent=1, ensure_ascii=False) + "\n")


_OF_MODELS = {
    "config.json",
    "modules.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "adapter_config.json",
}
_WEIGHTS = {".safetensors", ".bin", ".onnx", ".pt", ".gguf"}


def check_writable(path: Path, *sources: str | Path) -> None:
    """Refuse a ``path`` that cannot be written later, or is a file of a model.

    Leave nothing there.
    """
    check_not_read(path, *sources)
    if path.is_file() and (path.name in _OF_MODELS or path.suffix in _WEIGHTS):
        raise InputError(
            f"output '{path}': is a file of a model, expected another place; choose another name"
        )
    if path.is_dir():
        raise InputError(f"output '{path}': got a folder, expected a file; add a file name")
    made = [folder for folder in path.parents if not folder.exists()]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # or its name is too long
        path.with_name(f".{path.name}.{gethostname()}.{os.getpid()}.tmp").exists()
        with TemporaryFile(
            dir=path.parent
        ):  # it has no name, so that nothing stays if the process is killed here
            pass
    except OSError as error:
        raise InputError(
            f"output '{path}': the folder cannot be written ({error.strerror or error}); choose "
            "another folder"
        ) from error
    with suppress(OSError):  # another process has written there
        for folder in made:
            folder.rmdir()


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


# what of a folder of conversations is read
_READ = (".txt", ".json", ".jsonl", ".csv", ".tsv", ".xlsx")


def check_not_read(path: Path, *sources: str | Path) -> None:
    """Refuse a ``path`` whose writing would destroy an input."""
    for source in map(Path, sources if path.exists() else ()):
        within = path.suffix in _READ and source.resolve() in path.resolve().parents
        if source.exists() and (path.samefile(source) or within):
            raise InputError(
                f"output '{path}': is what is read, and would be lost; choose another name"
            )
