"""The steps from utterances to a named flow, kept in a folder where there is one, and then not done twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..encoders import Encoder
from ..encoders.remembering import RememberingEncoder
from ..errors import InputError
from .clustering import Clustering, check_roles, cluster_by_role
from .flow import Utterances
from .naming import centroids, merged_names, named, phrase_names
from .naming_by_model import find_writer, named_by_model
from .outcomes import outcomes_apart
from .pruning import Pruning, Weights, readable
from .stored_flow import StoredFlow, read_clusters, stored_flow, write_clusters

CACHE = "cache"  # where in a folder vectors, clusters and names are kept between runs
NEAREST, PHRASES = OWN_NAMES = ("nearest", "phrases")
"""Names that need no language model: the utterance in the middle of each cluster, or its typical phrases."""


@dataclass(frozen=True)
class FlowSettings:
    """How a flow is made of utterances; an InputError says what is out of range, or that there is no such model."""

    clusters: int | Mapping[str, int] | None = None  # how many each role has, or those that are named; None to choose
    threshold: float | Mapping[str, float] | None = None  # the distance at which clusters are no longer merged
    names: str = NEAREST  # or "phrases", "api:MODEL", or a language model's folder or Hub id
    nodes: float | None = None  # see `hf_dialemb.flow.pruning.Pruning`, as for the next two; None to choose
    edges: float | None = None
    weights: Weights | None = None
    seed: int = 0  # of everything that is drawn

    def __post_init__(self) -> None:
        given = {"nodes": self.nodes, "edges": self.edges, "weights": self.weights}
        Pruning(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]
        if self.seed < 0:
            raise InputError(f"field seed: got {self.seed}, expected 0 or more")
        if self.names not in OWN_NAMES:
            find_writer(self.names)


def find_flow(
    said: Utterances,
    vectors: Callable[[], NDArray[np.float32]],
    settings: FlowSettings,
    facts: Mapping[str, str],
    folder: Path | None,
) -> tuple[StoredFlow, dict[str, Clustering], Pruning]:
    """Clusters utterances and names the clusters; says how clusters were found, and what of the flow is shown.

    What a folder has of another run is taken from there: clusters by vectors and settings, names by clusters. The
    vectors, ``(N, D)``, are made where they are needed. The facts on where the flow comes from have ``corpus``, its
    title, and ``vectors``, which tells the vectors from all others.
    """
    check_roles(settings.clusters, settings.threshold, said.roles)
    cache = folder / CACHE if folder else None
    choice = facts["vectors"], settings.clusters, settings.threshold, settings.seed
    clusters_key = _key("clusters", said.dialogues, said.places.tolist(), said.roles, said.texts, said.actions, *choice)
    key = _key("names", clusters_key, settings.names, facts, said.names)
    clusterings = read_clusters(cache, clusters_key) if cache else None
    stored = stored_flow(folder, key) if folder and settings.names in OWN_NAMES else None
    if clusterings is None or stored is None:
        found = vectors()
        if clusterings is None:
            asked = {name: getattr(settings, name) for name in ("clusters", "threshold", "seed")}
            clusterings = cluster_by_role(found, said.roles, **asked, progress=True)
            by_role = said.rows_by_role()
            texts = {role: [said.texts[row] for row in rows] for role, rows in by_role.items()}
            clusterings = outcomes_apart(clusterings, texts, {role: found[rows] for role, rows in by_role.items()})
            if cache:
                write_clusters(clusterings, cache, clusters_key)
        labels = {role: clustering.labels for role, clustering in clusterings.items()}
        decided = {
            "clusters": {role: int(of_role.max()) + 1 for role, of_role in labels.items()},
            "chosen_by": {role: clustering.choice.kind for role, clustering in clusterings.items()},
            "names": settings.names,
            "seed": settings.seed,
        }
        flow = named(facts["corpus"], said, found, labels, {**facts, **decided})
        if settings.names == PHRASES:
            flow = merged_names(phrase_names(flow))
        elif settings.names != NEAREST:
            flow = named_by_model(flow, settings.names, cache / "names" if cache else None)
        stored = StoredFlow(flow, centroids(found, flow.labels), key)
    shown = readable(stored.flow.graph, nodes=settings.nodes, edges=settings.edges, weights=settings.weights)
    return stored, clusterings, shown


def utterance_vectors(encoder: Encoder, texts: Sequence[str], cache: Path | None = None) -> NDArray[np.float32]:
    """Embed utterances, each text once, ``(N, D)``; the vectors stay in the folder ``cache``."""
    distinct = {text: row for row, text in enumerate(sorted(set(texts)))}
    vectors = RememberingEncoder(encoder, cache).encode_utterances(list(distinct))
    return vectors[[distinct[text] for text in texts]]


def _key(*parts: Any) -> str:  # noqa: ANN401 - whatever JSON can hold
    return hashlib.sha256(json.dumps([version("hf-dialemb"), *parts], sort_keys=True).encode()).hexdigest()
