"""The page of a flow: one HTML file, to be opened without a network, in which a designer reads how dialogues go."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...runs.files import write_text_atomically
from ..pruning import Pruning
from .record import Section, page_record

if TYPE_CHECKING:
    from ..clustering import Choice
    from ..comparison import Comparison
    from ..flow import Flow

TEMPLATE = "page.html.jinja"

SCRIPTS = ("graph", "layout", "draw", "move", "make", "panel", "overview", "search", "tables")
"""The parts of the page's program, in the order in which they need each other; ``page.js`` comes last."""


def write_page(
    flow: Flow,
    path: Path | str,
    pruning: Pruning | None = None,
    *,
    comparison: Comparison | None = None,
    choices: Mapping[str, Choice] | None = None,
    insights: Sequence[Section] = (),
    facts: Sequence[tuple[str, str]] = (),
) -> None:
    """Writes the page: one HTML file that needs no other file and no network.

    Its address keeps the view, such as ``index.html#state=user-3&nodes=0.05&weights=prob-out``.

    Args:
        flow: The flow.
        path: The HTML file, which is written whole or not at all.
        pruning: What is shown at first; sliders of the page change it.
        comparison: How two sets of the dialogues differ.
        choices: How the number of clusters of each role was decided.
        insights: What to tell of the dialogues beside the map, such as what `insights.insights` finds.
        facts: Names and values for the page's account of how it was made.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    folder = Path(__file__).parent
    record = page_record(flow, pruning or Pruning(), comparison, choices or {}, insights, facts)
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    names = [*(f"page_{name}.js" for name in SCRIPTS), "page.js"]
    scripts = [(folder / name).read_text(encoding="utf-8") for name in names]
    page = environment.get_template(TEMPLATE).render(
        title=flow.title or "Dialogue flow",
        counts=_counts(record["counts"]),
        compared=comparison is not None,
        data=Markup(_json(record)),
        scripts=[Markup(script) for script in scripts],
        # The browser runs these scripts alone, whatever is said in a dialogue.
        hashes=[_hash(script) for script in scripts],
    )
    write_text_atomically(Path(path), page.encode("utf-8", "replace").decode("utf-8"))


def _counts(counts: Mapping[str, int]) -> str:
    parts = ((counts["dialogues"], "dialogue"), (counts["utterances"], "utterance"), (counts["states"], "state"))
    return " · ".join(f"{count:,} {name}{'' if count == 1 else 's'}" for count, name in parts)


def _json(record: Mapping[str, Any]) -> str:
    """Writes what a script element can hold: nothing in it ends the element, or begins a comment."""
    text = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return re.sub("[<>&\u2028\u2029\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)


def _hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
