"""What the ``specification.yaml`` of a metric's folder says, and the class of `evaluate` that it makes."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent
FILE = "specification.yaml"


def read(folder: Path) -> dict[str, Any]:
    """Reads the specification in a metric's folder, and what it cites."""
    found: dict[str, Any] = yaml.safe_load((folder / FILE).read_text(encoding="utf-8"))
    papers = yaml.safe_load((FOLDER / "papers.yaml").read_text(encoding="utf-8"))
    inputs = {name: {"text": each} if isinstance(each, str) else each for name, each in found["inputs"].items()}
    named = {"name": folder.name, "class_name": folder.name.title().replace("_", "")}
    return {**found, **papers[found["paper"]], **named, "inputs": inputs}


def settings(found: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what `building.metric_class` wants to know beside the names and the function."""
    inputs, outputs = found["inputs"], found["outputs"]
    usage = ["\nArgs:", *(filled(f"    {name}: {each['text']}", 8) for name, each in inputs.items())]
    usage += ["Returns:", *(filled(f"    {name}: {text}", 8) for name, text in outputs.items())]
    return {
        "features": {name: each["feature"] for name, each in inputs.items() if "feature" in each},
        "parameters": {name: each["parameter"] for name, each in inputs.items() if "parameter" in each},
        "item": found.get("item", ""),
        "description": filled(found["description"]) + "\n",
        "inputs_description": "\n".join(usage) + "\n",
        "citation": found["citation"],
        "reference_urls": [found["url"]],
    }


def filled(text: str, indent: int = 0) -> str:
    """Breaks a text into lines of 120; all but the first are indented."""
    return textwrap.fill(text, 120, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)


def function_of(found: Mapping[str, Any]) -> Callable[..., dict[str, float]]:
    """Returns the function that computes the figures."""
    module = import_module(f".{found['name']}.functional", __package__)
    function: Callable[..., dict[str, float]] = getattr(module, found["function"])
    return function


def defaults(found: Mapping[str, Any]) -> dict[str, str]:
    """Returns the inputs beside the columns that may be left out, with what they then are as one would write it."""
    given = inspect.signature(function_of(found)).parameters
    return {
        name: repr(given[name].default).replace("'", '"').replace("range(0, ", "range(")
        for name, each in found["inputs"].items()
        if "feature" not in each and given[name].default is not inspect.Parameter.empty
    }


def metric_class(name: str, module: str) -> type:
    """Makes the class of a metric of this package, to be found in ``module``."""
    from . import building

    found = read(FOLDER / name)
    return building.metric_class(found["class_name"], module, function_of(found), **settings(found))
