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
from ..evaluation.embedding_cache import embedding_cache
from ..evaluation.encoders import fingerprint, load_encoder
from ..evaluation.remembering import RememberingEncoder
from ..flow.clustering import Clustering, cluster_by_role
from ..flow.flow import Utterances, read_utterances
from ..flow.language_model import named_by_model
from ..flow.naming import centroids, named
from ..flow.pruning import Pruning, readable
from ..flow.stored_clusters import read_clusters, write_clusters
from ..flow.stored_flow import StoredFlow, read_flow, stored_key, write_flow
from ..flow.writers import find_writer
from ..models.dialogue import Dialogue, Turn
from ..models.errors import InputError
from ..models.files import check_writable
from .flow_report import PAGE, write_report

NEAREST = "nearest"
"""Names that need no language model: the utterance in the middle of each cluster."""

CACHE = "cache"
"""Where in the output vectors, clusters and names are kept between runs."""


@dataclass(frozen=True)
class FlowRequest:
    """What a flow is to be made of, and how.

    Attributes:
        corpus: A folder, file, corpus name or Hub dataset; see `hf_dialemb.corpora.iterate_dialogues`.
        output: The folder to write.
        model: What embeds utterances; see `hf_dialemb.evaluation.encoders.load_encoder`.
        vectors: A ``.npy`` of ready vectors instead, ``(N, D)``: one for each utterance, in order.
        data_dir: Where a registered corpus lies.
        split: Which part of it.
        domain: Only dialogues of this domain alone; None for all.
        columns: How a table of one's own is read.
        roles: Who is who in files of one's own.
        clusters: How many clusters a role has, as ``"12"`` or ``"user=10,assistant=14"``; None to choose.
        threshold: At which distance clusters are merged, in the same form.
        names: ``"nearest"``, ``"api:MODEL"``, or a language model's folder or Hub id.
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
    Pruning(**{name: value for name, value in request.pruning.items() if value is not None})  # or refused
    number, threshold = _by_role("clusters", request.clusters, int), _by_role("threshold", request.threshold, float)
    check_writable(request.output / PAGE)
    source = fingerprint(request.model) if request.vectors is None else _file_digest(request.vectors)
    if request.names != NEAREST:
        find_writer(request.names)  # or refused, before long work
    dialogues = dialogues_of(
        request.corpus, request.data_dir, request.split, request.domain, columns=request.columns, roles=request.roles
    )
    said = read_utterances(dialogues)
    say(f"{len(said.dialogues):,} dialogues with {len(said):,} utterances")
    domains = sorted({name for dialogue in dialogues for name in dialogue.domains})
    if len(domains) > 1 and request.domain is None:
        say(f"Of {len(domains)} domains; --domain makes a flow of one of them: {', '.join(domains)}")
    clusters_key = _key("clusters", _digest(said), source, number, threshold, request.seed)
    key = _key("names", clusters_key, request.names, _title(request))
    clusterings = read_clusters(request.output / CACHE, clusters_key)
    # A language model that did not answer is asked again; what it did answer is kept.
    if clusterings is None or stored_key(request.output) != key or request.names != NEAREST:
        vectors = _vectors(request, said)
        if clusterings is None:
            clusterings = cluster_by_role(
                vectors, said.roles, number=number, threshold=threshold, seed=request.seed, progress=True
            )
            write_clusters(clusterings, request.output / CACHE, clusters_key)
        labels = {role: clustering.labels for role, clustering in clusterings.items()}
        flow = named(_title(request), said, vectors, labels, _settings(request, source, clusterings))
        if request.names != NEAREST:
            flow = named_by_model(flow, request.names, request.output / CACHE / "names")
        write_flow(StoredFlow(flow, centroids(vectors, flow.labels), key), request.output)
    stored = read_flow(request.output)
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
        spec: See `hf_dialemb.evaluation.encoders.load_encoder`.
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


def _vectors(request: FlowRequest, said: Utterances) -> NDArray[np.float32]:
    if request.vectors is None:
        return encoded(request.model, said.texts, request.output / CACHE)
    try:
        vectors = np.load(request.vectors, allow_pickle=False)
    except ValueError as error:
        reason = " ".join(str(error).split())
        raise InputError(f"--vectors {request.vectors}: got no array ({reason}); write it by numpy.save") from None
    if vectors.ndim != 2 or len(vectors) != len(said) or vectors.dtype.kind != "f" or not np.isfinite(vectors).all():
        raise InputError(
            f"--vectors {request.vectors}: got {vectors.dtype} of shape {vectors.shape}, expected finite floats of "
            f"shape ({len(said)}, D), one row for each utterance in order; write them again"
        )
    return np.asarray(vectors, dtype=np.float32)


def _settings(request: FlowRequest, source: str, clusterings: Mapping[str, Clustering]) -> dict[str, Any]:
    return {
        "model": request.model if request.vectors is None else "",
        "vectors": source,
        "corpus": _title(request),
        "split": request.split,
        "clusters": {role: clustering.choice.count for role, clustering in clusterings.items()},
        "chosen_by": {role: clustering.choice.kind for role, clustering in clusterings.items()},
        "names": request.names,
        "seed": request.seed,
    }


def _by_role(option: str, text: str | None, number: type[int] | type[float]) -> Any:  # noqa: ANN401 - of either kind
    """Reads ``"12"`` or ``"user=10,assistant=14"``."""
    if text is None:
        return None
    try:
        if "=" not in text:
            return number(text)
        return {role.strip(): number(value) for role, value in (part.split("=") for part in text.split(","))}
    except ValueError:
        example = "12 or user=10,assistant=14" if number is int else "0.6 or user=0.5,assistant=0.6"
        raise InputError(
            f"--{option}: got '{text}', expected a number or one for each role, such as {example}"
        ) from None


def _title(request: FlowRequest) -> str:
    name = Path(request.corpus.rstrip("/")).name or request.corpus
    return f"{name}, {request.domain}" if request.domain else name


def _key(*parts: Any) -> str:  # noqa: ANN401 - whatever JSON can hold
    return hashlib.sha256(json.dumps([version("hf-dialemb"), *parts], sort_keys=True).encode()).hexdigest()


def _digest(said: Utterances) -> str:
    return _key(said.dialogues, said.places.tolist(), said.roles, said.texts, said.actions)


def _file_digest(path: Path) -> str:
    if not path.is_file():
        raise InputError(f"--vectors {path}: no such file; expected a .npy file")
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
