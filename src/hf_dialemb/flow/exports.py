"""A flow as files for other programs: GraphML, DOT, Mermaid, JSON and tables."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..runs.files import write_text_atomically
from .flow import Cluster, Flow
from .graph import END, START, State
from .notation import dot_of, line_of, mermaid_of
from .pruning import WeightedGraph

_FORMULA = ("=", "+", "-", "@")  # what a cell begins with that a spreadsheet computes


def write_flow_files(flow: Flow, graph: WeightedGraph, folder: Path) -> tuple[Path, ...]:
    """Writes a flow, and what is shown of it, for other programs; each file whole or not at all.

    ``graph.json`` has all states and transitions with counts, and the weights of those that are shown;
    ``graph.graphml``, ``graph.dot`` and ``graph.mmd`` have what is shown. ``clusters-ROLE.csv`` has a row for each
    cluster; its texts are one line each, and one that a spreadsheet would take for a formula has an apostrophe before
    it.
    """
    texts = {
        "graph.json": json.dumps(_record(flow, graph), indent=1, ensure_ascii=False) + "\n",
        "graph.graphml": _graphml(flow, graph),
        "graph.dot": dot_of(flow, graph),
        "graph.mmd": mermaid_of(flow, graph),
    }
    for role in sorted({cluster.role for cluster in flow.clusters}):
        texts[f"clusters-{quote(role, safe='')}.csv"] = _table([one for one in flow.clusters if one.role == role])
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
    states = [
        {
            "id": cluster.id,
            "role": cluster.role,
            "name": cluster.name,
            "count": cluster.size,
            "weight": graph.nodes.get(cluster.state),
            "phrases": cluster.phrases,
            "examples": cluster.examples,
        }
        for cluster in flow.clusters
    ]
    transitions = [
        {
            "source": edge[0][1],
            "target": edge[1][1],
            "count": count,
            "share": flow.graph.shares[edge],
            "weight": graph.edges.get(edge),
        }
        for edge, count in flow.graph.edges.items()
    ]
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
    texts = {"role": cluster.role, "name": cluster.name}
    lists = {"phrases": " | ".join(cluster.phrases), "examples": " | ".join(cluster.examples)}
    return {key: line_of(text) for key, text in (texts | lists).items()} | {"count": cluster.size}


def _table(clusters: Sequence[Cluster]) -> str:
    total = sum(cluster.size for cluster in clusters)
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["id", "name", "utterances", "share", "phrases", "examples"])
    for one in clusters:
        texts = [as_cell(text) for text in (one.name, " | ".join(one.phrases), " | ".join(one.examples))]
        writer.writerow([one.id, texts[0], one.size, f"{one.size / total:.4f}", *texts[1:]])
    return file.getvalue()
