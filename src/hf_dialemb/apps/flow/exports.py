"""Write a flow for other programs.

JSON, DOT for graphviz, Mermaid for Markdown, tables, and a policy for agents.

Names are the words of people and may hold anything: nodes of DOT and Mermaid have numbers, and
names are text.
"""

import csv
import io
import json
import logging
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ...dialogue import ROLES
from ...drawing import visible
from ...storage.files import write_atomically, write_text_atomically
from .flow import Flow
from .graph import END, START, State, WeightedGraph
from .paths import ends, typical_path

COLOURS = ("#cfe6f7", "#fdf3d8", "#d9efe6", "#f7ddd0", "#f3e0ec")
"""The colours of nodes of each role, in the order of `hf_dialemb.dialogue.ROLES`."""

MAIN, OTHER = "#b8500a", "#7a7a7a"  # the colours of transitions of the main path, and of others
_NO_CHARACTERS = str.maketrans("\ufffe\uffff", "\ufffd\ufffd")  # no XML may hold them
_WIDTH, _LINES = 26, 3  # of a name in a node
_MERMAID = " ,?!"  # needs no code there, like letters and digits
_FORMULA = ("=", "+", "-", "@")  # the beginning of a cell that a spreadsheet computes
_LONGEST_CELL = 32_767  # characters of a cell of Excel
_WIDTHS = 12, 60  # characters of a column of numbers, and of one of texts at most
_EXAMPLES = 3  # texts that show an agent a step
_ENDS = 0.5  # a step ends a conversation if it does so with at least this share

logger = logging.getLogger(__name__)


def write_flow_files(flow: Flow, graph: WeightedGraph, folder: Path) -> list[str]:
    """Write a flow for other programs, each file whole or not at all, and return the names of the
    files.

    ``graph.json`` has all states and transitions, with the weights of those that are shown;
    ``graph.dot``, ``graph.mmd`` and ``policy.md`` have those that are shown. ``clusters-ROLE.csv``
    has a row for each cluster, ``ends.csv`` one for each dialogue.
    """
    texts = {
        "graph.json": json.dumps(_record(flow, graph), indent=1, ensure_ascii=False) + "\n",
        "graph.dot": dot_of(flow, graph),
        "graph.mmd": mermaid_of(flow, graph),
        "policy.md": policy_text(flow, graph),
        "ends.csv": _ends(flow),
    }
    for role in sorted({cluster.role for cluster in flow.clusters}):
        texts[f"clusters-{quote(role, safe='')}.csv"] = _clusters(flow, role)
    for name, text in texts.items():
        # Lone surrogates, which no file can hold, are replaced.
        write_text_atomically(folder / name, text.encode("utf-8", "replace").decode("utf-8"))
    return list(texts)


def line_of(text: str) -> str:
    """Return a text as one line that any file can hold; invisible characters become escapes."""
    return visible(" ".join(text.split())).translate(_NO_CHARACTERS)


def as_cell(text: str) -> str:
    """Return a text as the cell of a table.

    One visible line that no spreadsheet takes for a formula.
    """
    line = line_of(text)
    return f"'{line}" if line.startswith(_FORMULA) else line


def table_of(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as CSV; see `as_cell` for texts."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([head, *rows])
    return file.getvalue()


def cell_of(value: object) -> object:
    """Return a value as a cell: a text as `as_cell` does, also of a list; nothing for None.

    A number as it is.
    """
    text = "; ".join(value) if isinstance(value, tuple | list) else "" if value is None else value
    return as_cell(text) if isinstance(text, str) else text


def write_workbook(path: Path, sheets: Mapping[str, Sequence[Mapping[str, object]]]) -> None:
    """Write tables as sheets of a workbook, in which no cell is a formula.

    Warn where openpyxl is missing.
    """
    try:
        from openpyxl import Workbook
        from openpyxl.utils import get_column_letter
    except ImportError:
        logger.warning(
            '%s: not written, which needs openpyxl; pip install "hf-dialemb[apps]"', path
        )
        return
    book = Workbook(write_only=True)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        sheet.freeze_panes = "A2"
        table: list[list[object]] = [
            list(rows[0]),
            *([cell_of(value) for value in row.values()] for row in rows),
        ]
        for number, column in enumerate(zip(*table, strict=True), 1):
            longest = max(len(cell) if isinstance(cell, str) else _WIDTHS[0] for cell in column)
            sheet.column_dimensions[get_column_letter(number)].width = min(longest + 2, _WIDTHS[1])
        for cells in table:
            sheet.append(
                [cell[:_LONGEST_CELL] if isinstance(cell, str) else cell for cell in cells]
            )
    write_atomically(path, book.save)


def _record(flow: Flow, graph: WeightedGraph) -> dict[str, Any]:
    """Return the content of ``graph.json``; the weight of what is not shown is None."""
    states, transitions = [], []
    for cluster in flow.clusters:
        figures = {
            "count": cluster.size,
            "weight": graph.nodes.get(cluster.state),
            "failed": cluster.failed,
        }
        texts = {"phrases": cluster.phrases, "examples": cluster.examples}
        states.append(
            {"id": cluster.id, "role": cluster.role, "name": cluster.name, **figures, **texts}
        )
    for edge, count in flow.graph.edges.items():
        figures = {
            "count": count,
            "share": flow.graph.shares[edge],
            "weight": graph.edges.get(edge),
        }
        transitions.append({"source": edge[0][1], "target": edge[1][1], **figures})
    return {
        "title": flow.title,
        "settings": dict(flow.settings),
        "states": states,
        "transitions": transitions,
    }


def _ends(flow: Flow) -> str:
    by_name, rows = {name: end for end in ends(flow) for name in end.dialogues}, []
    for name in flow.utterances.dialogues:
        cluster = flow.by_state[by_name[name].state]
        rows.append([as_cell(name), by_name[name].kind, cluster.id, as_cell(cluster.name)])
    return table_of(["dialogue", "end", "state", "name"], rows)


def _clusters(flow: Flow, role: str) -> str:
    clusters = [cluster for cluster in flow.clusters if cluster.role == role]
    total, rows = sum(cluster.size for cluster in clusters), []
    for cluster in clusters:
        name, *texts = map(
            as_cell, (cluster.name, " | ".join(cluster.phrases), " | ".join(cluster.examples))
        )
        rows.append([cluster.id, name, cluster.size, f"{cluster.size / total:.4f}", *texts])
    return table_of(["id", "name", "utterances", "share", "phrases", "examples"], rows)


def label_lines(flow: Flow, state: State) -> list[str]:
    """Return the lines of a node, at most four: the name of a state, and how often it occurs."""
    if state in (START, END):
        return [state[1].strip("[]")]
    cluster = flow.by_state[state]
    name = textwrap.wrap(line_of(cluster.name), _WIDTH, max_lines=_LINES, placeholder=" …")
    return [*name, f"{cluster.role}, {cluster.size:,}"]


def _colour(role: str) -> str:
    return COLOURS[ROLES.index(role)] if role in ROLES else COLOURS[-1]


def dot_of(flow: Flow, graph: WeightedGraph) -> str:
    """Return the shown part of a flow in DOT.

    Borders and lines are as wide as states and transitions are frequent. The label of a transition
    is its share of all from the same state.
    """
    numbers = {state: f"n{number}" for number, state in enumerate(graph.nodes)}
    shares, main = flow.graph.shares, typical_path(flow).steps
    lines = [
        "digraph flow {",
        f'  label="{_dot(line_of(flow.title))}"; labelloc=t; rankdir=TB;',
        '  node [fontname="Helvetica", fontsize=11]; edge [fontname="Helvetica", fontsize=9];',
    ]
    for state, weight in graph.nodes.items():
        shape = f'shape=box, style="rounded,filled", fillcolor="{_colour(state[0])}"'
        if state in (START, END):
            shape = 'shape=ellipse, style=filled, fillcolor="#e4e4e4"'
        text, tooltip = "\\n".join(map(_dot, label_lines(flow, state))), _dot(line_of(state[1]))
        lines.append(
            f'  {numbers[state]} [label="{text}", tooltip="{tooltip}", {shape}, '
            f"penwidth={1 + 3 * weight:.2f}];"
        )
    for edge, weight in graph.edges.items():
        look = f'color="{MAIN if edge in main else OTHER}", penwidth={0.5 + 3.5 * weight:.2f}'
        lines.append(
            f'  {numbers[edge[0]]} -> {numbers[edge[1]]} [label="{shares[edge]:.0%}", {look}];'
        )
    return "\n".join([*lines, "}", ""])


def mermaid_of(flow: Flow, graph: WeightedGraph) -> str:
    """Return the shown part of a flow in Mermaid, which Markdown pages draw.

    Labels are as in `dot_of`.
    """
    numbers = {state: f"n{number}" for number, state in enumerate(graph.nodes)}
    shares, main = flow.graph.shares, typical_path(flow).steps
    lines = ["flowchart TD"]
    for state in graph.nodes:
        text = "<br/>".join(map(_mermaid, label_lines(flow, state)))
        left, right = ("([", "])") if state in (START, END) else ("[", "]")
        lines.append(f'  {numbers[state]}{left}"{text}"{right}')
    for edge in graph.edges:
        share = _mermaid(f"{shares[edge]:.0%}")
        lines.append(f'  {numbers[edge[0]]} -->|"{share}"| {numbers[edge[1]]}')
    lines += [
        f"  style {numbers[state]} fill:{_colour(state[0])},color:#000" for state in graph.states
    ]
    taken = ",".join(str(place) for place, edge in enumerate(graph.edges) if edge in main)
    return "\n".join(
        [*lines, *([f"  linkStyle {taken} stroke:{MAIN},stroke-width:3px"] if taken else []), ""]
    )


def _dot(text: str) -> str:
    r"""Escape quotes, backslashes such as that of ``\N``, and entities of HTML."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")


def _mermaid(text: str) -> str:
    """Write everything but letters, digits and a few marks as codes, which are neither Markdown nor
    HTML.
    """
    return "".join(
        letter if letter.isalnum() or letter in _MERMAID else f"#{ord(letter)};" for letter in text
    )


def policy_text(flow: Flow, graph: WeightedGraph) -> str:
    """Return the shown part of a flow as instructions for a language model, in Markdown.

    The words of people are quoted as JSON, each text in one line, so that they cannot pass for a
    heading or a list.
    """
    if not graph.states:
        return (
            f"# {line_of(flow.title)}\n\nNo step is frequent enough to be followed; lower the "
            "thresholds.\n"
        )
    path, shares, following = (
        typical_path(flow),
        flow.graph.shares,
        defaultdict[State, list[str]](list),
    )
    for edge in sorted(graph.edges, key=lambda edge: (-graph.edges[edge], edge)):
        following[edge[0]].append(f"- {shares[edge]:.0%}: {_step(flow, edge[1])}")
    steps = (
        f"- {state[1]}: {_quoted(text)}"
        for state, text in zip(path.states, path.texts, strict=True)
    )
    parts = [
        f"# {line_of(flow.title)}",
        f"Conversations usually take the steps below; {len(flow.trajectories):,} were observed. "
        "Find the step that "
        "was taken last, and go on as conversations usually do. Say what the examples say, in your "
        "own words. Where "
        "none of the steps fits, answer what was said, then come back to the main path.",
        "## Main path",
        "A typical conversation in its own words, each with its step; … stands for turns left out:",
        "\n".join(path.with_gaps(steps, "- …")),
        "## Steps",
        "\n".join(["Conversations begin with:\n", *following[START]]),
    ]
    for state in graph.states:
        cluster = flow.by_state[state]
        examples = "".join(f"\n- {_quoted(text)}" for text in cluster.examples[:_EXAMPLES])
        parts.append(
            f"### {_step(flow, state)}\n\nThe {cluster.role} says something like:\n{examples}"
        )
        parts.append("\n".join(["Then usually:\n", *following[state]]))
    closing = {edge[0]: shares[edge] for edge in graph.edges if edge[1] == END and edge[0] != START}
    usual = [state for state, share in closing.items() if share >= _ENDS] or [
        max(closing, key=closing.__getitem__)
    ]
    lines = [
        f"- {_step(flow, state)} ({closing[state]:.0%} of the times that it is taken)"
        for state in usual
    ]
    return (
        "\n\n".join(
            [*parts, "## When to end", "\n".join(["End the conversation after:\n", *lines])]
        )
        + "\n"
    )


def _step(flow: Flow, state: State) -> str:
    return (
        "the conversation ends"
        if state == END
        else f"{state[1]} {_quoted(flow.by_state[state].name)}"
    )


def _quoted(text: str) -> str:
    return json.dumps(line_of(text), ensure_ascii=False)
