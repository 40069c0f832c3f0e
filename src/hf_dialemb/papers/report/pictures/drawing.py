"""What the pictures share: colours and shapes that every eye can tell apart, short names, notes."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from ....corpora.show import visible

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#222222", "#b5a400")
"""Those of Okabe and Ito, which people with any kind of colour vision can tell apart; their yellow is darker here."""

MARKERS = ("o", "^", "s", "D")  # shapes: when all colours are used, they come again with the next shape

GREY, DARK_GREY, RULE = "#c8c8c8", "#555555", "#d9d9d9"

_POINTS_PER_INCH = 13.0  # letters of a note that fit into an inch


def style(index: int) -> tuple[str, str]:
    """Gives the colour and the shape of the label or model at a place in a list; at its end they come again."""
    rounds, colour = divmod(index, len(COLOURS))
    return COLOURS[colour], MARKERS[rounds % len(MARKERS)]


def short_model(name: str) -> str:
    """Cuts a model's name to 40 characters: first the folders before it go, then its beginning."""
    name = visible(name)
    short = name if len(name) <= 40 else name.rstrip("/").rsplit("/", 1)[-1]
    return short if len(short) <= 40 else f"…{short[-39:]}"


def plain_axes(axes: Any, grid: str, *hidden: str) -> None:  # noqa: ANN401
    """Draws thin lines below what is shown, along an axis or both, and hides sides of the frame."""
    axes.grid(axis=grid, color=RULE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[list(hidden)].set_visible(False)


def legend(figure: Any, names: Sequence[str], styles: Sequence[tuple[str, str]], marker: int, font: int) -> None:  # noqa: ANN401
    """Writes names of colours and shapes at the right of a figure."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], marker=shape, linestyle="", markersize=marker, color=colour) for colour, shape in styles]
    shown = figure.legend(handles, names, loc="outside right upper", frameon=False, fontsize=font, handletextpad=0.3)
    plain_text(shown.get_texts())


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
