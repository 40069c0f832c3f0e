"""Keep a flow in a folder.

``utterances.parquet`` holds each utterance with its cluster, ``centroids.safetensors`` the mean
vector of each cluster, ``flow.json`` the clusters and all settings: a later command reads these.
The page is for people.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError
from ...storage.files import working_folder, write_json_atomically
from ..pages.page import write_page
from .flow import Cluster, Flow, Utterances
from .graph import Pruning

CACHE = "cache"
PAGE = "index.html"
_WRONG_FORM = (OSError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What reading another file than one of ours raises."""

FLOW = "flow.json"
UTTERANCES = "utterances.parquet"
CENTROIDS = "centroids.safetensors"
FILES = (FLOW, PAGE, UTTERANCES, CENTROIDS)
_AGAIN = "run dialemb flow again"


def write_flow(flow: Flow, folder: Path) -> None:
    """Write a flow into a folder; ``flow.json`` comes last, and without it there is none."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from safetensors.numpy import save_file

    utterances = flow.utterances
    columns = {
        "dialogue": [utterances.dialogues[place] for place in utterances.places],
        "role": list(utterances.roles),
        "text": list(utterances.texts),
        "name": list(utterances.names),
        "cluster": [flow.clusters[label].id for label in flow.labels],
    }
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), folder / UTTERANCES)
    save_file({"centroids": np.ascontiguousarray(flow.centroids)}, folder / CENTROIDS)
    record = {"schema": 1, "title": flow.title, "settings": dict(flow.settings)}
    record["clusters"] = [asdict(cluster) for cluster in flow.clusters]
    write_json_atomically(folder / FLOW, record)


def read_flow(folder: Path) -> Flow:
    """Read the output of ``dialemb flow``; an InputError says that it is missing or damaged."""
    import pyarrow.parquet as pq
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    if not (folder / FLOW).is_file():
        several = folder / "flows"
        raise InputError(
            f"flow '{folder}': got no {FLOW} in it, expected the output of dialemb flow; "
            f"{f'choose one of {several}' if several.is_dir() else _AGAIN}"
        )
    try:
        record = json.loads((folder / FLOW).read_text(encoding="utf-8"))
        columns = pq.read_table(folder / UTTERANCES).to_pydict()
        flow = _flow(record["title"], record["settings"], record["clusters"], columns)
        return replace(flow, centroids=load_file(folder / CENTROIDS)["centroids"])
    except (*_WRONG_FORM, SafetensorError) as error:
        raise InputError(f"flow '{folder}': cannot be read ({error}); {_AGAIN}") from None


def _flow(
    title: str,
    settings: Mapping[str, Any],
    records: Sequence[dict[str, Any]],
    columns: Mapping[str, list[str]],
) -> Flow:
    for fields in records:
        fields.update(phrases=tuple(fields["phrases"]), examples=tuple(fields["examples"]))
    clusters = tuple(Cluster(**fields) for fields in records)
    texts = [title, settings.get("language", "")]
    for cluster in clusters:
        texts += [cluster.role, cluster.name, *cluster.phrases, *cluster.examples]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("a name or a text is no string")
    numbers = {cluster.id: number for number, cluster in enumerate(clusters)}
    places = {name: place for place, name in enumerate(dict.fromkeys(columns["dialogue"]))}
    utterances = Utterances(
        tuple(places),
        np.array([places[name] for name in columns["dialogue"]], dtype=np.int32),
        *(tuple(columns[name]) for name in ("role", "text", "name")),
    )
    labels = np.array([numbers[cluster] for cluster in columns["cluster"]], dtype=np.int32)
    return Flow(title, utterances, labels, clusters, dict(settings))


def write_report(
    flow: Flow, choices: Mapping[str, str], pruning: Pruning, folder: Path, back: str = ""
) -> None:
    """Write a flow with its page, in place of those of an earlier run.

    The page links ``back`` to another, by an address relative to the folder.
    """
    with replaced_together(folder, FILES) as new:
        write_page(flow, new / PAGE, pruning, choices=choices, back=back)
        write_flow(flow, new)


def remove_report(folder: Path) -> None:
    """Remove the files of `write_report`; files of others stay."""
    if (folder / FLOW).is_file():
        for name in FILES:
            (folder / name).unlink(missing_ok=True)


@contextmanager
def replaced_together(folder: Path, names: Iterable[str]) -> Iterator[Path]:
    """Yield a place for files that replace those of these names in a folder, if nothing fails."""
    with working_folder(folder / "files") as place:
        yield place
        for name in names:
            (folder / name).unlink(missing_ok=True)
        for file in place.iterdir():
            file.replace(folder / file.name)
