"""Keep a flow in a folder.

The files that a later command reads, and those for people and other programs.

``utterances.parquet`` holds each utterance with its cluster, ``centroids.safetensors`` the mean
vector of each cluster, ``flow.json`` the clusters and all settings. Each has the key of the flow,
so that files of two runs are never mixed.
"""

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from ...errors import InputError
from ...storage.files import replaced_together, write_atomically, write_json_atomically
from ..pages.page import write_page
from . import paths
from .exports import write_flow_files
from .flow import Cluster, Flow, Utterances
from .flow_clustering import Choice
from .graph import Pruning, pruned

CACHE, PAGE = "cache", "index.html"
KINDS = "kinds.yaml"  # what a person says of the ends of conversations
FLOW, UTTERANCES, CENTROIDS = "flow.json", "utterances.parquet", "centroids.safetensors"
_LISTING = f"{CACHE}/written.json"  # the names of files that an earlier run wrote
_AGAIN = "run dialemb flow again"


@dataclass(frozen=True)
class StoredFlow:
    """A flow, and the centroids by which new utterances are assigned."""

    flow: Flow
    centroids: NDArray[np.float32]  # unit vectors, (C, D)
    key: str  # differs for any other input or settings
    choices: Mapping[str, Choice]  # how the number of clusters of each role was decided


def read_kinds(folder: Path, texts: Collection[str]) -> dict[str, str]:
    """Read what a person says of the ends of conversations in a flow's folder, for a text of each
    state.

    The file `KINDS`, if there is one, has lines such as ``"We are fully booked.": failed``. An
    InputError says that it cannot be read, or names what nobody says or no kind of end.
    """
    path = folder / KINDS
    try:
        kinds = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(
            f"{path}: cannot be read ({' '.join(str(error).split())[:200]}); write it in YAML"
        ) from None
    if not isinstance(kinds or {}, dict):
        raise InputError(
            f"{path}: got {type(kinds).__name__}, expected a kind for each text; correct it"
        )
    for text, kind in (kinds or {}).items():
        if kind not in (*paths.KINDS, paths.NOTHING):
            known = ", ".join((*paths.KINDS, paths.NOTHING))
            raise InputError(f"{path}: '{text}': got {kind!r}, expected one of {known}; correct it")
        if text not in texts:
            raise InputError(
                f"{path}: got '{text}', expected what is said in a conversation; copy it from the "
                "page"
            )
    return dict(kinds or {})


def write_flow(stored: StoredFlow, folder: Path) -> None:
    """Write a flow into a folder; ``flow.json`` comes last, and without it there is none."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from safetensors.numpy import save_file

    flow, utterances = stored.flow, stored.flow.utterances
    columns = {
        "dialogue": [utterances.dialogues[place] for place in utterances.places],
        "role": utterances.roles,
        "text": utterances.texts,
        "action": utterances.actions,
        "cluster": [flow.clusters[label].id for label in flow.labels],
        **({"name": utterances.names} if utterances.names else {}),
    }
    table = pa.table({name: list(column) for name, column in columns.items()})
    table = table.replace_schema_metadata({"key": stored.key})
    write_atomically(folder / UTTERANCES, lambda path: pq.write_table(table, path))
    centroids = {"centroids": np.ascontiguousarray(stored.centroids, dtype=np.float32)}
    write_atomically(
        folder / CENTROIDS, lambda path: save_file(centroids, path, {"key": stored.key})
    )
    record = {"schema": 1, "key": stored.key, "title": flow.title, "settings": dict(flow.settings)}
    record["clusters"] = [asdict(cluster) for cluster in flow.clusters]
    record["choices"] = {role: asdict(choice) for role, choice in stored.choices.items()}
    write_json_atomically(folder / FLOW, record)


def read_flow(folder: Path) -> StoredFlow:
    """Read the output of ``dialemb flow``.

    An InputError reports that it is missing, damaged, or of different runs.
    """
    import pyarrow.parquet as pq
    from safetensors import SafetensorError, safe_open

    if not (folder / FLOW).is_file():
        remedy = f"choose one of {folder / 'flows'}" if (folder / "flows").is_dir() else _AGAIN
        raise InputError(
            f"flow '{folder}': got no {FLOW} in it, expected the output of dialemb flow; {remedy}"
        )
    try:
        record = json.loads((folder / FLOW).read_text(encoding="utf-8"))
        table = pq.read_table(folder / UTTERANCES)
        with safe_open(folder / CENTROIDS, "numpy") as tensors:
            centroids = tensors.get_tensor("centroids")
            keys = {
                (tensors.metadata() or {}).get("key"),
                (table.schema.metadata or {}).get(b"key", b"").decode(),
            }
        if keys != {record["key"]}:
            raise ValueError("its files are of different runs")
        if not (np.abs(centroids) < 2).all():  # they have unit length
            raise ValueError("its centroids are damaged")
        choices = {
            role: Choice(**{**fields, "curve": tuple(map(tuple, fields["curve"]))})
            for role, fields in record.get("choices", {}).items()
        }
        return StoredFlow(_flow(record, table.to_pydict()), centroids, record["key"], choices)
    except (
        OSError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
        SafetensorError,
    ) as error:
        raise InputError(f"flow '{folder}': cannot be read ({error}); {_AGAIN}") from None


def _flow(record: dict[str, Any], columns: dict[str, list[str]]) -> Flow:
    clusters = tuple(
        replace(
            Cluster(**fields), phrases=tuple(fields["phrases"]), examples=tuple(fields["examples"])
        )
        for fields in record["clusters"]
    )
    words = [record["title"], record["settings"].get("model") or ""]
    for cluster in clusters:
        words += [cluster.name, cluster.role, cluster.id, *cluster.phrases, *cluster.examples]
    if {*map(type, words)} != {str} or {type(cluster.size) for cluster in clusters} != {int}:
        raise TypeError("its title, its model or a cluster is damaged")
    numbers = {cluster.id: number for number, cluster in enumerate(clusters)}
    ids = {name: place for place, name in enumerate(dict.fromkeys(columns["dialogue"]))}
    places = np.array([ids[name] for name in columns["dialogue"]], dtype=np.int32)
    roles, texts, actions, names = (
        tuple(columns.get(name, ())) for name in ("role", "text", "action", "name")
    )
    labels = np.array([numbers[cluster] for cluster in columns["cluster"]], dtype=np.int32)
    utterances = Utterances(tuple(ids), places, roles, texts, actions, names)
    return Flow(record["title"], utterances, labels, clusters, dict(record["settings"]))


def write_report(stored: StoredFlow, pruning: Pruning, folder: Path, back: str = "") -> None:
    """Write a flow with its page and exports, in place of those of an earlier run.

    Files of others stay.

    The page links ``back`` to another, by an address relative to the folder.
    """
    flow, listing = stored.flow, folder / _LISTING
    with replaced_together(folder, lambda: _written(listing)) as new:
        write_page(flow, new / PAGE, pruning, choices=stored.choices, back=back)
        names = write_flow_files(flow, pruned(flow.graph, pruning), new)
        write_flow(stored, new)
        write_json_atomically(listing, [*names, *_written(listing)])
    write_json_atomically(listing, names)


def remove_report(folder: Path, *, cache: bool = False) -> None:
    """Remove the files of `write_report`, and perhaps the cache; files of others stay."""
    listing = folder / _LISTING
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
    try:
        return [
            name
            for name in json.loads(listing.read_text(encoding="utf-8"))
            if Path(name).name == name
        ]
    except (OSError, ValueError, TypeError, RecursionError):
        return []
