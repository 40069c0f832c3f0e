"""Extract the flow of dialogues, for Python and ``dialemb flow`` alike."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...data import load_dialogues
from ...data.reading_options import OPTIONS
from ...dialogue import Dialogue
from ...display import data_frame, visible
from ...encoders import Encoder, load_encoder
from ...encoders.embedding_cache import RememberingEncoder
from ...errors import InputError
from ...metrics.vectors import unit_vectors
from ...storage.files import check_writable
from ...storage.pretrained import default_encoder
from ..pages.page import write_page
from .flow import Flow, Utterances, read_utterances
from .flow_clustering import cluster_by_role
from .flow_folder import CACHE, PAGE, UTTERANCES, write_report
from .graph import END, START, Pruning, Weights, pruned, readable
from .language_model_names import find_writer, named_by_model
from .outcomes import outcomes_apart
from .paths import typical_path
from .step_names import centroids, named, phrase_names, shortened

if TYPE_CHECKING:
    import networkx

NEAREST, PHRASES = "nearest", "phrases"  # names without a language model
_ENOUGH = 20  # fewer dialogues are no set of several topics
_ALIKE = 0.48
"""The least mean cosine of dialogues about one thing.

Each of 54 domains of STAR, SGD and MultiWOZ (training and development splits) has 0.497 and more;
all domains together have 0.31 (STAR), 0.23 (SGD) and 0.39 (MultiWOZ; its development split alone
0.53).
"""


@dataclass(frozen=True)
class FlowSettings:
    """How a flow is made of utterances.

    An InputError reports values out of range and a language model that cannot be asked.
    """

    # of each role, or of the named ones; None to choose
    clusters: int | Mapping[str, int] | None = None
    names: str = NEAREST  # or "phrases", or "api:MODEL"
    # see `hf_dialemb.apps.flow.graph.Pruning`, as for the next two; None to choose
    nodes: float | None = None
    edges: float | None = None
    weights: Weights | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        Pruning(self.nodes or 0.0, self.edges or 0.0, self.weights or Pruning.weights)
        if self.seed < 0:
            raise InputError(f"field seed: got {self.seed}, expected 0 or more")
        if self.names not in (NEAREST, PHRASES):
            find_writer(self.names)


@dataclass(frozen=True, eq=False, repr=False)
class ExtractedFlow:
    """A flow, and the part of it that is shown."""

    flow: Flow
    choices: Mapping[str, str]  # how the number of clusters of each role was decided
    pruning: Pruning

    @cached_property
    def graph(self) -> networkx.DiGraph[str]:
        """All states and transitions.

        Nodes are ids of states, with ``[start]`` and ``[end]``; they have ``role``, ``name``,
        ``count`` and ``shown``, whether pages show them at first. Edges have ``count``,
        ``probability`` (of all from the same state) and ``shown``.
        """
        import networkx

        flow, graph, shown = self.flow, networkx.DiGraph(), pruned(self.flow.graph, self.pruning)
        count = len(flow.trajectories)
        for _, name in (START, END):
            graph.add_node(name, role="", name=name.strip("[]"), count=count, shown=True)
        for own in flow.clusters:
            is_shown = own.state in shown.nodes
            graph.add_node(own.id, role=own.role, name=own.name, count=own.size, shown=is_shown)
        for edge, count in flow.graph.edges.items():
            facts = {"count": count, "probability": flow.graph.shares[edge]}
            graph.add_edge(edge[0][1], edge[1][1], **facts, shown=edge in shown.edges)
        return graph

    @property
    def states(self) -> Any:
        """A row for each state: id, role, name, size, and the tuple of its examples."""
        columns = ("id", "role", "name", "size", "examples")
        return data_frame(
            [{name: getattr(cluster, name) for name in columns} for cluster in self.flow.clusters]
        )

    def page(self, path: str | Path) -> None:
        """Write the page: one HTML file, whole or not at all."""
        write_page(self.flow, Path(path), self.pruning, choices=self.choices)

    def lines(self) -> Iterator[str]:
        """Describe the flow in lines.

        Its size, how clusters were chosen, what is shown, and the main path.
        """
        flow, pruning = self.flow, self.pruning
        yield flow.counts
        yield from (f"{role}: {sentence}" for role, sentence in self.choices.items())
        graph = pruned(flow.graph, pruning)
        options = f"--nodes {pruning.nodes:g} --edges {pruning.edges:g} --weights {pruning.weights}"
        if not graph.states:
            yield f"Nothing is frequent enough to be shown ({options}): lower the thresholds"
            return
        states, transitions = len(graph.states), len(graph.edges)
        sizes = f"{states} of {len(flow.clusters)} states and {transitions} transitions"
        yield f"Shown are {sizes} ({options})"
        main = typical_path(flow)
        yield f"Main path, as in {short(main.dialogue)}:"
        for state, text in zip(main.states, main.texts, strict=True):
            yield f"  {state[0]}: {short(text)}"

    def __repr__(self) -> str:
        return f"{self.flow.title}: {self.flow.counts}"


def extract_flow(
    dialogues: Any,
    encoder: Any = None,
    *,
    vectors: NDArray[Any] | None = None,
    output: str | Path | None = None,
    title: str = "Dialogue flow",
    overview: str | Path | None = None,
    **settings: Any,
) -> ExtractedFlow:
    """Find the workflow that dialogues follow (Dialog2Flow).

    Examples:
        >>> flow = hf_dialemb.extract_flow(dialogues, encoder="all-MiniLM-L6-v2")
        >>> flow.page("flow.html")

    Args:
        dialogues: What `load_dialogues` takes, with different ids or none.
        encoder: What `load_encoder` takes; by default the best that is at hand. With a spec or a
            loaded spec, ``dialemb flow next`` and ``compare`` can go on from the saved flow, and
            vectors are kept in ``output``.
        vectors: The vectors of all utterances in order, ``(N, D)``; then no encoder is loaded.
        output: A folder to write everything to.
        title: The title of the page.
        overview: The folder of a page of topics: the page links back to it, and vectors are kept
            there.
        **settings: Fields of `FlowSettings`: ``clusters``, ``names``, ``nodes``,
            ``edges``, ``weights`` and ``seed``; and how files are read, as in `load_dialogues`.

    Raises:
        InputError: There is no dialogue, a setting is wrong, or vectors do not fit.
    """
    reading = {name: settings.pop(name) for name in OPTIONS if name in settings}
    wanted = FlowSettings(**settings)
    utterances = read_utterances(load_dialogues(dialogues, **reading))
    folder = Path(output) if output is not None else None
    facts = {"model": "", "vectors": "", "corpus": title}
    if vectors is None:
        loaded = load_encoder(encoder or default_encoder("action"))
        if loaded.spec:
            facts.update(model=loaded.spec, vectors=loaded.fingerprint)
        cache = Path(overview or folder) / CACHE if folder else None
        rows = utterance_vectors(loaded, utterances.texts, cache)
    else:
        rows = checked_vectors(vectors, len(utterances), "utterance")
    flow, choices = _extracted(utterances, rows, wanted, facts, folder)
    pruning = readable(flow.graph, wanted.nodes, wanted.edges, wanted.weights)
    if folder:
        back = Path(os.path.relpath(Path(overview) / PAGE, folder)).as_posix() if overview else ""
        write_report(flow, choices, pruning, folder, back)
    return ExtractedFlow(flow, choices, pruning)


def _extracted(
    utterances: Utterances,
    vectors: NDArray[np.float32],
    settings: FlowSettings,
    facts: Mapping[str, Any],
    folder: Path | None,
) -> tuple[Flow, dict[str, str]]:
    """Cluster utterances by their vectors, ``(N, D)``, and name the clusters.

    Return the flow, and how the number of clusters of each role was decided. A ``folder`` keeps the
    answers of a language model.
    """
    by_role = utterances.rows_by_role()
    clusterings = cluster_by_role(
        vectors, utterances.roles, clusters=settings.clusters, seed=settings.seed
    )
    clusterings = outcomes_apart(
        clusterings,
        {role: [utterances.texts[row] for row in rows] for role, rows in by_role.items()},
        {role: vectors[rows] for role, rows in by_role.items()},
    )
    labels = {role: clustering.labels for role, clustering in clusterings.items()}
    choices = {role: clustering.sentence for role, clustering in clusterings.items()}
    decided = {**facts, "names": settings.names, "seed": settings.seed}
    flow = named(facts["corpus"], utterances, vectors, labels, decided)
    if settings.names == PHRASES:
        flow = phrase_names(flow)
    elif settings.names != NEAREST:
        flow = named_by_model(flow, settings.names, folder / CACHE / "names" if folder else None)
    return replace(flow, centroids=centroids(vectors, flow.labels)), choices


def utterance_vectors(
    encoder: Encoder, texts: Sequence[str], cache: Path | None = None
) -> NDArray[np.float32]:
    """Embed N texts, equal ones once, ``(N, D)``; the folder ``cache`` keeps their vectors."""
    distinct = {text: row for row, text in enumerate(sorted(set(texts)))}
    vectors = RememberingEncoder(encoder, cache).encode_utterances(list(distinct))
    return vectors[[distinct[text] for text in texts]]


def checked_vectors(vectors: Any, count: int, of: str) -> NDArray[np.float32]:
    """Return vectors of ``count`` things, ``(N, D)``.

    An InputError reports others, and numbers that are not finite.
    """
    given = np.asarray(vectors)
    if given.ndim != 2 or len(given) != count or given.dtype.kind != "f":
        raise InputError(
            f"vectors: got {given.dtype} of shape {given.shape}, expected floats of shape "
            f"({count}, D), a row for each {of} in order; write them again"
        )
    rows: NDArray[np.float32] = given.astype(np.float32)
    if not np.isfinite(rows).all():
        raise InputError("vectors: got NaN or infinity, expected finite numbers; write them again")
    return rows


def about_several_things(dialogues: Sequence[Dialogue]) -> bool:
    """Return whether dialogues are about several things, by their words."""
    if len(dialogues) < _ENOUGH:
        return False
    sample = random.Random(0).sample(dialogues, min(len(dialogues), 1_000))
    mean = unit_vectors(load_encoder("dialogue-static").encode(sample)).mean(axis=0)
    return bool(mean @ mean < _ALIKE)


def check_output(folder: Path, source: str) -> None:
    """Raise an InputError where files of a flow cannot be written or would replace the source."""
    for name in (PAGE, UTTERANCES):
        check_writable(folder / name, source)


def short(name: str, most: int = 90) -> str:
    """Cut a name for a line of a terminal, without characters that would control it."""
    return shortened(visible(" ".join(name.split())), most)
