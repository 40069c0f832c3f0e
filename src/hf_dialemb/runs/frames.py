"""What people see in Python and in lines: data frames, HTML for notebooks, counts."""

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..models.errors import InputError


def data_frame(records: Sequence[Mapping[str, Any]]) -> Any:  # noqa: ANN401 - a pandas.DataFrame
    """Makes a DataFrame of a row for each record."""
    try:
        import pandas
    except ImportError:
        raise InputError("pandas is not installed; pip install pandas") from None
    return pandas.DataFrame(list(records))


def notebook_view(sentence: str, picture: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Renders a sentence, a picture (HTML) and a table for a notebook."""
    lines = [
        f"<tr>{''.join(f'<{kind}>{html.escape(str(cell))}</{kind}>' for cell in row)}</tr>"
        for kind, table in (("th", [head]), ("td", rows))
        for row in table
    ]
    return f"<p>{html.escape(sentence)}</p>{picture}<table>{''.join(lines)}</table>"


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


def counted(count: int, word: str) -> str:
    """Writes a number and what it counts, as "1 topic" and "2,000 topics"."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _cell(text: str) -> str:
    return re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", html.escape(text.strip().replace("\\|", "|")))
