"""What a flow leaves in its folder: the page, the graph in other programs' forms, tables, pictures, instructions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from ..corpora.show import visible
from ..runs.files import write_json_atomically, write_text_atomically
from .clustering import Clustering
from .drawing import draw_dendrogram, draw_graph
from .exports import write_flow_files
from .flow import Flow
from .grounding import policy_text, state_machine
from .page.insights import insights
from .page.page import write_page
from .paths import widest_path
from .pipeline import CACHE
from .pruning import Pruning, WeightedGraph, pruned

PAGE, POLICY, MACHINE = "index.html", "policy.md", "state_machine.json"


def write_report(flow: Flow, clusterings: Mapping[str, Clustering], pruning: Pruning, folder: Path) -> list[str]:
    """Writes all that a flow is looked at and used by; returns lines that say what is shown and what was written."""
    graph = pruned(flow.graph, pruning)
    lines = list(_shown(flow, graph, pruning))
    write_main_page(flow, clusterings, pruning, folder / PAGE)
    others = [*write_flow_files(flow, graph, folder)]
    write_text_atomically(folder / POLICY, policy_text(flow, graph))
    write_json_atomically(folder / MACHINE, state_machine(flow, graph))
    others += [folder / POLICY, folder / MACHINE]
    pictures, sentence = draw_graph(flow, graph, folder)
    others += [*pictures, *(_dendrograms(clusterings, folder) if find_spec("matplotlib") else ())]
    _remove_old(folder, [path.name for path in others])
    if sentence:
        lines.append(f"Pictures: {sentence}.")
    return [*lines, f"Beside it: {', '.join(path.name for path in others)}", f"Wrote {folder / PAGE}"]


def write_main_page(flow: Flow, clusterings: Mapping[str, Clustering], pruning: Pruning, path: Path) -> None:
    """Writes the page of a flow, with what was found in it and how."""
    choices = {role: clustering.choice for role, clustering in clusterings.items()}
    found = insights(flow, pruned(flow.graph, pruning).states)
    facts = [("Made by", f"hf_dialemb {version('hf-dialemb')}")]
    write_page(flow, path, pruning, choices=choices, insights=found, facts=facts)


def _remove_old(folder: Path, written: Sequence[str]) -> None:
    """Removes what an earlier run wrote and this one did not; files of others stay."""
    listing = folder / CACHE / "written.json"
    try:
        before = json.loads(listing.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        before = []
    for name in before:
        if name not in written and Path(name).name == name:
            (folder / name).unlink(missing_ok=True)
    write_json_atomically(listing, list(written))


def _shown(flow: Flow, graph: WeightedGraph, pruning: Pruning) -> Iterator[str]:
    if not graph.states:
        yield (
            f"Nothing is frequent enough to be shown (--nodes {pruning.nodes:g}, --edges {pruning.edges:g}): lower the "
            "thresholds, here or on the page"
        )
        return
    yield (
        f"Shown are {len(graph.states)} of {len(flow.clusters)} states and {len(graph.edges)} transitions "
        f"(--nodes {pruning.nodes:g} --edges {pruning.edges:g} --weights {pruning.weights})"
    )
    if main := widest_path(graph):
        yield "Main path:"
        yield from (f"  {state[0]}: {short(flow.by_state[state].name)}" for state in main.states)


def short(name: str, most: int = 90) -> str:
    """Makes of a name what a line of a terminal holds, without what would command the terminal."""
    name = visible(" ".join(name.split()))
    return name if len(name) <= most else f"{name[: most - 1].rstrip()}…"


def _dendrograms(clusterings: Mapping[str, Clustering], folder: Path) -> list[Path]:
    drawn = {folder / f"dendrogram-{role}.png": (role, one) for role, one in clusterings.items() if len(one.merges)}
    for path, (role, one) in drawn.items():
        draw_dendrogram(one.merges, one.choice.count, path, f"What the {role} says")
    return list(drawn)
