"""From a folder of conversations to a page: the steps of a dialogue flow, each kept on disk and not done twice."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..corpora import load_dialogues
from ..encoders.embedding_cache import embedding_cache
from ..encoders.remembering import RememberingEncoder
from ..encoders.specs import find_encoder, fingerprint, load_encoder
from ..models.dialogue import Dialogue, Turn
from ..models.errors import InputError
from ..runs.files import check_writable
from .clustering import Clustering
from .flow import Flow, Utterances, read_utterances
from .language_models import find_writer
from .naming import centroids, merged_names, named, phrase_names
from .naming_by_model import named_by_model
from .pruning import Pruning, readable
from .report import CACHE, PAGE, write_report
from .settings import by_role, check_roles, clustered, read_vectors, vectors_digest
from .stored_clusters import read_clusters, write_clusters
from .stored_flow import UTTERANCES, StoredFlow, stored_flow, write_flow

NEAREST, PHRASES = OWN_NAMES = ("nearest", "phrases")
"""Names that need no language model: the utterance in the middle of each cluster, or its typical phrases."""


@dataclass(frozen=True)
class FlowRequest:
    """What a flow is to be made of, and how.

    Attributes:
        corpus: A folder, file, corpus name or Hub dataset; see `hf_dialemb.corpora.iterate_dialogues`.
        output: The folder to write.
        model: What embeds utterances; see `hf_dialemb.encoders.specs.load_encoder`.
        vectors: A ``.npy`` of ready vectors instead, ``(N, D)``: one for each utterance, in order.
        data_dir: Where a registered corpus lies.
        split: Which part of it.
        domain: Only dialogues of this domain alone; None for all.
        columns: How a table of one's own is read.
        roles: Who is who in files of one's own.
        clusters: How many clusters a role has, as ``"12"`` or ``"user=10,assistant=14"``; None to choose.
        threshold: At which distance clusters are merged, in the same form.
        names: ``"nearest"``, ``"phrases"``, ``"api:MODEL"``, or a language model's folder or Hub id.
        pruning: Fields of `hf_dialemb.flow.pruning.Pruning`; those that are None have their defaults.
        seed: Of everything that is drawn.
    """

    corpus: str
    output: Path
    model: str = "all-MiniLM-L6-v2"
    vectors: Path | None = None
    data_dir: str | None = None
    split: str = "all"
    domain: str | None = None
    columns: str | None = None
    roles: str | None = None
    clusters: str | None = None
    threshold: str | None = None
    names: str = "nearest"
    pruning: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0


def build_flow(request: FlowRequest, say: Callable[[str], object]) -> StoredFlow:
    """Finds the flow of conversations and writes its page, files and tables.

    A run that was stopped, or one with other settings, goes on from the steps that it shares with what is there:
    vectors are kept by text, clusters by vectors and settings, names by clusters.

    Args:
        request: What to do.
        say: Told in lines what is done.

    Returns:
        The flow.

    Raises:
        InputError: The input, the model or a setting is wrong.
    """
    _check(request)
    number, threshold = by_role("clusters", request.clusters, int), by_role("threshold", request.threshold, float)
    source = _source(request)
    dialogues = dialogues_of(
        request.corpus, request.data_dir, request.split, request.domain, columns=request.columns, roles=request.roles
    )
    said = read_utterances(dialogues)
    check_roles({"clusters": number, "threshold": threshold}, said)
    for name in (PAGE, UTTERANCES):
        check_writable(request.output / name, request.corpus)
    say(f"{len(said.dialogues):,} dialogues with {len(said):,} utterances")
    domains = sorted({name for dialogue in dialogues for name in dialogue.domains})
    if len(domains) > 1 and request.domain is None:
        say(f"Of {len(domains)} domains; --domain makes a flow of one of them: {', '.join(domains)}")
    clusters_key = _key("clusters", _digest(said), source, number, threshold, request.seed)
    key = _key("names", clusters_key, request.names, _title(request), request.model, request.split)
    clusterings = read_clusters(request.output / CACHE, clusters_key)
    stored = stored_flow(request.output, key) if request.names in OWN_NAMES else None
    if clusterings is None or stored is None:
        vectors = _vectors(request, said)
        if clusterings is None:
            clusterings = clustered(vectors, said, number, threshold, request.seed)
            write_clusters(clusterings, request.output / CACHE, clusters_key)
        flow = _named(request, said, vectors, clusterings)
        stored = StoredFlow(flow, centroids(vectors, flow.labels), key)
        write_flow(stored, request.output)
    for role, clustering in clusterings.items():
        say(f"{role}: {clustering.choice.sentence}")
    thresholds = {name: request.pruning.get(name) for name in ("nodes", "edges", "weights")}
    for line in write_report(stored.flow, clusterings, readable(stored.flow.graph, **thresholds), request.output):
        say(line)
    return stored


def dialogues_of(
    corpus: str,
    data_dir: str | None,
    split: str,
    domain: str | None,
    *,
    columns: str | None = None,
    roles: str | None = None,
) -> list[Dialogue]:
    """Reads dialogues, perhaps of one domain alone.

    Args:
        corpus: See `hf_dialemb.corpora.iterate_dialogues`, as for the others.
        data_dir: Where a registered corpus lies.
        split: Which part of it.
        domain: The only domain that dialogues may have; None for all dialogues.
        columns: How a table of one's own is read.
        roles: Who is who in files of one's own.

    Returns:
        The dialogues, at least one.

    Raises:
        InputError: The corpus is not found or malformed, or no dialogue has the domain.
    """
    dialogues = load_dialogues(corpus, data_dir, split, columns=columns, roles=roles)
    if domain is None:
        return dialogues
    kept = [dialogue for dialogue in dialogues if dialogue.domains == (domain,)]
    if not kept:
        counts = Counter(dialogue.domains[0] for dialogue in dialogues if len(dialogue.domains) == 1)
        known = ", ".join(f"{name} ({count:,})" for name, count in counts.most_common()) or "none, they have no domains"
        raise InputError(f"--domain: got '{domain}', expected one that dialogues have for themselves: {known}")
    return kept


def encoded(spec: str, texts: Sequence[str], cache: Path | None) -> NDArray[np.float32]:
    """Embeds utterances, each text once.

    Args:
        spec: See `hf_dialemb.encoders.specs.load_encoder`.
        texts: N of them.
        cache: Where vectors are kept; None for nowhere.

    Returns:
        Vectors, ``(N, D)``.
    """
    distinct = {text: place for place, text in enumerate(sorted(set(texts)))}
    kept = None if cache is None else embedding_cache(cache, spec)
    encoder = RememberingEncoder(load_encoder(spec), kept)
    vectors = encoder.encode([Dialogue((Turn("user", text),)) for text in distinct])
    return vectors[[distinct[text] for text in texts]]


def _check(request: FlowRequest) -> None:
    """Refuses what cannot be right, before anything is read."""
    try:
        Pruning(**{name: value for name, value in request.pruning.items() if value is not None})
    except InputError as error:
        raise InputError(str(error).replace("field ", "--", 1)) from None
    if request.seed < 0:
        raise InputError(f"--seed: got {request.seed}, expected 0 or more")
    if request.names not in OWN_NAMES:
        find_writer(request.names)


def _source(request: FlowRequest) -> str:
    """Tells the vectors from all others."""
    if request.vectors is not None:
        return vectors_digest(request.vectors)
    return fingerprint(request.model) + (" whitened" if find_encoder(request.model).whitened else "")


def _vectors(request: FlowRequest, said: Utterances) -> NDArray[np.float32]:
    if request.vectors is None:
        return encoded(request.model, said.texts, request.output / CACHE)
    return read_vectors(request.vectors, len(said))


def _named(
    request: FlowRequest, said: Utterances, vectors: NDArray[np.float32], clusterings: Mapping[str, Clustering]
) -> Flow:
    labels = {role: clustering.labels for role, clustering in clusterings.items()}
    flow = named(_title(request), said, vectors, labels, _settings(request, clusterings))
    if request.names == NEAREST:
        return flow
    if request.names == PHRASES:
        return merged_names(phrase_names(flow))
    return named_by_model(flow, request.names, request.output / CACHE / "names")


def _settings(request: FlowRequest, clusterings: Mapping[str, Clustering]) -> dict[str, Any]:
    return {
        "model": request.model if request.vectors is None else "",
        "vectors": _source(request),
        "corpus": _title(request),
        "split": request.split,
        "clusters": {role: clustering.choice.count for role, clustering in clusterings.items()},
        "chosen_by": {role: clustering.choice.kind for role, clustering in clusterings.items()},
        "names": request.names,
        "seed": request.seed,
    }


def _title(request: FlowRequest) -> str:
    name = Path(request.corpus.rstrip("/")).name or request.corpus
    return f"{name}, {request.domain}" if request.domain else name


def _key(*parts: Any) -> str:  # noqa: ANN401 - whatever JSON can hold
    return hashlib.sha256(json.dumps([version("hf-dialemb"), *parts], sort_keys=True).encode()).hexdigest()


def _digest(said: Utterances) -> str:
    return _key(said.dialogues, said.places.tolist(), said.roles, said.texts, said.actions)
