"""Tensors out of files that torch.save wrote; nothing that such a file asks for is imported or called."""

from __future__ import annotations

import pickle
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch.serialization import get_unsafe_globals_in_checkpoint, safe_globals

from ...errors import InputError

_NO_MATTER = "logging.getLogger"  # a module of dial2vec keeps its logger; what stands for it is never asked


class _Named(type):
    """Of classes that stand for what a file names; calling one, as a hostile file would, is refused."""

    stands_for = ""

    def __call__(cls, *arguments: Any, **keywords: Any) -> Any:  # noqa: ANN401
        if cls.stands_for == _NO_MATTER:
            return cls.__new__(cls)  # type: ignore[call-overload]
        raise InputError(f"the file calls {cls.stands_for}, expected tensors and the state of modules; do not trust it")


class _Record(metaclass=_Named):
    """Stands for an instance of a class of the program that wrote the file; holds its state and does nothing."""

    state: Any = None

    def __new__(cls, *arguments: Any) -> _Record:  # noqa: ANN401 - whatever the file says
        return object.__new__(cls)

    def __setstate__(self, state: Any) -> None:  # noqa: ANN401
        self.state = state


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Reads a file of tensors by name, with torch's reader that makes nothing but tensors."""
    found = _load(path)
    if isinstance(found, Mapping) and isinstance(found.get("state_dict"), Mapping):
        found = found["state_dict"]
    return _only_tensors(found, path)


def read_module(path: Path) -> dict[str, Tensor]:
    """Reads a file of tensors by name, or a whole module, whose classes are replaced by inert records."""
    if not _is_zip(path):
        return read_tensors(path)
    try:
        names = get_unsafe_globals_in_checkpoint(str(path))
    except Exception as error:  # a broken zip or pickle shows as many kinds of error
        _refuse(path, error)
    records = [(_Named("Record", (_Record,), {"stands_for": " ".join(name.split())}), name) for name in names]
    with safe_globals(records):  # type: ignore[arg-type]  # pairs of a class and the name that it stands for
        found = _load(path)
    if isinstance(found, _Record):
        tensors: dict[str, Any] = {}
        _collect(found, "", tensors, path)
        found = tensors
    return _only_tensors(found, path)


def _is_zip(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(4) == b"PK\x03\x04"


def _load(path: Path) -> Any:  # noqa: ANN401 - whatever the file holds
    try:
        return torch.load(str(path), map_location="cpu", weights_only=True, mmap=_is_zip(path))
    except InputError as error:
        raise InputError(f"'{path}': {error}") from None
    except OSError:
        raise
    except Exception as error:  # likewise
        _refuse(path, error)


def _refuse(path: Path, error: Exception) -> NoReturn:
    text = " ".join(str(error).split())
    asked = re.search(r"GLOBAL (\S+)|reduce for unrecognized function (\S+ \S+)", text)
    if isinstance(error, pickle.UnpicklingError) and asked:
        name = next(filter(None, asked.groups()))
        raise InputError(f"'{path}' asks for {name}, expected nothing but tensors; do not trust the file") from None
    raise InputError(
        f"'{path}' cannot be read as a file of torch.save ({type(error).__name__}: {text[:200]}); "
        "it is damaged or of another kind: fetch it again, or choose another --from"
    ) from None


def _collect(module: _Record, prefix: str, tensors: dict[str, Any], path: Path) -> None:
    state = module.state
    if not isinstance(state, dict) or not {"_modules", "_parameters", "_buffers"} <= state.keys():
        raise InputError(f"'{path}': got {type(module).stands_for}, expected a module; choose another --from")
    transient = state.get("_non_persistent_buffers_set") or ()
    for name, value in {**state["_parameters"], **state["_buffers"]}.items():
        if value is not None and name not in transient:
            tensors[prefix + name] = value
    for name, child in state["_modules"].items():
        if isinstance(child, _Record):
            _collect(child, f"{prefix}{name}.", tensors, path)


def _only_tensors(found: Any, path: Path) -> dict[str, Tensor]:  # noqa: ANN401
    if not isinstance(found, Mapping):
        raise InputError(f"'{path}': got {type(found).__name__}, expected tensors by name; choose another --from")
    for name, value in found.items():
        if not isinstance(name, str) or not isinstance(value, Tensor):
            raise InputError(
                f"'{path}': got {type(value).__name__} under {name!r}, expected a tensor; choose another --from"
            )
    return dict(found)
