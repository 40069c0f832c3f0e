"""What the pictures share: colours and shapes that every eye can tell apart, short names, notes, saving."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from ....corpora.show import visible
from ....runs.files import write_atomically

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#222222", "#b5a400")
"""Those of Okabe and Ito, which people with any kind of colour vision can tell apart; their yellow is darker here."""

MARKERS = ("o", "^", "s", "D")
"""Shapes: when all colours are used, they come again with the next shape."""

GREY, DARK_GREY, RULE = "#c8c8c8", "#555555", "#d9d9d9"

DPI = 150

_POINTS_PER_INCH = 13.0  # letters of a note that fit into an inch


def style(index: int) -> tuple[str, str]:
    """Gives the colour and the shape of the label or model at a place in a list.

    Args:
        index: From 0; after ``len(COLOURS) * len(MARKERS)`` they come again.

    Returns:
        The colour and the marker, in matplotlib's words.
    """
    rounds, colour = divmod(index, len(COLOURS))
    return COLOURS[colour], MARKERS[rounds % len(MARKERS)]


def shortened(text: str, length: int) -> str:
    """Cuts a label to a length, with an ellipsis; invisible characters are made visible."""
    text = visible(text)
    return text if len(text) <= length else f"{text[: length - 1]}…"


def short_model(name: str, length: int = 40) -> str:
    """Cuts a model's name to a length: first the folders before it go, then its beginning."""
    name = visible(name)
    short = name if len(name) <= length else name.rstrip("/").rsplit("/", 1)[-1]
    return short if len(short) <= length else f"…{short[-(length - 1) :]}"


def title(figure: Any, text: str) -> None:  # noqa: ANN401 - matplotlib has no types here
    """Writes what a figure is about above it; nothing where there is no text."""
    if text:
        lines = textwrap.wrap(visible(text), max(20, int(figure.get_figwidth() * 7.5)))
        figure.suptitle("\n".join(lines), fontsize=13, fontweight="bold", parse_math=False)


def note(figure: Any, text: str) -> None:  # noqa: ANN401
    """Writes below a figure how to read it, in lines as long as the figure is wide."""
    lines = textwrap.wrap(visible(text), max(30, int(figure.get_figwidth() * _POINTS_PER_INCH)))
    figure.supxlabel("\n".join(lines), fontsize=8.5, color=DARK_GREY, parse_math=False)


def plain_text(texts: Any) -> None:  # noqa: ANN401
    """Keeps matplotlib from reading dollar signs in names as formulas."""
    for text in texts:
        text.set_parse_math(False)


def save(figure: Any, path: Path | str) -> None:  # noqa: ANN401
    """Writes a figure as a PNG, whole or not at all."""
    write_atomically(Path(path), lambda temporary: figure.savefig(temporary, format="png", dpi=DPI))
