"""The page of topics: one HTML file, to be opened without a network."""

from __future__ import annotations

from collections.abc import Collection
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from ..dialogue import ROLES
from ..runs import frames
from .found import Clustered

MOST_CHARACTERS = 30_000_000  # so much text a page has; dialogues beyond it are there without what is said
MOST_DOTS = 2_000  # of a picture in a notebook
_TEMPLATE = "topics.html.jinja"


def write_page(found: Clustered, path: Path, flows: Collection[str] = ()) -> None:
    """Writes the page, whole or not at all; topics whose ids are in ``flows`` link to ``flows/ID/index.html``."""
    folder = Path(__file__).parent
    frames.write_page(
        path,
        folder / _TEMPLATE,
        _record(found, flows),
        ("tree.js", "topics.js"),
        styles=folder.parent / "flow" / "page",
        title=found.title,
        counts=found.counts.replace(", ", " · "),
    )


def picture_of(found: Clustered) -> str:
    """Draws the map for a notebook, as SVG in HTML: a dot for each dialogue, up to `MOST_DOTS` of them."""
    drawn = np.sort(np.random.default_rng(0).permutation(len(found.corpus))[:MOST_DOTS])
    dots = []
    for row in drawn:
        (across, down), label = found.places[row] * 300 + 5, int(found.labels[row])
        colour = f"hsl({(label * 137.5 + 210) % 360:.0f} 65% {(45, 60, 35)[label % 3]}%)"
        name = escape(found.found[label].name)
        dots.append(f'<circle cx="{across:.0f}" cy="{down:.0f}" r="2.5" fill="{colour}"><title>{name}</title></circle>')
    return f'<svg width="465" viewBox="0 0 310 310" role="img" aria-label="Map of topics">{"".join(dots)}</svg>'


def _record(found: Clustered, flows: Collection[str]) -> dict[str, Any]:
    roles = [role for role in ROLES if any(role in dialogue.roles for dialogue in found.corpus)]
    numbers = {role: number for number, role in enumerate(roles)}
    left, texts = MOST_CHARACTERS, []
    for dialogue in found.corpus:
        left -= sum(len(turn.content) for turn in dialogue.turns)
        turns = dialogue.turns if left >= 0 else ()
        texts.append([[numbers[turn.role], turn.content, *filter(None, [turn.name])] for turn in turns])
    return {
        "roles": roles,
        "unit": found.unit,
        "periods": found.periods,
        "topics": [
            {**vars(one), "said": [[role, one.said[role]] for role in roles], "flow": one.id in flows}
            for one in found.found
        ],
        "tree": [[int(one), int(other), round(far, 4)] for one, other, far in found.tree[:, :3].tolist()],
        "ids": found.names_of_dialogues(),
        "times": [dialogue.time for dialogue in found.corpus] if found.periods else [],
        "labels": found.labels.tolist(),
        "near": np.round(found.similarity * 1000).astype(int).tolist(),
        "places": np.round(found.places * 10_000).astype(int).ravel().tolist(),
        "texts": texts,
    }
