"""Tables for people in Python: data frames, and HTML for notebooks."""

import html
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..models.errors import InputError


def data_frame(records: Sequence[Mapping[str, Any]]) -> Any:  # noqa: ANN401 - a pandas.DataFrame
    """Makes a DataFrame of a row for each record."""
    try:
        import pandas
    except ImportError:
        raise InputError("pandas is not installed; pip install pandas") from None
    return pandas.DataFrame(list(records))


def html_table(markdown: str) -> str:
    """Renders the tables of Markdown as HTML, and its other lines as paragraphs."""
    parts: list[str] = []
    table: list[str] = []
    for line in [*markdown.splitlines(), ""]:
        if line.startswith("|"):
            if not set(line) <= set("|-: "):
                cells = [_cell(cell) for cell in re.split(r"(?<!\\)\|", line.strip("|"))]
                table.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
            continue
        if table:
            parts.append(f"<table>{''.join(table)}</table>")
            table = []
        if line:
            parts.append(f"<p>{_cell(line)}</p>")
    return "\n".join(parts)


def _cell(text: str) -> str:
    return re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", html.escape(text.strip().replace("\\|", "|")))
