"""A flow in the languages of other programs: DOT for graphviz, Mermaid for Markdown.

Names are what people said, so that they may hold anything: nodes have numbers here, and names are text alone.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from ..corpora.show import visible
from ..models.dialogue import ROLES
from .flow import Flow
from .graph import END, START, State, steps_of
from .paths import widest_path
from .pruning import WeightedGraph

COLOURS = ("#cfe6f7", "#fdf3d8", "#d9efe6", "#f7ddd0", "#f3e0ec")
"""What nodes of each role are filled with, in the order of `hf_dialemb.models.dialogue.ROLES`."""

MAIN, OTHER = "#b8500a", "#7a7a7a"
"""Transitions of the main path, and the others."""

_NO_CHARACTERS = str.maketrans("\ufffe\uffff", "\ufffd\ufffd")  # no XML may hold them
_WIDTH, _LINES = 26, 3  # of a name in a node
_MERMAID = " ,?!"  # what needs no code there but letters and digits


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


def main_edges(graph: WeightedGraph) -> set[tuple[State, State]]:
    """Finds the transitions of the main path (see `hf_dialemb.flow.paths.widest_path`); none where there is no path."""
    path = widest_path(graph)
    return set() if path is None else set(steps_of(path.states))


def dot_of(flow: Flow, graph: WeightedGraph) -> str:
    """Writes what is shown of a flow in DOT.

    Borders and lines are as wide as states and transitions are frequent; a transition's label is its share of all from
    the same state.
    """
    numbers, shares, main = _numbers(graph), flow.graph.shares, main_edges(graph)
    lines = [
        "digraph flow {",
        f"  label={_dot(line_of(flow.title))}; labelloc=t; rankdir=TB;",
        '  node [fontname="Helvetica", fontsize=11]; edge [fontname="Helvetica", fontsize=9];',
    ]
    for state, weight in graph.nodes.items():
        ends = state in (START, END)
        shape = 'shape=ellipse, style=filled, fillcolor="#e4e4e4"'
        box = f'shape=box, style="rounded,filled", fillcolor="{colour(state[0])}"'
        text = "\\n".join(map(_escaped_dot, label_lines(flow, state)))
        tooltip = _dot(line_of(state[1]))
        look = f"{shape if ends else box}, penwidth={1 + 3 * weight:.2f}"
        lines.append(f'  {numbers[state]} [label="{text}", tooltip={tooltip}, {look}];')
    for edge, weight in graph.edges.items():
        look = f'color="{MAIN if edge in main else OTHER}", penwidth={0.5 + 3.5 * weight:.2f}'
        lines.append(f'  {_arrow(edge, numbers, " -> ")} [label="{shares[edge]:.0%}", {look}];')
    return "\n".join([*lines, "}", ""])


def mermaid_of(flow: Flow, graph: WeightedGraph) -> str:
    """Writes what is shown of a flow in Mermaid, as Markdown pages show it; labels are as in `dot_of`."""
    numbers, shares, main = _numbers(graph), flow.graph.shares, main_edges(graph)
    lines = ["flowchart TD"]
    for state in graph.nodes:
        text = "<br/>".join(map(_mermaid, label_lines(flow, state)))
        left, right = ("([", "])") if state in (START, END) else ("[", "]")
        lines.append(f'  {numbers[state]}{left}"{text}"{right}')
    for edge in graph.edges:
        share = _mermaid(f"{shares[edge]:.0%}")
        lines.append(f"  {_arrow(edge, numbers, f' -->|{chr(34)}{share}{chr(34)}| ')}")
    lines += [f"  style {numbers[state]} fill:{colour(state[0])},color:#000" for state in graph.states]
    taken = ",".join(str(place) for place, edge in enumerate(graph.edges) if edge in main)
    return "\n".join([*lines, *([f"  linkStyle {taken} stroke:{MAIN},stroke-width:3px"] if taken else []), ""])


def _numbers(graph: WeightedGraph) -> dict[State, str]:
    return {state: f"n{number}" for number, state in enumerate(graph.nodes)}


def _arrow(edge: Sequence[State], numbers: dict[State, str], between: str) -> str:
    return between.join(numbers[state] for state in edge)


def _dot(text: str) -> str:
    return f'"{_escaped_dot(text)}"'


def _escaped_dot(text: str) -> str:
    r"""Escapes what a label gives a meaning: the quote, the backslash of ``\N``, and the entities of HTML."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")


def _mermaid(text: str) -> str:
    """Writes everything but letters, digits and a few marks as codes: quotes, Markdown and HTML mean nothing then."""
    return "".join(letter if letter.isalnum() or letter in _MERMAID else f"#{ord(letter)};" for letter in text)
