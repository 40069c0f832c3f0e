"""Colours, text that is safe to show, tables, and matplotlib figures that are written to files."""

import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from .errors import InputError
from .storage.files import write_atomically

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#222222", "#b5a400")
"""The colours of Okabe and Ito, which people with any colour vision can tell apart.

The yellow is darker.
"""

BLUE, GREEN, RED = COLOURS[0], COLOURS[2], COLOURS[3]
MARKERS = ("o", "^", "s", "D")  # the colours are used again with the next shape
GREY, DARK_GREY, RULE = "#c8c8c8", "#555555", "#d9d9d9"
DPI = 150
_LETTERS_PER_INCH = 13.0  # in the note below a figure

# Unicode categories: controls, format characters (some reverse the writing direction), surrogates,
# separators of lines.
_INVISIBLE = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_JOINERS = "\u200c\u200d"  # format characters that emoji and several scripts need


def visible(text: str) -> str:
    r"""Return text that is harmless to print.

    Control characters, marks of the writing direction, other invisible characters and lone
    surrogates become escapes such as ``\x1b`` and ``\u202e``. The joiners of emoji and scripts
    stay.
    """
    return "".join(
        character.encode("unicode_escape").decode("ascii")
        if unicodedata.category(character) in _INVISIBLE and character not in _JOINERS
        else character
        for character in text
    )


def shortened(text: str, length: int) -> str:
    """Cut a label to at most ``length`` characters, with an ellipsis.

    Make invisible characters escapes.
    """
    text = visible(text)
    return text if len(text) <= length else f"{text[: length - 1]}…"


def short_model(name: str) -> str:
    """Cut a model's name to 40 characters.

    Leave out its folders first, then the beginning of the name.
    """
    name = visible(name)
    short = name if len(name) <= 40 else name.rstrip("/").rsplit("/", 1)[-1]
    return short if len(short) <= 40 else f"…{short[-39:]}"


def style(index: int) -> tuple[str, str]:
    """Return the colour and the marker of the label or model at an index."""
    rounds, colour = divmod(index, len(COLOURS))
    return COLOURS[colour], MARKERS[rounds % len(MARKERS)]


def table_lines(
    words: Sequence[str], figures: Sequence[str], rows: Iterable[Sequence[str]]
) -> list[str]:
    """Return the lines of a Markdown table.

    Headings of words and of figures, and rows, whose bars are escaped.
    """
    lines = ([*words, *figures], [":--"] * len(words) + ["--:"] * len(figures), *rows)
    return ["| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |" for cells in lines]


def check_drawing() -> None:
    """Raise an InputError where matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise InputError(
            "A picture needs matplotlib, which is not installed; run: pip install "
            '"hf-dialemb[plot]"'
        ) from error


def new_figure(width: float, height: float) -> Any:
    """Make a figure of a size in inches that is drawn to files only, whichever backend the user has
    chosen.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = Figure(
        figsize=(width, height),
        layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1),
        facecolor="white",
    )
    FigureCanvasAgg(figure)
    return figure


def save(figure: Any, path: Path | str, dpi: int | None = None) -> None:
    """Write a figure atomically, in the format that the path's ending names."""
    form = Path(path).suffix[1:] or "png"
    write_atomically(
        Path(path), lambda temporary: figure.savefig(temporary, format=form, dpi=dpi or DPI)
    )


def legend(
    figure: Any, names: Sequence[str], styles: Sequence[tuple[str, str]], marker: int, font: int
) -> None:
    """Add a legend of colours and markers at the right of a figure."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], marker=shape, linestyle="", markersize=marker, color=colour)
        for colour, shape in styles
    ]
    box = figure.legend(
        handles, names, loc="outside right upper", frameon=False, fontsize=font, handletextpad=0.3
    )
    plain_text(box.get_texts())


def note(figure: Any, text: str) -> None:
    """Add a note below a figure, wrapped at the figure's width."""
    lines = textwrap.wrap(visible(text), max(30, int(figure.get_figwidth() * _LETTERS_PER_INCH)))
    figure.supxlabel("\n".join(lines), fontsize=8.5, color=DARK_GREY, parse_math=False)


def plain_text(texts: Any) -> None:
    """Stop matplotlib from reading dollar signs in names as formulas."""
    for text in texts:
        text.set_parse_math(False)
