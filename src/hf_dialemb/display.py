"""Text that is safe to show, tables, and data frames."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

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


def counted(count: int, word: str) -> str:
    """Write a number and what it counts, as "1 topic" and "2,000 topics"."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def table_lines(
    words: Sequence[str], figures: Sequence[str], rows: Iterable[Sequence[str]]
) -> list[str]:
    """Return the lines of a Markdown table: columns of words, then of figures, and the rows."""
    lines = ([*words, *figures], [":--"] * len(words) + ["--:"] * len(figures), *rows)
    return ["| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |" for cells in lines]


def data_frame(records: Sequence[Mapping[str, Any]]) -> Any:
    """Make a DataFrame of a row for each record."""
    import pandas

    return pandas.DataFrame(list(records))
