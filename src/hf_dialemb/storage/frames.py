"""What people see: data frames, HTML for notebooks, pages, counts in lines."""

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .files import write_text_atomically


def data_frame(records: Sequence[Mapping[str, Any]]) -> Any:
    """Make a DataFrame of a row for each record."""
    import pandas

    return pandas.DataFrame(list(records))


def notebook_view(sentence: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Render a sentence and a table for a notebook."""
    lines = [
        f"<tr>{''.join(f'<{kind}>{html.escape(str(cell))}</{kind}>' for cell in row)}</tr>"
        for kind, table in (("th", [head]), ("td", rows))
        for row in table
    ]
    return f"<p>{html.escape(sentence)}</p><table>{''.join(lines)}</table>"


def html_table(markdown: str) -> str:
    """Render the tables of Markdown as HTML, and its other lines as paragraphs."""
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


def write_page(
    path: Path,
    template: Path,
    record: Mapping[str, Any],
    scripts: Sequence[str],
    *,
    styles: Path | None = None,
    **values: object,
) -> None:
    """Write a page: one HTML file, whole or not at all, that needs no other file and no network.

    The template and the ``scripts`` lie in one folder; ``styles`` is another that it includes from.
    It gets ``data``, the record as JSON, ``scripts`` with their ``hashes``, and the values. By the
    hashes, a browser runs these scripts alone, whatever the record holds.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    loader = FileSystemLoader([template.parent, styles or template.parent])
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    programs = [(template.parent / name).read_text(encoding="utf-8") for name in scripts]
    digests = [
        base64.b64encode(hashlib.sha256(program.encode()).digest()).decode() for program in programs
    ]
    data = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    page = environment.get_template(template.name).render(
        # Nothing in it ends the element, or begins a comment.
        data=Markup(
            re.sub("[<>&\u2028\u2029\ud800-\udfff]", lambda match: f"\\u{ord(match[0]):04x}", data)
        ),
        scripts=[Markup(program) for program in programs],
        hashes=[f"'sha256-{digest}'" for digest in digests],
        **values,
    )
    write_text_atomically(path, page.encode("utf-8", "replace").decode("utf-8"))


def counted(count: int, word: str) -> str:
    """Write a number and what it counts, as "1 topic" and "2,000 topics"."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _cell(text: str) -> str:
    return re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", html.escape(text.strip().replace("\\|", "|")))
