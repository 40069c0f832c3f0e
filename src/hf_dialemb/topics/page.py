"""Write the page of topics, one HTML file to be opened without a network, and the map for notebooks."""

from __future__ import annotations

from collections.abc import Collection
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dialogue import ROLES
from ..runs import frames

if TYPE_CHECKING:
    from .topics import Topics

MOST_CHARACTERS = 30_000_000  # of a page; dialogues beyond it are there without their turns
MOST_DOTS = 2_000  # of a picture in a notebook


def write_page(topics: Topics, path: Path, flows: Collection[str] = ()) -> None:
    """Write the page, whole or not at all; topics whose ids are in ``flows`` link to ``flows/ID/index.html``."""
    folder = Path(__file__).parent
    frames.write_page(
        path,
        folder / "topics.html.jinja",
        _record(topics, flows),
        ("tree.js", "topics.js"),
        styles=folder.parent / "flow" / "page",
        title=topics.title,
        counts=topics.counts.replace(", ", " · "),
    )


def picture_of(topics: Topics) -> str:
    """Draw the map for a notebook, as SVG in HTML: a dot for each dialogue, at most `MOST_DOTS`."""
    dots = []
    for row in np.sort(np.random.default_rng(0).permutation(len(topics.corpus))[:MOST_DOTS]):
        (across, down), label = topics.places[row] * 300 + 5, int(topics.labels[row])
        colour = f"hsl({(label * 137.5 + 210) % 360:.0f} 65% {(45, 60, 35)[label % 3]}%)"
        name = escape(topics.by_size[label].name)
        dots.append(f'<circle cx="{across:.0f}" cy="{down:.0f}" r="2.5" fill="{colour}"><title>{name}</title></circle>')
    return f'<svg width="465" viewBox="0 0 310 310" role="img" aria-label="Map of topics">{"".join(dots)}</svg>'


def _record(topics: Topics, flows: Collection[str]) -> dict[str, Any]:
    roles = [role for role in ROLES if any(role in dialogue.roles for dialogue in topics.corpus)]
    numbers = {role: number for number, role in enumerate(roles)}
    left, texts = MOST_CHARACTERS, []
    for dialogue in topics.corpus:
        left -= sum(len(turn.content) for turn in dialogue.turns)
        turns = dialogue.turns if left >= 0 else ()
        texts.append([[numbers[turn.role], turn.content, *filter(None, [turn.name])] for turn in turns])
    return {
        "roles": roles,
        "unit": topics.unit,
        "periods": topics.periods,
        "topics": [
            {
                **{name: value for name, value in vars(topic).items() if name != "by_role"},
                "said": [[role, topic.by_role[role]] for role in roles],
                "flow": topic.id in flows,
            }
            for topic in topics.by_size
        ],
        "tree": [[int(left), int(right), round(far, 4)] for left, right, far in topics.tree[:, :3].tolist()],
        "ids": topics.ids,
        "times": [dialogue.time for dialogue in topics.corpus] if topics.periods else [],
        "labels": topics.labels.tolist(),
        "near": np.round(topics.similarity * 1000).astype(int).tolist(),
        "places": np.round(topics.places * 10_000).astype(int).ravel().tolist(),
        "texts": texts,
    }
