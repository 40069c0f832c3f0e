"""Writing result files: whole or not at all, and never after hours of work into a folder that cannot be written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..models.errors import InputError

if TYPE_CHECKING:
    import numpy as np


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Lets ``write`` make a file beside ``path`` and then puts it in place in one step."""
    if path.exists() and not path.is_file() and not path.is_dir():
        write(path)
        return
    path = path.resolve() if path.is_symlink() else path
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.touch()
        mode = temporary.stat().st_mode  # safetensors would leave a file that only its owner can read
        write(temporary)
        temporary.chmod(mode)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def kept_vectors(path: Path, make: Callable[[], np.ndarray]) -> np.ndarray:
    """Reads vectors from a safetensors file, or makes them and keeps them there."""
    from safetensors.numpy import load_file, save_file

    if path.is_file():
        found: np.ndarray = load_file(path)["vectors"]
        return found
    vectors = make()
    write_atomically(path, lambda temporary: save_file({"vectors": vectors}, temporary))
    return vectors


def write_text_atomically(path: Path, text: str) -> None:
    """Writes ``text`` to ``path`` in UTF-8, whole or not at all."""
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def write_json_atomically(path: Path, record: Any) -> None:  # noqa: ANN401 - whatever JSON can hold
    """Writes ``record`` to ``path`` as JSON, whole or not at all."""
    write_text_atomically(path, json.dumps(record, indent=1, ensure_ascii=False) + "\n")


_OF_MODELS = {"config.json", "modules.json", "tokenizer.json", "tokenizer_config.json", "adapter_config.json"}
_WEIGHTS = {".safetensors", ".bin", ".onnx", ".pt", ".gguf"}


def check_writable(path: Path, *sources: str | Path) -> None:
    """Makes sure that ``path`` can be written later, and is no file of a model; its folder is created."""
    check_not_read(path, *sources)
    if path.is_file() and (path.name in _OF_MODELS or path.suffix in _WEIGHTS):
        raise InputError(f"output '{path}': is a file of a model, expected another place; choose another name")
    if path.is_dir():
        raise InputError(f"output '{path}': got a folder, expected a file; add a file name")
    probe = path.with_name(f".{path.name}.{os.getpid()}.probe")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InputError(
            f"output '{path}': the folder cannot be written ({error.strerror or error}); choose another folder"
        ) from error


def check_not_read(path: Path, *sources: str | Path) -> None:
    """Makes sure that writing ``path`` does not cost what is read."""
    read = [Path(source) for source in sources if Path(source).exists()]
    if path.exists() and any(
        path.samefile(source) or (path.suffix == ".txt" and source.resolve() in path.resolve().parents)
        for source in read
    ):
        raise InputError(f"output '{path}': is what is read, and would be lost; choose another name")
