"""Pictures of a flow: its graph, and the trees that its clusters were cut from."""

from __future__ import annotations

import shutil
import subprocess
import warnings
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..drawing import check_drawing, new_figure
from ..errors import InputError
from ..runs.files import write_atomically
from .exports import MAIN, OTHER, colour, dot_of, label_lines, line_of
from .flow import Flow
from .graph import END, START, State
from .paths import typical_path
from .pruning import WeightedGraph

MOST_LEAVES = 60
"""So many leaves the picture of a tree has at most; those below are drawn as one, with their number in brackets."""

MOST_STATES, MOST_TRANSITIONS = 150, 1000
"""Of more, no picture of the graph is drawn: nobody could read it, and no program shows one so large."""

_LONGEST_LAYOUT = 60  # seconds that graphviz gets
_WIDTH, _HEIGHT = 2.5, 1.25  # of a node with the room around it, in inches
_DPI = 130
_SWEEPS = 8
_WIDEST = 12  # so many states are beside each other at most
_WARNINGS = r"Glyph \d+ .*missing from", "Attempting to set identical low and high ylims"


@contextmanager
def _quietly() -> Iterator[None]:
    """Silences matplotlib on letters that its font lacks, which are boxes then, and on trees without any height."""
    with warnings.catch_warnings():
        for message in _WARNINGS:
            warnings.filterwarnings("ignore", message)
        yield


@_quietly()
def draw_graph(flow: Flow, graph: WeightedGraph, folder: Path) -> tuple[tuple[Path, ...], str]:
    """Draws what is shown of a flow, as ``graph.svg`` and ``graph.png``, each whole or not at all.

    Returns the pictures, and a sentence on what was in the way of better ones, empty where nothing was. They are drawn
    by graphviz where its ``dot`` is on the path, else by matplotlib; without either, and of more than `MOST_STATES`
    states or `MOST_TRANSITIONS` transitions, there are none.
    """
    if len(graph.states) > MOST_STATES or len(graph.edges) > MOST_TRANSITIONS:
        return (), (
            f"{len(graph.states):,} states with {len(graph.edges):,} transitions are too many for one; raise the "
            "thresholds, or look at the page"
        )
    paths = folder / "graph.svg", folder / "graph.png"
    sentence = "graphviz would lay them out better, but is not installed"
    if program := shutil.which("dot"):
        try:
            pictures = [_by_graphviz(program, dot_of(flow, graph), path.suffix[1:]) for path in paths]
        except (OSError, subprocess.SubprocessError) as error:
            sentence = f"graphviz did not lay the graph out ({type(error).__name__}); raise the thresholds"
        else:
            for path, picture in zip(paths, pictures, strict=True):
                write_atomically(path, partial(Path.write_bytes, data=picture))
            return paths, ""
    try:
        check_drawing()
    except InputError as error:
        return (), str(error)
    figure = _by_matplotlib(flow, graph)
    for path in paths:
        write_atomically(path, partial(figure.savefig, format=path.suffix[1:], dpi=_DPI))
    return paths, sentence


@_quietly()
def draw_dendrogram(merges: NDArray[Any], clusters: int, path: Path, heading: str = "") -> None:
    """Draws the tree of a role's clusters as a PNG, whole or not at all; a line shows into how many it was cut.

    The merges of at least 2 leaves are in the form of scipy, ``(L - 1, 4)``; their last column does not matter.
    """
    from scipy.cluster import hierarchy

    tree = np.array(merges, dtype=np.float64)
    tree[:, 3] = _leaves_below(tree)  # scipy counts leaves; the merges count what leaves stand for
    leaves = min(MOST_LEAVES, len(tree) + 1)
    figure = new_figure(max(6.0, 1.5 + 0.16 * leaves), 4.5)
    axes = figure.subplots()
    looks = {"no_labels": True, "color_threshold": 0, "above_threshold_color": "#0072b2"}
    hierarchy.dendrogram(tree, p=leaves, truncate_mode="lastp", ax=axes, **looks)
    axes.axhline(cut := _cut(tree[:, 2], clusters), color=MAIN, linestyle="--", linewidth=1.2)
    axes.annotate(
        f"{clusters:,} clusters", (1, cut), xycoords=("axes fraction", "data"), xytext=(-3, 3),
        textcoords="offset points", ha="right", color=MAIN, fontsize=10,
    )  # fmt: skip
    axes.set_ylabel("mean cosine distance at which clusters join", fontsize=9)
    axes.set_xlabel(f"the upper {leaves:,} of {len(tree) + 1:,} leaves" if leaves <= len(tree) else "", fontsize=9)
    for side in ("top", "right", "bottom"):
        axes.spines[side].set_visible(False)
    axes.set_title(line_of(heading), fontsize=12, parse_math=False)
    write_atomically(path, partial(figure.savefig, format="png", dpi=_DPI))


def _leaves_below(tree: NDArray[np.float64]) -> list[int]:
    counts = [1] * (len(tree) + 1)
    for one, other in tree[:, :2].astype(int):
        counts.append(counts[one] + counts[other])
    return counts[len(tree) + 1 :]


def _cut(distances: NDArray[np.float64], clusters: int) -> float:
    """Returns a distance between the last merge that was made and the first that was not."""
    made = len(distances) + 1 - clusters
    below = distances[made - 1] if made else 0.0
    above = distances[made] if made < len(distances) else 1.05 * distances[-1]
    return float((below + above) / 2)


def _by_graphviz(program: str, text: str, form: str) -> bytes:
    run = subprocess.run(
        [program, f"-T{form}", f"-Gdpi={_DPI if form == 'png' else 72}"],
        input=text.encode(), capture_output=True, check=True, timeout=_LONGEST_LAYOUT,
    )  # fmt: skip
    return run.stdout


def _by_matplotlib(flow: Flow, graph: WeightedGraph) -> Any:  # noqa: ANN401 - matplotlib has no types here
    layers = _layers(flow, graph)
    widest = max(map(len, layers))
    places = {
        state: ((column - (len(layer) - 1) / 2) * widest / len(layer) * _WIDTH, -row * _HEIGHT)
        for row, layer in enumerate(layers)
        for column, state in enumerate(layer)
    }
    figure = new_figure(max(6.0, widest * _WIDTH), max(3.0, (len(layers) + 0.5) * _HEIGHT))
    axes = figure.subplots()
    axes.set_axis_off()
    axes.set_title(line_of(flow.title), parse_math=False)
    reach = max(1.0, widest / 2) * _WIDTH
    axes.set(xlim=(-reach, reach), ylim=(-(len(layers) - 0.5) * _HEIGHT, 0.5 * _HEIGHT))
    shares, main = flow.graph.shares, typical_path(flow).steps
    boxes = {state: _node(axes, flow, state, graph.nodes[state], place) for state, place in places.items()}
    for edge, weight in graph.edges.items():
        _line(axes, boxes, places, edge, weight, f"{shares[edge]:.0%}", MAIN if edge in main else OTHER)
    return figure


def _node(axes: Any, flow: Flow, state: State, weight: float, place: tuple[float, float]) -> Any:  # noqa: ANN401
    ends = state in (START, END)
    shape, paint = ("circle,pad=0.35", "#e4e4e4") if ends else ("round,pad=0.45", colour(state[0]))
    box = {"boxstyle": shape, "facecolor": paint, "edgecolor": "black", "linewidth": 0.6 + 2 * weight}
    text = "\n".join(label_lines(flow, state))
    return axes.text(*place, text, ha="center", va="center", fontsize=8, bbox=box, zorder=3, parse_math=False)


def _line(
    axes: Any,  # noqa: ANN401
    boxes: dict[State, Any],
    places: dict[State, tuple[float, float]],
    edge: tuple[State, State],
    weight: float,
    label: str,
    stroke: str,
) -> None:
    """Draws a transition: straight to the next layer, else bent, so that it passes by what lies between."""
    from matplotlib.patches import FancyArrowPatch

    (x, y), (other_x, other_y) = (places[state] for state in edge)
    if edge[0] == edge[1]:
        axes.text(x + 0.42 * _WIDTH, y + 0.25 * _HEIGHT, f"↻ {label}", fontsize=7, color=stroke, zorder=4)
        return
    layers = round((y - other_y) / _HEIGHT)
    bend = 0.0 if layers == 1 else 0.35 if layers <= 0 else 0.18
    arrow = FancyArrowPatch(
        (x, y), (other_x, other_y), patchA=boxes[edge[0]].get_bbox_patch(), patchB=boxes[edge[1]].get_bbox_patch(),
        connectionstyle=f"arc3,rad={bend}", arrowstyle="-|>", mutation_scale=10 + 4 * weight, shrinkA=2, shrinkB=2,
        color=stroke, linewidth=0.5 + 2.5 * weight, alpha=0.85, zorder=2,
    )  # fmt: skip
    axes.add_patch(arrow)
    # Where a bent line is in its middle: off the straight one by half of the bend.
    middle = (x + other_x) / 2 + bend * (other_y - y) / 2, (y + other_y) / 2 - bend * (other_x - x) / 2
    paper = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.8}
    axes.text(*middle, label, fontsize=6.5, color=stroke, ha="center", va="center", bbox=paper, zorder=2.5)


def _layers(flow: Flow, graph: WeightedGraph) -> list[list[State]]:
    """Puts states into layers, the start first, the end last; a wide one becomes several.

    Within a layer, states lie near what they are joined with: the mean place of their neighbours decides, in sweeps.
    """
    depths = _depths(flow, graph)
    layers: list[list[State]] = [[] for _ in range(depths[END] + 1)]
    for state in graph.nodes:
        layers[depths[state]].append(state)
    layers = [layer for layer in layers if layer]
    joined = defaultdict(set)
    for source, target in graph.edges:
        joined[source].add(target)
        joined[target].add(source)
    for _ in range(_SWEEPS):
        for layer in layers:
            places = {state: (place + 0.5) / len(other) for other in layers for place, state in enumerate(other)}
            means = {state: float(np.mean([places[one] for one in joined[state] or {state}])) for state in layer}
            layer.sort(key=means.__getitem__)
    return [layer[first : first + _WIDEST] for layer in layers for first in range(0, len(layer), _WIDEST)]


def _depths(flow: Flow, graph: WeightedGraph) -> dict[State, int]:
    """Finds each state's layer: below all that leads to it and comes earlier in dialogues on average."""
    moments: dict[State, list[float]] = defaultdict(list)
    for trajectory in flow.trajectories:
        for place, state in enumerate(trajectory):
            moments[state].append(place / len(trajectory))
    order = sorted(graph.states, key=lambda state: float(np.mean(moments[state])))
    rank = {state: place for place, state in enumerate((START, *order, END))}
    depths = {START: 0}
    downward = [edge for edge in graph.edges if rank[edge[0]] < rank[edge[1]]]
    for state in order:
        depths[state] = 1 + max((depths[source] for source, target in downward if target == state), default=0)
    for state in reversed(order):  # what only later states lead to goes right above the first that follows it
        above = [source for source, target in downward if target == state]
        below = [depths[target] for source, target in downward if source == state and target != END]
        if not above and below:
            depths[state] = min(below) - 1
    return depths | {END: 1 + max(depths.values())}
