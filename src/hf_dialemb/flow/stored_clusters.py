"""Clusters on disk, by what they were made of, so that a run with other names or thresholds of a graph finds them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ..runs.files import write_atomically
from .clustering import Choice, Clustering


def write_clusters(clusterings: Mapping[str, Clustering], folder: Path, key: str) -> None:
    """Writes the clusters of all roles as one file, whole or not at all.

    Args:
        clusterings: The clusters of each role.
        folder: Where to; it is created.
        key: Of the vectors and settings that they come from.
    """
    from safetensors.numpy import save_file

    tensors: dict[str, NDArray[Any]] = {}
    for role, clustering in clusterings.items():
        tensors[f"{role}.labels"], tensors[f"{role}.merges"] = clustering.labels, clustering.merges
    choices = {role: asdict(clustering.choice) for role, clustering in clusterings.items()}
    write_atomically(_file(folder, key), lambda path: save_file(tensors, path, {"choices": json.dumps(choices)}))


def read_clusters(folder: Path, key: str) -> dict[str, Clustering] | None:
    """Reads clusters.

    Args:
        folder: Where `write_clusters` wrote them.
        key: As there.

    Returns:
        The clusters of each role; None where they are not there, or damaged.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(_file(folder, key), "numpy") as tensors:
            choices = json.loads((tensors.metadata() or {})["choices"])
            return {
                role: Clustering(
                    tensors.get_tensor(f"{role}.labels"),
                    Choice(**{**fields, "curve": tuple(map(tuple, fields["curve"]))}),
                    tensors.get_tensor(f"{role}.merges"),
                )
                for role, fields in choices.items()
            }
    except (OSError, SafetensorError, KeyError, ValueError, TypeError):
        return None


def _file(folder: Path, key: str) -> Path:
    return folder / f"clusters-{key[:24]}.safetensors"
