"""A flow as files for other programs: GraphML, DOT for graphviz, Mermaid for Markdown, JSON and tables.

Names are what people said, so that they may hold anything: nodes of DOT and Mermaid have numbers, and names are text.
"""

from __future__ import annotations

import csv
import io
import json
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..dialogue import ROLES
from ..drawing import visible
from ..runs.files import write_text_atomically
from .flow import Cluster, Flow
from .graph import END, START, State
from .paths import ends, typical_path
from .pruning import WeightedGraph

COLOURS = ("#cfe6f7", "#fdf3d8", "#d9efe6", "#f7ddd0", "#f3e0ec")
"""What nodes of each role are filled with, in the order of `hf_dialemb.dialogue.ROLES`."""

MAIN, OTHER = "#b8500a", "#7a7a7a"  # transitions of the main path, and the others
_NO_CHARACTERS = str.maketrans("\ufffe\uffff", "\ufffd\ufffd")  # no XML may hold them
_WIDTH, _LINES = 26, 3  # of a name in a node
_MERMAID = " ,?!"  # what needs no code there but letters and digits
_FORMULA = ("=", "+", "-", "@")  # what a cell begins with that a spreadsheet computes


def write_flow_files(flow: Flow, graph: WeightedGraph, folder: Path) -> tuple[Path, ...]:
    """Writes a flow, and what is shown of it, for other programs; each file whole or not at all.

    ``graph.json`` has all states and transitions with counts, and the weights of those that are shown;
    ``graph.graphml``, ``graph.dot`` and ``graph.mmd`` have what is shown. ``clusters-ROLE.csv`` has a row for each
    cluster, ``ends.csv`` one for each dialogue; texts are one line each, with an apostrophe before what a spreadsheet
    would take for a formula.
    """
    texts = {
        "graph.json": json.dumps(_record(flow, graph), indent=1, ensure_ascii=False) + "\n",
        "graph.graphml": _graphml(flow, graph),
        "graph.dot": dot_of(flow, graph),
        "graph.mmd": mermaid_of(flow, graph),
    }
    for role in sorted({cluster.role for cluster in flow.clusters}):
        texts[f"clusters-{quote(role, safe='')}.csv"] = _table([one for one in flow.clusters if one.role == role])
    texts["ends.csv"] = _ends(flow)
    for name, text in texts.items():
        # Halves of characters, which no file can hold, are replaced.
        write_text_atomically(folder / name, text.encode("utf-8", "replace").decode("utf-8"))
    return tuple(folder / name for name in texts)


def as_cell(text: str) -> str:
    """Makes a text a cell of a table: one visible line that no spreadsheet takes for a formula."""
    line = line_of(text)
    return f"'{line}" if line.startswith(_FORMULA) else line


def _record(flow: Flow, graph: WeightedGraph) -> dict[str, Any]:
    """Makes what ``graph.json`` holds; the weight of what is not shown is None, a share is of all from one state."""
    states, transitions = [], []
    for one in flow.clusters:
        figures = {"count": one.size, "weight": graph.nodes.get(one.state)}
        texts = {"phrases": one.phrases, "examples": one.examples}
        states.append({"id": one.id, "role": one.role, "name": one.name, **figures, **texts})
    for edge, count in flow.graph.edges.items():
        figures = {"count": count, "share": flow.graph.shares[edge], "weight": graph.edges.get(edge)}
        transitions.append({"source": edge[0][1], "target": edge[1][1], **figures})
    return {"title": flow.title, "settings": dict(flow.settings), "states": states, "transitions": transitions}


def _graphml(flow: Flow, graph: WeightedGraph) -> str:
    import networkx

    drawn = networkx.DiGraph()
    for state, weight in graph.nodes.items():
        drawn.add_node(line_of(state[1]), **_attributes(flow, state), weight=weight)
    for edge, weight in graph.edges.items():
        counts = {"count": flow.graph.edges[edge], "share": flow.graph.shares[edge], "weight": weight}
        drawn.add_edge(line_of(edge[0][1]), line_of(edge[1][1]), **counts)
    return "\n".join(networkx.generate_graphml(drawn, prettyprint=True)) + "\n"


def _attributes(flow: Flow, state: State) -> dict[str, Any]:
    if state in (START, END):
        cluster = Cluster(state[1], "", state[1].strip("[]"), len(flow.trajectories))
    else:
        cluster = flow.by_state[state]
    lists = {"phrases": " | ".join(cluster.phrases), "examples": " | ".join(cluster.examples)}
    found = {"role": cluster.role, "name": cluster.name, "count": cluster.size, **lists}
    return {key: line_of(value) if isinstance(value, str) else value for key, value in found.items()}


def _ends(flow: Flow) -> str:
    found, rows = {name: end for end in ends(flow) for name in end.dialogues}, []
    for name in flow.utterances.dialogues:
        cluster = flow.by_state[found[name].state]
        rows.append([as_cell(name), found[name].kind, cluster.id, as_cell(cluster.name)])
    return table_of(["dialogue", "end", "state", "name"], rows)


def _table(clusters: Sequence[Cluster]) -> str:
    total, rows = sum(cluster.size for cluster in clusters), []
    for one in clusters:
        texts = [as_cell(text) for text in (one.name, " | ".join(one.phrases), " | ".join(one.examples))]
        rows.append([one.id, texts[0], one.size, f"{one.size / total:.4f}", *texts[1:]])
    return table_of(["id", "name", "utterances", "share", "phrases", "examples"], rows)


def table_of(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Writes a table in CSV; see `as_cell` for texts."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([head, *rows])
    return file.getvalue()


def line_of(text: str) -> str:
    """Brings text to one line that any file can hold; characters that cannot be seen are written as escapes."""
    return visible(" ".join(text.split())).translate(_NO_CHARACTERS)


def label_lines(flow: Flow, state: State) -> list[str]:
    """Gives the lines that stand in a node, at most four: the name of a state, and how often it occurs."""
    if state in (START, END):
        return [state[1].strip("[]")]
    cluster = flow.by_state[state]
    name = textwrap.wrap(line_of(cluster.name), _WIDTH, max_lines=_LINES, placeholder=" …")
    return [*name, f"{cluster.role}, {cluster.size:,}"]


def colour(role: str) -> str:
    """Gives the colour of a role's nodes."""
    return COLOURS[ROLES.index(role)] if role in ROLES else COLOURS[-1]


def dot_of(flow: Flow, graph: WeightedGraph) -> str:
    """Writes what is shown of a flow in DOT.

    Borders and lines are as wide as states and transitions are frequent; a transition's label is its share of all from
    the same state.
    """
    numbers, shares, main = _numbers(graph), flow.graph.shares, typical_path(flow).steps
    lines = [
        "digraph flow {",
        f'  label="{_dot(line_of(flow.title))}"; labelloc=t; rankdir=TB;',
        '  node [fontname="Helvetica", fontsize=11]; edge [fontname="Helvetica", fontsize=9];',
    ]
    for state, weight in graph.nodes.items():
        ends = state in (START, END)
        shape = 'shape=ellipse, style=filled, fillcolor="#e4e4e4"'
        box = f'shape=box, style="rounded,filled", fillcolor="{colour(state[0])}"'
        text, tooltip = "\\n".join(map(_dot, label_lines(flow, state))), _dot(line_of(state[1]))
        look = f"{shape if ends else box}, penwidth={1 + 3 * weight:.2f}"
        lines.append(f'  {numbers[state]} [label="{text}", tooltip="{tooltip}", {look}];')
    for edge, weight in graph.edges.items():
        look = f'color="{MAIN if edge in main else OTHER}", penwidth={0.5 + 3.5 * weight:.2f}'
        lines.append(f'  {numbers[edge[0]]} -> {numbers[edge[1]]} [label="{shares[edge]:.0%}", {look}];')
    return "\n".join([*lines, "}", ""])


def mermaid_of(flow: Flow, graph: WeightedGraph) -> str:
    """Writes what is shown of a flow in Mermaid, as Markdown pages show it; labels are as in `dot_of`."""
    numbers, shares, main = _numbers(graph), flow.graph.shares, typical_path(flow).steps
    lines = ["flowchart TD"]
    for state in graph.nodes:
        text = "<br/>".join(map(_mermaid, label_lines(flow, state)))
        left, right = ("([", "])") if state in (START, END) else ("[", "]")
        lines.append(f'  {numbers[state]}{left}"{text}"{right}')
    for edge in graph.edges:
        share = _mermaid(f"{shares[edge]:.0%}")
        lines.append(f'  {numbers[edge[0]]} -->|"{share}"| {numbers[edge[1]]}')
    lines += [f"  style {numbers[state]} fill:{colour(state[0])},color:#000" for state in graph.states]
    taken = ",".join(str(place) for place, edge in enumerate(graph.edges) if edge in main)
    return "\n".join([*lines, *([f"  linkStyle {taken} stroke:{MAIN},stroke-width:3px"] if taken else []), ""])


def _numbers(graph: WeightedGraph) -> dict[State, str]:
    return {state: f"n{number}" for number, state in enumerate(graph.nodes)}


def _dot(text: str) -> str:
    r"""Escapes what a label gives a meaning: the quote, the backslash of ``\N``, and the entities of HTML."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")


def _mermaid(text: str) -> str:
    """Writes everything but letters, digits and a few marks as codes: quotes, Markdown and HTML mean nothing then."""
    return "".join(letter if letter.isalnum() or letter in _MERMAID else f"#{ord(letter)};" for letter in text)
