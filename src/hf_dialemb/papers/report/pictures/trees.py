"""Which labels lie near each other: a tree of their centroids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ....drawing import COLOURS, check_drawing, new_figure, note, plain_axes, plain_text, save, shortened, title
from ....errors import InputError
from .projections import largest_labels, mean_directions

MAX_LEAVES = 100  # labels that the tree shows; the smaller ones are left out, which its note says

_LEAF_HEIGHT, _MARGIN, _WIDTH = 0.21, 1.4, 9.0  # inches


def dendrogram(embeddings: NDArray[Any], labels: Sequence[str], path: Path | str, heading: str = "") -> None:
    """Draws the tree of two or more labels' centroids, of vectors ``(N, D)``, as a PNG, whole or not at all."""
    from scipy.cluster import hierarchy

    check_drawing()
    counts = Counter(labels)
    if len(counts) < 2:
        raise InputError(f"labels: got {len(counts)} distinct, expected at least 2; choose items of several labels")
    names = largest_labels(labels, MAX_LEAVES)
    tree = hierarchy.linkage(mean_directions(embeddings, labels, names), method="average", metric="cosine")
    tree[:, 2] = tree[:, 2].clip(min=0)  # rounding can make the distance of equal directions negative
    figure = new_figure(_WIDTH, _MARGIN + _LEAF_HEIGHT * len(names))
    axes = figure.subplots()
    leaves = [f"{shortened(name, 60)} ({counts[name]:,})" for name in names]
    looks = {"color_threshold": 0, "above_threshold_color": COLOURS[0], "leaf_font_size": 9}
    hierarchy.dendrogram(tree, labels=leaves, orientation="left", ax=axes, **looks)
    axes.set_xlabel("cosine distance at which labels join", fontsize=10)
    axes.tick_params(axis="x", labelsize=9)
    plain_axes(axes, "x", "top", "left", "right")
    plain_text(axes.get_yticklabels())
    title(figure, heading)
    text = "Labels that join further right are more alike. Centroids of labels, average linkage; in brackets, items."
    shown = f" Shown: the {len(names):,} largest of {len(counts):,} labels." if len(names) < len(counts) else ""
    note(figure, text + shown)
    save(figure, path)
