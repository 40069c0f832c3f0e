"""Write the page of topics, one HTML file to be opened without a network, and the map for notebooks."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..dialogue import Dialogue
from ..runs import frames

MOST_CHARACTERS = 30_000_000  # of a page; dialogues beyond it are there without their turns
MOST_DOTS = 2_000  # of a picture in a notebook


def write_page(path: Path, title: str, counts: str, record: dict[str, Any]) -> None:
    """Write the page of a record of `Topics`, whole or not at all."""
    folder = Path(__file__).parent
    frames.write_page(
        path,
        folder / "topics.html.jinja",
        record,
        ("tree.js", "topics.js"),
        styles=folder.parent / "flow" / "page",
        title=title,
        counts=counts.replace(", ", " · "),
    )


def turns_on_page(corpus: Sequence[Dialogue], roles: Sequence[str]) -> list[list[list[Any]]]:
    """Return the turns of each dialogue: the number of its role, its content, and its speaker's name if known."""
    left, texts = MOST_CHARACTERS, []
    for dialogue in corpus:
        left -= sum(len(turn.content) for turn in dialogue.turns)
        turns = dialogue.turns if left >= 0 else ()
        texts.append([[roles.index(turn.role), turn.content, *filter(None, [turn.name])] for turn in turns])
    return texts


def picture_of(places: NDArray[np.float32], labels: NDArray[np.int32], names: Sequence[str]) -> str:
    """Draw the map for a notebook, as SVG in HTML: a dot for each dialogue, at most `MOST_DOTS`."""
    dots = []
    for row in np.sort(np.random.default_rng(0).permutation(len(labels))[:MOST_DOTS]):
        (across, down), label = places[row] * 300 + 5, int(labels[row])
        colour = f"hsl({(label * 137.5 + 210) % 360:.0f} 65% {(45, 60, 35)[label % 3]}%)"
        title = f"<title>{escape(names[label])}</title>"
        dots.append(f'<circle cx="{across:.0f}" cy="{down:.0f}" r="2.5" fill="{colour}">{title}</circle>')
    return f'<svg width="465" viewBox="0 0 310 310" role="img" aria-label="Map of topics">{"".join(dots)}</svg>'
