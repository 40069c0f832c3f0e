"""Names that load at their first use, and registries that other packages add to."""

import os
import sys
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any
from zlib import crc32

from .errors import InputError


def entries(kind: str) -> dict[str, EntryPoint]:
    """List the entry points of the group ``hf_dialemb.<kind>`` by name.

    One whose module is gone offers nothing.
    """
    return {
        entry.name: entry
        for entry in entry_points(group=f"hf_dialemb.{kind}")
        if _is_there(entry.module)
    }


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def load_file(path: str | Path) -> ModuleType:
    """Import a file of a user's own, once; an InputError says why it cannot be imported."""
    file = Path(path).expanduser().resolve()
    name = f"{file.stem}_{crc32(os.fsencode(file)):08x}"  # two files of one name are two modules
    if name in sys.modules:
        return sys.modules[name]
    if not file.is_file():
        raise InputError(
            f"{path}: no such file; give a Python file that ends in METHOD = Method(...)"
        )
    spec = spec_from_file_location(name, file)
    assert spec is not None, "a file that ends in .py has a loader"
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise InputError(
            f"{path}: cannot be imported ({type(error).__name__}: {error}); correct it"
        ) from error
    return module


class Registry(UserDict[str, Any]):
    """Names of one kind.

    The package's own, and from the first look-up of another name on, those of entry points.

    An entry point of ``methods`` is the method of its name. Those of ``tasks``, ``corpora``
    and ``encoders`` load a mapping from names.
    """

    def __init__(self, kind: str, own: Mapping[str, Any]) -> None:
        super().__init__(own)
        self.own = tuple(own)
        self._kind = kind
        self._complete = False

    def __missing__(self, name: str) -> Any:
        if self._complete:
            raise KeyError(name)
        iter(self)
        return self[name]

    def __contains__(self, name: object) -> bool:
        return name in self.data or name in list(self)

    def __iter__(self) -> Iterator[str]:
        if not self._complete:
            self._complete = True
            for name, entry in entries(self._kind).items():
                offered = {name: entry.value} if self._kind == "methods" else entry.load()
                self.data = {**offered, **self.data}
        return iter(self.data)


def lazy_names(
    package: str, places: Mapping[str, list[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package (PEP 562).

    Args:
        package: Its name.
        places: From each of its modules, such as ``".data"``, to the names that it hands on.
    """
    modules = {name: module for module, names in places.items() for name in names}

    def get_attribute(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name], package), name)

    return get_attribute, lambda: sorted(modules), sorted(modules)
