"""A flow on disk: what a later command needs to go on from it.

``utterances.parquet`` holds each utterance with its cluster, ``centroids.safetensors`` the mean vector of each cluster,
``flow.json`` the clusters and all settings. Each knows the key of the flow, so that files of two runs are never mixed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..runs.files import write_atomically, write_json_atomically
from .clustering import Choice, Clustering
from .flow import Cluster, Flow, Utterances

FLOW, UTTERANCES, CENTROIDS = "flow.json", "utterances.parquet", "centroids.safetensors"
_AGAIN = "run dialemb flow again"


@dataclass(frozen=True)
class StoredFlow:
    """A flow with what new utterances are assigned by."""

    flow: Flow
    centroids: NDArray[np.float32]  # the middle of each cluster's unit vectors, of unit length, (C, D)
    key: str  # tells the flow from all that come of other input or settings


def write_flow(stored: StoredFlow, folder: Path) -> None:
    """Writes a flow into a folder; ``flow.json`` comes last, and without it there is none."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    (folder / FLOW).unlink(missing_ok=True)
    flow, said = stored.flow, stored.flow.utterances
    table = pa.table(
        {
            "dialogue": [said.dialogues[place] for place in said.places],
            "role": list(said.roles),
            "text": list(said.texts),
            "action": list(said.actions),
            "cluster": [flow.clusters[label].id for label in flow.labels],
            **({"name": list(said.names)} if said.names else {}),
        }
    ).replace_schema_metadata({"key": stored.key})
    write_atomically(folder / UTTERANCES, lambda path: pq.write_table(table, path))
    centroids = {"centroids": np.ascontiguousarray(stored.centroids, dtype=np.float32)}
    write_atomically(folder / CENTROIDS, lambda path: save_file(centroids, path, {"key": stored.key}))
    record = {
        "schema": 1,
        "key": stored.key,
        "title": flow.title,
        "settings": dict(flow.settings),
        "clusters": [asdict(cluster) for cluster in flow.clusters],
    }
    write_json_atomically(folder / FLOW, record)


def stored_flow(folder: Path, key: str) -> StoredFlow | None:
    """Returns the flow in a folder if it is whole and has a key; else None."""
    try:
        found = read_flow(folder)
    except InputError:
        return None
    return found if found.key == key else None


def read_flow(folder: Path) -> StoredFlow:
    """Reads what ``dialemb flow`` wrote; an InputError says that it is not there, damaged, or of different runs."""
    import pyarrow.parquet as pq
    from safetensors import SafetensorError, safe_open

    if not (folder / FLOW).is_file():
        remedy = f"choose one of {folder / 'flows'}" if (folder / "flows").is_dir() else _AGAIN
        raise InputError(f"flow '{folder}': got no {FLOW} in it, expected the output of dialemb flow; {remedy}")
    try:
        record = json.loads((folder / FLOW).read_text(encoding="utf-8"))
        table = pq.read_table(folder / UTTERANCES)
        with safe_open(folder / CENTROIDS, "numpy") as tensors:
            centroids = tensors.get_tensor("centroids")
            keys = {(tensors.metadata() or {}).get("key"), (table.schema.metadata or {}).get(b"key", b"").decode()}
        if keys != {record["key"]}:
            raise ValueError("its files are of different runs")
        if not (np.abs(centroids) < 2).all():  # they have unit length
            raise ValueError("its centroids are damaged")
        flow = _flow(record, table.to_pydict())
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError, SafetensorError) as error:
        raise InputError(f"flow '{folder}': cannot be read ({error}); {_AGAIN}") from None
    return StoredFlow(flow, centroids, record["key"])


def _flow(record: dict[str, Any], columns: dict[str, list[str]]) -> Flow:
    clusters = tuple(
        replace(Cluster(**fields), phrases=tuple(fields["phrases"]), examples=tuple(fields["examples"]))
        for fields in record["clusters"]
    )
    for cluster in clusters:
        told = (cluster.name, cluster.role, cluster.id, *cluster.phrases, *cluster.examples)
        if not all(isinstance(each, str) for each in told) or not isinstance(cluster.size, int):
            raise TypeError(f"cluster {cluster.id}: a field of it is of another type")
    if not isinstance(record["title"], str) or not isinstance(record["settings"].get("model"), str | None):
        raise TypeError("its title or its model is no text")
    numbers = {cluster.id: number for number, cluster in enumerate(clusters)}
    ids = {name: place for place, name in enumerate(dict.fromkeys(columns["dialogue"]))}
    places = np.array([ids[name] for name in columns["dialogue"]], dtype=np.int32)
    roles, texts, actions = (tuple(columns[name]) for name in ("role", "text", "action"))
    said = Utterances(tuple(ids), places, roles, texts, actions, tuple(columns.get("name", ())))
    labels = np.array([numbers[cluster] for cluster in columns["cluster"]], dtype=np.int32)
    return Flow(record["title"], said, labels, clusters, dict(record["settings"]))


def write_clusters(clusterings: Mapping[str, Clustering], folder: Path, key: str) -> None:
    """Writes the clusters of all roles as one file, for runs with other names or thresholds of a graph."""
    from safetensors.numpy import save_file

    tensors: dict[str, NDArray[Any]] = {}
    for role, clustering in clusterings.items():
        tensors[f"{role}.labels"], tensors[f"{role}.merges"] = clustering.labels, clustering.merges
    choices = {role: asdict(clustering.choice) for role, clustering in clusterings.items()}
    write_atomically(_file(folder, key), lambda path: save_file(tensors, path, {"choices": json.dumps(choices)}))


def read_clusters(folder: Path, key: str) -> dict[str, Clustering] | None:
    """Reads the clusters of a key; None where they are not there, or damaged."""
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
