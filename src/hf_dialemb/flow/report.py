"""What a flow leaves in its folder: the page, the graph in other programs' forms, tables, pictures, instructions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree

from ..drawing import visible
from ..runs.files import replaced_together, write_json_atomically, write_text_atomically
from .clustering import Clustering
from .drawing import draw_dendrogram, draw_graph
from .exports import write_flow_files
from .flow import Flow
from .grounding import policy_text, state_machine
from .naming import shortened
from .page.insights import insights
from .page.page import write_page
from .paths import typical_path, with_gaps
from .pipeline import CACHE
from .pruning import Pruning, WeightedGraph, pruned
from .stored_flow import CENTROIDS, FLOW, UTTERANCES, StoredFlow, write_flow

PAGE, POLICY, MACHINE = "index.html", "policy.md", "state_machine.json"


def write_report(
    stored: StoredFlow, clusterings: Mapping[str, Clustering], pruning: Pruning, folder: Path, back: str = ""
) -> list[str]:
    """Writes a flow and all that it is looked at and used by; returns lines on what is shown and what was written.

    The page links ``back`` to another, by an address relative to the folder.
    """
    flow, listing = stored.flow, folder / CACHE / "written.json"
    graph = pruned(flow.graph, pruning)
    lines = list(_shown(flow, graph, pruning))
    with replaced_together(folder, lambda: _written(listing)) as new:
        write_main_page(flow, clusterings, pruning, new / PAGE, back)
        others = [*write_flow_files(flow, graph, new)]
        write_text_atomically(new / POLICY, policy_text(flow, graph))
        write_json_atomically(new / MACHINE, state_machine(flow, graph))
        others += [new / POLICY, new / MACHINE]
        pictures, sentence = draw_graph(flow, graph, new)
        others += [*pictures, *(_dendrograms(clusterings, new) if find_spec("matplotlib") else ())]
        write_flow(stored, new)
        names = [path.name for path in others]
        write_json_atomically(listing, [*names, *_written(listing)])
    write_json_atomically(listing, names)
    if sentence:
        lines.append(f"Pictures: {sentence}.")
    return [*lines, f"Beside it: {', '.join(names)}", f"Wrote {folder / PAGE}"]


def write_main_page(
    flow: Flow, clusterings: Mapping[str, Clustering], pruning: Pruning, path: Path, back: str = ""
) -> None:
    """Writes the page of a flow, with what was found in it and how."""
    choices = {role: clustering.choice for role, clustering in clusterings.items()}
    found = insights(flow, pruned(flow.graph, pruning).states)
    facts = [("Made by", f"hf_dialemb {version('hf-dialemb')}")]
    write_page(flow, path, pruning, choices=choices, insights=found, facts=facts, back=back)


def remove_report(folder: Path, *, cache: bool = False) -> None:
    """Removes a flow that `write_report` wrote, perhaps with what is kept for the next run; files of others stay."""
    listing = folder / CACHE / "written.json"
    if not listing.is_file():
        return
    for name in (FLOW, PAGE, UTTERANCES, CENTROIDS, *_written(listing)):
        (folder / name).unlink(missing_ok=True)
    listing.unlink()
    if cache:
        rmtree(folder / CACHE)
        with suppress(OSError):  # files of others lie there
            folder.rmdir()


def _written(listing: Path) -> list[str]:
    """Names what an earlier run wrote; files of others stay."""
    try:
        return [name for name in json.loads(listing.read_text(encoding="utf-8")) if Path(name).name == name]
    except (OSError, ValueError, TypeError, RecursionError):
        return []


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
    main = typical_path(flow)
    yield f"Main path, as in {short(main.dialogue)}:"
    said = (f"  {state[0]}: {short(text)}" for state, text in zip(main.states, main.texts, strict=True))
    yield from with_gaps(main, said, "  …")


def short(name: str, most: int = 90) -> str:
    """Makes of a name what a line of a terminal holds, without what would command the terminal."""
    return shortened(visible(" ".join(name.split())), most)


def _dendrograms(clusterings: Mapping[str, Clustering], folder: Path) -> list[Path]:
    drawn = {folder / f"dendrogram-{role}.png": (role, one) for role, one in clusterings.items() if len(one.merges)}
    for path, (role, one) in drawn.items():
        draw_dendrogram(one.merges, one.choice.count, path, f"What the {role} says")
    return list(drawn)
