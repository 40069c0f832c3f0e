"""Public names of a package, as its stub lists them, imported when they are first used."""

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def names_of_stub(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package whose ``__init__.pyi`` lists its names."""
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    modules = {node.names[0].name: f".{node.module}" for node in stub.body if isinstance(node, ast.ImportFrom)}

    def get_attribute(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name], package), name)

    return get_attribute, lambda: sorted(modules), sorted(modules)
