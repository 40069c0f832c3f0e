"""The Space of a metric.

A folder that `evaluate` loads by its path or from the Hub, where this package is absent.
"""

import inspect
import re
import tomllib
from importlib import import_module, metadata
from pathlib import Path
from pprint import pformat

from .specification import Column, Metric, filled

FOLDER = Path(__file__).parent
REQUIREMENTS = {
    "datasets": "datasets>=5,<6",
    "evaluate": "evaluate>=0.4.6,<0.5",
    "numpy": "numpy>=1.26,<3",
    "sklearn": "scikit-learn>=1.5,<2",
    "threadpoolctl": "threadpoolctl>=3.5,<4",
}
"""The packages that a Space installs, by the name of their import."""

_PAGES = tomllib.loads((FOLDER / "pages.toml").read_text(encoding="utf-8"))
NAMES = tuple(_PAGES)
"""The metrics of this package: the modules that have a page."""

_SHARED = re.compile(r"^from \.(\w+) import \(?\s*(\w+)", re.MULTILINE)


def get_metric(name: str) -> Metric:
    """Return the specification of a metric, by a name of `NAMES`."""
    page = _PAGES[name]
    inputs = {
        key: Column(**given) if isinstance(given, dict) else given
        for key, given in page["inputs"].items()
    }
    function = getattr(import_module(f".{name}", __package__), page["function"])
    return Metric(**{**page, "inputs": inputs, "function": function})


def cited(key: str) -> str:
    """Return an entry of ``citations.bib``, or a citation as it is."""
    if key.lstrip().startswith("@"):
        return key.strip()
    entries = (FOLDER / "citations.bib").read_text(encoding="utf-8").split("\n\n")
    entry = next(entry for entry in entries if entry.partition("{")[2].startswith(f"{key},"))
    return entry.strip().replace("VERSION", metadata.version("hf-dialemb"))


def write_space(name: str, space: str | Path) -> None:
    """Write the Space of a metric into a folder of its name.

    Module, page, example cases, requirements and card.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    metric = get_metric(name)
    functions = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    shared = dict(_SHARED.findall(functions))
    copied = (*shared, "specification")
    texts = {
        f"{module}.py": (FOLDER / f"{module}.py").read_text(encoding="utf-8") for module in copied
    }
    texts["functional.py"] = functions
    templates = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {
        "filled": filled,
        "literal": lambda value: pformat(value, width=120, sort_dicts=False),
    }
    values = {
        "name": name,
        "metric": metric,
        "shared": shared,
        "details": inspect.getdoc(metric.function),
        "citation": cited(metric.paper),
        "rounded": {key: round(value, 4) for key, value in metric.result.items()},
    }
    for template in ("module.py", "app.py", "tests.py", "README.md"):
        texts[template.replace("module", name)] = templates.get_template(
            f"{template}.jinja"
        ).render(values)
    imported = set(re.findall(r"^ *(?:import|from) (\w+)", "\n".join(texts.values()), re.MULTILINE))
    texts["requirements.txt"] = "".join(
        f"{line}\n" for package, line in REQUIREMENTS.items() if package in imported
    )
    folder = Path(space)
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in texts.items():
        (folder / file).write_text(text, encoding="utf-8")
