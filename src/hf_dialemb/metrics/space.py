"""The Space of a metric: a folder that `evaluate` loads by its path, or from the Hub, where this package is absent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from pprint import pformat
from tempfile import TemporaryDirectory
from typing import Any

from .specification import FILE, FOLDER, defaults, filled, read, settings

REQUIREMENTS = {
    "datasets": "datasets>=5,<6",
    "evaluate": "evaluate>=0.4.6,<0.5",
    "numpy": "numpy>=1.26,<3",
    "sklearn": "scikit-learn>=1.5,<2",
    "threadpoolctl": "threadpoolctl>=3.5,<4",
}
"""What a Space installs for what it imports."""

_SHARED = re.compile(r"^from \.\.(\w+) import (\w+)", re.MULTILINE)


def write_space(metric: Path, space: Path) -> None:
    """Writes the Space of a metric into a folder of that name: module, page, example cases, requirements, card."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    found = read(metric)
    functions = (metric / "functional.py").read_text(encoding="utf-8")
    shared = dict(_SHARED.findall(functions))
    texts = {f"{name}.py": (FOLDER / f"{name}.py").read_text(encoding="utf-8") for name in ("building", *shared)}
    texts["functional.py"] = _SHARED.sub(r"from .\1 import \2", functions)
    templates = Environment(
        loader=FileSystemLoader(FOLDER / "templates"), undefined=StrictUndefined, keep_trailing_newline=True,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    templates.filters |= {"filled": filled, "literal": lambda value: pformat(value, width=120, sort_dicts=False)}
    values = {**found, **settings(found), "shared": shared, "defaults": defaults(found), "alike": _alike(found)}
    for template in ("module.py", "app.py", "tests.py", "README.md"):
        file = template.replace("module", found["name"])
        texts[file] = templates.get_template(f"{template}.jinja").render(values)
    imported = set(re.findall(r"^ *(?:import|from) (\w+)", "\n".join(texts.values()), re.MULTILINE))
    texts["requirements.txt"] = "".join(f"{line}\n" for name, line in REQUIREMENTS.items() if name in imported)
    space.mkdir(parents=True, exist_ok=True)
    for file, text in texts.items():
        (space / file).write_text(text, encoding="utf-8")


def _alike(found: Mapping[str, Any]) -> list[str]:
    """Names the other metrics that need labelled vectors and nothing else, as this one does."""
    if _needs(found) != ["vector", "label"]:
        return []
    others = (read(file.parent) for file in sorted(FOLDER.glob(f"*/{FILE}")) if file.parent.name != found["name"])
    return [other["name"] for other in others if _needs(other) == _needs(found)]


def _needs(found: Mapping[str, Any]) -> list[str | None]:
    return [each.get("feature") for name, each in found["inputs"].items() if name not in defaults(found)]


@contextmanager
def as_space(folder: Path) -> Iterator[Path]:
    """Gives the Space of a metric's folder, for as long as it is needed, and any other folder as it is."""
    if not (folder / FILE).is_file():
        yield folder
        return
    with TemporaryDirectory() as place:
        space = Path(place) / folder.resolve().name
        write_space(folder, space)
        yield space
