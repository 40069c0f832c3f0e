"""A flow as files for other programs: GraphML, DOT, Mermaid, JSON and tables."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..runs.files import write_text_atomically
from .flow import Cluster, Flow
from .graph import END, START, State, transition_shares
from .notation import dot_of, line_of, mermaid_of
from .pruning import WeightedGraph

_FORMULA = ("=", "+", "-", "@")  # what a cell begins with that a spreadsheet computes


def write_flow_files(flow: Flow, graph: WeightedGraph, folder: Path) -> tuple[Path, ...]:
    """Writes a flow for other programs, each file whole or not at all.

    ``graph.json`` has all states and transitions with counts, and the weights of those that are shown;
    ``graph.graphml``, ``graph.dot`` and ``graph.mmd`` have what is shown. ``clusters-ROLE.csv`` has a row for each
    cluster; its texts are one line each, and one that a spreadsheet would take for a formula has an apostrophe before
    it.

    Args:
        flow: The flow.
        graph: What is shown of it.
        folder: Where to; it is created.

    Returns:
        The files.
    """
    texts = {
        "graph.json": json.dumps(graph_record(flow, graph), indent=1, ensure_ascii=False) + "\n",
        "graph.graphml": _graphml(flow, graph),
        "graph.dot": dot_of(flow, graph),
        "graph.mmd": mermaid_of(flow, graph),
    }
    for role in sorted({cluster.role for cluster in flow.clusters}):
        texts[f"clusters-{quote(role, safe='')}.csv"] = _table([one for one in flow.clusters if one.role == role])
    for name, text in texts.items():
        write_text_atomically(folder / name, _encodable(text))
    return tuple(folder / name for name in texts)


def graph_record(flow: Flow, graph: WeightedGraph) -> dict[str, Any]:
    """Makes what ``graph.json`` holds.

    Args:
        flow: The flow.
        graph: What is shown of it.

    Returns:
        ``title``, ``settings``, ``states`` and ``transitions``. A state has id, role, name, count, weight, phrases and
        examples, a transition source, target, count, weight, and ``share``, of all from the same state. The weight is
        None where it is not shown.
    """
    shares = transition_shares(flow.graph)
    return {
        "title": flow.title,
        "settings": dict(flow.settings),
        "states": [_state(cluster, graph) for cluster in flow.clusters],
        "transitions": [
            {
                "source": source[1],
                "target": target[1],
                "count": count,
                "share": shares[source, target],
                "weight": graph.edges.get((source, target)),
            }
            for (source, target), count in flow.graph.edges.items()
        ],
    }


def _state(cluster: Cluster, graph: WeightedGraph) -> dict[str, Any]:
    return {
        "id": cluster.id,
        "role": cluster.role,
        "name": cluster.name,
        "count": cluster.size,
        "weight": graph.nodes.get(cluster.state),
        "phrases": list(cluster.phrases),
        "examples": list(cluster.examples),
    }


def _graphml(flow: Flow, graph: WeightedGraph) -> str:
    import networkx

    shares = transition_shares(flow.graph)
    drawn = networkx.DiGraph()
    for state, weight in graph.nodes.items():
        drawn.add_node(line_of(state[1]), **_attributes(flow, state), weight=weight)
    for (source, target), weight in graph.edges.items():
        counts = {"count": flow.graph.edges[source, target], "share": shares[source, target], "weight": weight}
        drawn.add_edge(line_of(source[1]), line_of(target[1]), **counts)
    return "\n".join(networkx.generate_graphml(drawn, prettyprint=True)) + "\n"


def _attributes(flow: Flow, state: State) -> Mapping[str, Any]:
    if state in (START, END):
        return {
            "role": "",
            "name": state[1].strip("[]"),
            "count": len(flow.trajectories),
            "phrases": "",
            "examples": "",
        }
    cluster = flow.by_state[state]
    lists = {"phrases": cluster.phrases, "examples": cluster.examples}
    texts = {"role": cluster.role, "name": cluster.name} | {key: " | ".join(value) for key, value in lists.items()}
    return {key: line_of(text) for key, text in texts.items()} | {"count": cluster.size}


def _table(clusters: Sequence[Cluster]) -> str:
    total = sum(cluster.size for cluster in clusters)
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["id", "name", "utterances", "share", "phrases", "examples"])
    for cluster in clusters:
        lists = " | ".join(cluster.phrases), " | ".join(cluster.examples)
        texts = [as_cell(text) for text in (cluster.name, *lists)]
        writer.writerow([cluster.id, texts[0], cluster.size, f"{cluster.size / total:.4f}", *texts[1:]])
    return file.getvalue()


def as_cell(text: str) -> str:
    """Makes a text a cell of a table: one visible line (see `hf_dialemb.flow.notation.line_of`) that is no formula.

    Args:
        text: Any text.

    Returns:
        The line, with an apostrophe before it where a spreadsheet would take it for a formula.
    """
    line = line_of(text)
    return f"'{line}" if line.startswith(_FORMULA) else line


def _encodable(text: str) -> str:
    """Replaces halves of characters, which no file can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")
